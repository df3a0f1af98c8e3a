// Engines that speculate, and everything a request gets from them: tokens, finish reason, logits. Speculation must
// change none of it.
#pragma once

#include "src/engine/draft/speculator.h"
#include "src/text/answer_text.h"
#include "tests/unit/engine/engine_world.h"

namespace infer::test {

// The draft has the target's weights in fewer bits, so many drafts are accepted and many are rejected.
constexpr const char *kTarget = "Q8_0", *kDraft = "Q4_K_M";

enum class Drafts { kNone, kLookup, kModel, kBoth };
inline std::string name_of(Drafts drafts) {
  constexpr const char* kNames[] = {"no drafts", "look-up", "draft model", "look-up, then draft model"};
  return kNames[static_cast<int>(drafts)];
}
constexpr Drafts kAllDrafts[] = {Drafts::kLookup, Drafts::kModel, Drafts::kBoth};

// `depth`: drafts of a sequence per step; 0: as many as pay, which depends on the clock.
inline EngineOptions options_with(Drafts drafts, int depth, int max_sequences) {
  EngineOptions options = small_options();
  options.max_sequences = max_sequences;
  options.cache_tokens = 512 * 16;
  options.speculation.lookup = drafts == Drafts::kLookup || drafts == Drafts::kBoth;
  if (drafts == Drafts::kModel || drafts == Drafts::kBoth) options.speculation.draft = open_model(kDraft);
  options.speculation.fixed = depth;
  options.note = [](const std::string& line) { FAIL_CHECK(line); };  // such as that the draft model failed
  return options;
}

// A prompt that repeats itself with changes, as a text to be edited does. Three ids in a row have the same prompt and
// the temperatures 0, 0.7 and 1.
inline Request repeating_request(RequestId id, int n_new = 40) {
  const int prompt = static_cast<int>(id / 3);
  Request request = make_request(id, 12 + prompt % 7, n_new, prompt);
  const std::vector<TokenId> once = request.prompt;
  for (int i = 0; i < 3; ++i) {
    request.prompt.insert(request.prompt.end(), once.begin(), once.end());
    request.prompt[request.prompt.size() - 2] = 3 + i;
  }
  constexpr float kTemperatures[] = {0, 0.7f, 1};
  request.sampling.temperature = kTemperatures[id % 3];
  request.sampling.top_k = 5;
  return request;
}

// Three requests for each prompt, with ids from 3 on.
inline std::vector<Request> repeating_requests(int n_prompts) {
  std::vector<Request> requests;
  for (int i = 3; i < 3 * n_prompts + 3; ++i) requests.push_back(repeating_request(static_cast<RequestId>(i)));
  return requests;
}

struct Result {
  std::vector<TokenId> tokens;
  FinishReason finished = FinishReason::kNone;
  std::map<int64_t, std::vector<uint32_t>> rows;  // by position: the bits of the logits, if the request reports them
  bool operator==(const Result&) const = default;
};
using Results = std::map<RequestId, Result>;  // of requests and their choices

// Takes the results of requests from an engine, and ends them at their stop strings as the server does.
class Recorder {
 public:
  explicit Recorder(Engine& engine) : engine_(engine) {
    engine.on_logits([this](RequestId id, int64_t position, std::span<const float> logits) {
      std::vector<uint32_t>& bits = results[id].rows[position];
      bits.resize(logits.size());
      std::memcpy(bits.data(), logits.data(), logits.size_bytes());
    });
  }
  ~Recorder() { engine_.on_logits(nullptr); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void submit(const Request& request) {
    REQUIRE(engine_.submit(request));
    const auto add = [&](RequestId id) {
      const AnswerRules rules{request.stop_strings, {}, nullptr};
      REQUIRE(open_.emplace(id, Open{AnswerText(engine_.tokenizer(), rules), std::ssize(request.prompt)}).second);
    };
    add(request.id);
    for (const RequestId choice : request.choices) add(choice);
  }

  void step() {
    for (const Progress& p : engine_.step()) {
      CHECK(p.error == "");
      Open& open = open_.at(p.id);
      Result& result = results[p.id];
      AnswerDelta delta;
      const size_t n = open.text.add(p.tokens, false, delta);
      result.tokens.insert(result.tokens.end(), p.tokens.begin(), p.tokens.begin() + static_cast<std::ptrdiff_t>(n));
      result.finished = p.finished;
      if (open.text.stopped()) {
        if (p.finished == FinishReason::kNone) engine_.cancel(p.id, FinishReason::kStopString);
        result.finished = FinishReason::kStopString;
      }
      if (result.finished != FinishReason::kNone) close(p.id);
    }
  }

  void cancel(RequestId id) {
    engine_.cancel(id);
    if (!open_.contains(id)) return;
    results[id].finished = FinishReason::kCancelled;
    close(id);
  }

  Results results;

 private:
  struct Open {
    AnswerText text;
    int64_t n_prompt;
  };
  // Rows after the last token were computed for drafts beyond the end.
  void close(RequestId id) {
    Result& result = results[id];
    const int64_t n_known = open_.at(id).n_prompt + std::ssize(result.tokens);
    std::erase_if(result.rows, [&](const auto& row) { return row.first + 1 >= n_known; });
    open_.erase(id);
  }

  Engine& engine_;
  std::map<RequestId, Open> open_;
};

inline Results results_of(Engine& engine, const std::vector<Request>& requests) {
  Recorder recorder(engine);
  for (const Request& request : requests) recorder.submit(request);
  for (int step = 0; !engine.idle(); ++step) {
    REQUIRE(step < 100000);
    recorder.step();
  }
  return recorder.results;
}

inline Results plain_results(const std::vector<Request>& requests) {
  Engine engine(open_model(kTarget), options_with(Drafts::kNone, 0, 16));
  return results_of(engine, requests);
}

// One check instead of one per text, and the first text that differs.
inline void check_same_results(const Results& found, const Results& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& [id, result] : expected) {
    CAPTURE(id);
    const auto other = found.find(id);
    REQUIRE(other != found.end());
    REQUIRE(other->second.tokens == result.tokens);
    REQUIRE(other->second.finished == result.finished);
    REQUIRE(other->second.rows == result.rows);
  }
}

// All blocks of an idle engine are free or cached, in both of its caches.
inline void check_blocks_returned(const Engine& engine) {
  const auto check = [](const Scheduler& scheduler) {
    CHECK(scheduler.idle());
    for (size_t g = 0; g < scheduler.cache().groups().size(); ++g) {
      CHECK(scheduler.cache().pool(g).available() == scheduler.cache().groups()[g].n_blocks);
    }
  };
  check(engine.scheduler());
  if (!engine.speculator()) return;
  if (const DraftModel* draft = engine.speculator()->draft()) check(draft->scheduler());
}

}  // namespace infer::test
