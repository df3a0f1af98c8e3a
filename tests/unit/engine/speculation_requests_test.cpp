// Everything that a request can ask for, with and without drafts: the same tokens, the same finish reason, the same
// logits.
#include "src/text/token_mask.h"
#include "tests/unit/engine/speculation_world.h"

namespace infer {
namespace {

using namespace infer::test;

// Allows the tokens of one class modulo 3, which depends on all tokens before: a state that drafts must not disturb.
class ClassOfThree final : public TokenMask {
 public:
  AllowedTokens allowed() override {
    uint64_t state = 0;
    for (const TokenId token : accepted_) state = state * 5 + static_cast<uint64_t>(token);
    bits_.assign(8, 0);
    for (size_t token = state % 3; token < 512; token += 3) bits_[token / 64] |= uint64_t{1} << (token % 64);
    return bits_;
  }
  void accept(TokenId token) override {
    REQUIRE((allowed()[static_cast<size_t>(token) / 64] >> (token % 64) & 1) == 1);
    accepted_.push_back(token);
  }
  void rollback(int64_t n) override { accepted_.resize(accepted_.size() - static_cast<size_t>(n)); }
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<ClassOfThree>(*this); }

 private:
  std::vector<TokenId> accepted_;
  std::vector<uint64_t> bits_;
};

struct Variation {
  std::string name;
  std::function<void(Request&)> request = nullptr;
  std::function<void(EngineOptions&)> both = nullptr;         // options of both engines
  std::function<void(EngineOptions&)> speculating = nullptr;  // of the one with drafts
};

void forbid_tokens(Request& r) {
  for (TokenId token = 0; token < 512; token += 2) r.sampling.logit_bias.emplace_back(token, -INFINITY);
}

void change_chain(Request& r) {
  SamplingParams& p = r.sampling;
  const int chain = static_cast<int>(r.id % 7);
  p.top_k = chain == 6 ? 5 : 0;
  if (chain == 0) p.typical_p = 0.1f;
  if (chain == 1) p.mirostat = 2, p.mirostat_tau = 2;
  if (chain == 2) p.top_p = 0.05f, p.xtc_probability = 0.5f, p.xtc_threshold = 0.005f;
  if (chain == 3) p.top_n_sigma = 2, p.min_p = 0.2f;
  if (chain == 4) p.dynatemp_range = 0.5f, p.min_p = 0.3f;
  if (chain == 5) p.dry_multiplier = 0.8f, p.repeat_penalty = 1.2f, p.top_k = 8;
}

void penalize(Request& r) {
  r.sampling.repeat_penalty = 1.1f;
  r.sampling.presence_penalty = 0.1f * static_cast<float>(r.id % 4);
  r.sampling.frequency_penalty = 0.05f;
  r.sampling.repeat_last_n = r.id % 2 == 0 ? -1 : 9;
}

void ask_for_three(Request& r) { r.choices = {r.id * 100 + 1, r.id * 100 + 2}; }

void ask_for_logits(Request& r) {
  r.report_logits = true;
  if (r.id % 2 == 0) r.logits_from = static_cast<int64_t>(r.id % 5);
}

const std::vector<Variation>& variations() {
  static const std::vector<Variation> kVariations = {
      {"a token mask", [](Request& r) { r.mask = std::make_shared<ClassOfThree>(); }},
      {"a token mask, in several choices that are preempted",
       [](Request& r) { r.mask = std::make_shared<ClassOfThree>(), ask_for_three(r); }, nullptr,
       [](EngineOptions& o) { o.cache_tokens = 256; }},
      {"forbidden tokens", forbid_tokens},
      {"three answers to a prompt", ask_for_three},
      {"penalties", penalize},
      {"every stage of the chain", change_chain},
      {"stop strings",
       [](Request& r) {
         r.stop_strings = {"k", "w26", "w27", "w28"};
       }},
      {"stop tokens and the end of generation",
       [](Request& r) {
         r.ignore_eog = false;
         for (TokenId token = 0; token < 500; token += 17) r.stop_tokens.push_back(token);
       }},
      {"log-probabilities", ask_for_logits, [](EngineOptions& o) { o.all_logits = true; }},
      {"log-probabilities of several answers", [](Request& r) { r.report_logits = true, ask_for_three(r); }},
      {"prompts in small chunks", nullptr, nullptr, [](EngineOptions& o) { o.step_tokens = 20; }},
      {"the end of the context", [](Request& r) { r.max_new_tokens = -1; },
       [](EngineOptions& o) { o.context = 110, o.cache_tokens = 0; }},
      {"answers of a few tokens", [](Request& r) { r.max_new_tokens = static_cast<int32_t>(1 + r.id % 9); }},
      {"a bound on its drafts", [](Request& r) { r.max_drafts = static_cast<int32_t>(r.id % 4); }},
      {"no reuse of prefixes", [](Request& r) { r.reuse_prefix = false; }},
      {"a quantized cache", nullptr, [](EngineOptions& o) { o.key_type = o.value_type = DataType::kQ8_0; }},
      {"priorities in little room", [](Request& r) { r.priority = static_cast<int32_t>(r.id % 3); }, nullptr,
       [](EngineOptions& o) { o.cache_tokens = 256; }},
  };
  return kVariations;
}

// Counts in `ends` why the answers ended.
void check_variation(const Variation& variation, std::map<FinishReason, int>& ends) {
  CAPTURE(variation.name);
  std::vector<Request> requests = repeating_requests(full() ? 12 : 4);
  EngineOptions plain = options_with(Drafts::kNone, 0, 16);
  for (Request& r : requests) {
    if (variation.request) variation.request(r);
  }
  if (variation.both) variation.both(plain);
  Engine without(open_model(kTarget), plain);
  const Results expected = results_of(without, requests);
  for (const auto& [id, result] : expected) ++ends[result.finished];
  for (const Drafts drafts : kAllDrafts) {
    for (int depth = full() ? 0 : 3; depth <= (full() ? 8 : 3); ++depth) {
      constexpr int kSequences[] = {4, 1, 16};
      const int n = kSequences[depth % 3];
      CAPTURE(name_of(drafts));
      CAPTURE(depth);
      CAPTURE(n);
      EngineOptions options = options_with(drafts, depth, n);
      if (variation.both) variation.both(options);
      if (variation.speculating) variation.speculating(options);
      Engine engine(open_model(kTarget), options);
      check_same_results(results_of(engine, requests), expected);
      const SchedulerStats& stats = engine.scheduler().stats();
      if (depth > 0) CHECK(stats.drafts.accepted > 0);
      if (depth > 0) CHECK(stats.drafts.accepted < stats.drafts.proposed);
      if (n > 1 && options.cache_tokens == 256) CHECK(stats.preemptions > 0);
      check_blocks_returned(engine);
    }
  }
}

TEST_CASE("drafts change nothing that a request gets") {
  std::map<FinishReason, int> ends;
  for (const Variation& variation : variations()) check_variation(variation, ends);
  for (const FinishReason end : {FinishReason::kMaxTokens, FinishReason::kStopString, FinishReason::kEndOfGeneration,
                                 FinishReason::kContextFull}) {
    CAPTURE(std::string(finish_reason_name(end)));
    CHECK(ends[end] > 0);
  }
}

// The turns of conversations, each with the text so far as its prompt, and new requests for the same prompts.
TEST_CASE("drafts change no text when the cache serves the beginning of a prompt") {
  const auto texts = [](Engine& engine) {
    Results all;
    for (RequestId turn = 0; turn < 3; ++turn) {
      std::vector<Request> requests = repeating_requests(full() ? 40 : 3);
      for (Request& r : requests) {
        r.conversation = r.id % 2 == 0 ? r.id : 0;
        for (RequestId t = 0; t < turn && r.conversation != 0; ++t) {
          const std::vector<TokenId>& answer = all.at(1000 * t + r.id).tokens;
          r.prompt.insert(r.prompt.end(), answer.begin(), answer.end());
          r.prompt.push_back(static_cast<TokenId>(5 + t));
        }
        r.id += 1000 * turn;
      }
      all.merge(results_of(engine, requests));
    }
    return all;
  };
  Engine plain(open_model(kTarget), options_with(Drafts::kNone, 0, 16));
  const Results expected = texts(plain);
  for (const Drafts drafts : kAllDrafts) {
    for (const int depth : {2, 7}) {
      for (const int64_t cache_tokens : {512 * 16, 640}) {
        CAPTURE(name_of(drafts));
        CAPTURE(depth);
        CAPTURE(cache_tokens);
        EngineOptions options = options_with(drafts, depth, 4);
        options.cache_tokens = cache_tokens;
        Engine engine(open_model(kTarget), options);
        check_same_results(texts(engine), expected);
        const SchedulerStats& stats = engine.scheduler().stats();
        CHECK(stats.prefix_hit_tokens > stats.admitted_tokens / 4);
        CHECK(stats.drafts.accepted > 0);
      }
    }
  }
}

// The same weights in F32 and F16: their logits differ so little that the same noise samples the same tokens.
TEST_CASE("a draft that all but equals its target is accepted with any chain, since it samples with the same noise") {
  for (int chain = 0; chain < 7; ++chain) {
    CAPTURE(chain);
    std::vector<Request> requests;
    for (RequestId i = 0; i < 6; ++i) {
      Request r = repeating_request(static_cast<RequestId>(7 * (i + 1) + static_cast<RequestId>(chain)));
      change_chain(r);
      r.sampling.temperature = 1;
      requests.push_back(r);
    }
    Engine plain(open_model("F32"), options_with(Drafts::kNone, 0, 4));
    EngineOptions options = options_with(Drafts::kModel, 4, 4);
    options.speculation.draft = open_model("F16");
    Engine engine(open_model("F32"), options);
    check_same_results(results_of(engine, requests), results_of(plain, requests));
    const SchedulerStats& stats = engine.scheduler().stats();
    CHECK(stats.drafts.proposed > 100);
    CHECK(stats.drafts.accepted > 0.9 * static_cast<double>(stats.drafts.proposed));
  }
}

}  // namespace
}  // namespace infer
