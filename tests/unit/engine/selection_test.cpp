// A device with its own memory selects the best logits where the sampler needs no others: the texts are those of the
// CPU, and only the selected logits leave the device, with a token mask those of a row if it refuses too many of them.
#include "src/text/token_mask.h"
#include "tests/support/island_device.h"
#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr int kNew = 12;

class Island {
 public:
  explicit Island(int max_sequences = 1, int draft_rows = 0) {
    auto devices = std::make_shared<DeviceSet>();
    devices->devices.push_back(open_device("cpu", {.n_threads = 1}));
    devices->devices.push_back(make_island("island", open_device("cpu", {.n_threads = 1}), state_));
    devices->of_layers = {1};
    EngineOptions options = small_options();
    options.opened = std::move(devices);
    options.placement.n_gpu_layers = placeable_parts(open_model("Q8_0")->n_layer());
    options.max_sequences = max_sequences;
    options.draft_rows = draft_rows;
    options.isolate_errors = true;
    engine_ = std::make_unique<Engine>(open_model("Q8_0"), options);
  }

  Engine& engine() { return *engine_; }

  // Bytes that left the device.
  int64_t step(std::map<RequestId, std::vector<TokenId>>& texts) {
    const int64_t before = state_->bytes_to_staging;
    for (const Progress& p : engine_->step()) {
      CHECK(p.error == "");
      texts[p.id].insert(texts[p.id].end(), p.tokens.begin(), p.tokens.end());
    }
    return state_->bytes_to_staging - before;
  }

  // Of one output row with its `selected` best logits, or with all of them for 0.
  int64_t row_bytes(int selected) const {
    const Model& model = engine_->model();
    return 4 * model.n_embd() + (selected > 0 ? 8 * selected + 4 : 4 * model.n_vocab());
  }

 private:
  std::shared_ptr<IslandState> state_ = std::make_shared<IslandState>();
  std::unique_ptr<Engine> engine_;
};

Request request_with(const SamplingParams& sampling, RequestId id = 1) {
  Request request = make_request(id, 20 + static_cast<int>(id), kNew, static_cast<int>(id));
  const auto seed = request.sampling.seed;
  request.sampling = sampling;
  request.sampling.seed = seed;
  return request;
}

std::vector<TokenId> text_on_cpu(const Request& request) { return run_alone("Q8_0", request, small_options()).tokens; }

struct Chain {
  const char* name;
  std::function<void(SamplingParams& p)> set;
  int selected;  // logits of a row that leave the device; 0: all of them
};

const std::vector<Chain>& chains() {
  static const std::vector<Chain> kChains = {
      {"defaults", [](auto&) {}, kMostSelected},
      {"greedy", [](auto& p) { p.temperature = 0; }, 1},
      {"hot", [](auto& p) { p.temperature = 4; }, kMostSelected},
      {"top_k 1", [](auto& p) { p.top_k = 1; }, 1},
      {"top_k 64", [](auto& p) { p.top_k = 64, p.top_p = 1, p.min_p = 0, p.temperature = 9; }, kMostSelected},
      {"typical and XTC", [](auto& p) { p.typical_p = 0.5f, p.xtc_probability = 0.5f; }, kMostSelected},
      {"dynamic temperature", [](auto& p) { p.dynatemp_range = 0.7f; }, kMostSelected},
      {"penalties without tokens", [](auto& p) { p.repeat_penalty = 1.3f, p.repeat_last_n = 0; }, kMostSelected},
      {"top_k 65", [](auto& p) { p.top_k = 65, p.temperature = 9; }, 0},
      {"no top_k", [](auto& p) { p.top_k = 0; }, 0},
      {"top_k of the vocabulary", [](auto& p) { p.top_k = 1000000; }, 0},
      {"bias",
       [](auto& p) {
         p.logit_bias = {{7, 30.0f}};
       },
       0},
      {"greedy with a bias",
       [](auto& p) {
         p.temperature = 0, p.logit_bias = {{7, 30.0f}};
       },
       0},
      {"repeat penalty", [](auto& p) { p.repeat_penalty = 1.3f; }, 0},
      {"greedy with a presence penalty", [](auto& p) { p.temperature = 0, p.presence_penalty = 9; }, 0},
      {"DRY", [](auto& p) { p.dry_multiplier = 4; }, 0},
      {"top-n-sigma", [](auto& p) { p.top_n_sigma = 1; }, 0},
      {"mirostat", [](auto& p) { p.mirostat = 2; }, 0},
  };
  return kChains;
}

TEST_CASE("every chain gives the text of the CPU, and fetches no more than it needs") {
  for (const Chain& chain : chains()) {
    CAPTURE(chain.name);
    SamplingParams sampling;
    chain.set(sampling);
    const Request request = request_with(sampling);
    Island island;
    REQUIRE(island.engine().submit(request));
    std::map<RequestId, std::vector<TokenId>> texts;
    while (!island.engine().idle()) CHECK(island.step(texts) == island.row_bytes(chain.selected));
    CHECK(texts[1] == text_on_cpu(request));
  }
}

// Allows the tokens of one class modulo `classes`, which depends on all tokens before.
class OneClass final : public TokenMask {
 public:
  explicit OneClass(uint64_t classes) : classes_(classes) {}
  AllowedTokens allowed() override {
    uint64_t state = 0;
    for (const TokenId token : accepted_) state = state * 5 + static_cast<uint64_t>(token);
    bits_.assign(8, 0);
    for (size_t token = state % classes_; token < 512; token += classes_)
      bits_[token / 64] |= uint64_t{1} << (token % 64);
    return bits_;
  }
  void accept(TokenId token) override {
    REQUIRE(allows(token));
    accepted_.push_back(token);
  }
  void rollback(int64_t n) override { accepted_.resize(accepted_.size() - static_cast<size_t>(n)); }
  std::unique_ptr<TokenMask> clone() const override { return std::make_unique<OneClass>(*this); }

 private:
  uint64_t classes_;
  std::vector<TokenId> accepted_;
  std::vector<uint64_t> bits_;
};

Request masked_request(const SamplingParams& sampling, uint64_t classes, RequestId id = 1) {
  Request request = request_with(sampling, id);
  request.mask = std::make_shared<OneClass>(classes);
  return request;
}

TEST_CASE("with a mask the best logits suffice, or the row is fetched as well") {
  struct Case {
    const char* name;
    float temperature;
    int top_k;
    uint64_t classes;
    bool sometimes_enough, sometimes_too_few;  // whether the mask leaves enough of the best logits
  };
  for (const Case& c :
       {Case{"greedy, many allowed", 0, 40, 3, true, false}, Case{"greedy, few allowed", 0, 40, 200, true, true},
        Case{"top_k 5", 2, 5, 3, true, false}, Case{"top_k 5, few allowed", 2, 5, 40, false, true},
        Case{"top_k 21", 2, 21, 3, true, true}, Case{"top_k 64", 2, 64, 3, false, true}}) {
    CAPTURE(c.name);
    SamplingParams sampling;
    sampling.temperature = c.temperature, sampling.top_k = c.top_k;
    Request request = masked_request(sampling, c.classes);
    request.max_new_tokens = 60;
    Island island;
    REQUIRE(island.engine().submit(request));
    std::map<RequestId, std::vector<TokenId>> texts;
    int n_enough = 0, n_too_few = 0;
    while (!island.engine().idle()) {
      const int64_t bytes = island.step(texts), selected = island.row_bytes(kMostSelected);
      ++(bytes == selected ? n_enough : n_too_few);
      CHECK((bytes == selected || bytes == selected + 4 * island.engine().model().n_vocab()));
    }
    CHECK((n_enough > 0) == c.sometimes_enough);
    CHECK((n_too_few > 0) == c.sometimes_too_few);
    CHECK(texts[1] == text_on_cpu(request));
  }
}

TEST_CASE("a request whose logits are reported gets them all") {
  Request request = request_with({});
  request.report_logits = true;
  Island island;
  int rows = 0;
  island.engine().on_logits([&](RequestId, int64_t, std::span<const float> row) {
    ++rows;
    CHECK(static_cast<int>(row.size()) == island.engine().model().n_vocab());
  });
  REQUIRE(island.engine().submit(request));
  std::map<RequestId, std::vector<TokenId>> texts;
  while (!island.engine().idle()) CHECK(island.step(texts) == island.row_bytes(0));
  CHECK(rows == kNew);
  CHECK(texts[1] == text_on_cpu(request));
}

TEST_CASE("if one sequence of a step needs all logits, all sequences get them") {
  SamplingParams greedy, plain, penalized;
  greedy.temperature = 0;
  plain.temperature = 0.5f;
  penalized.repeat_penalty = 1.3f;
  std::vector<Request> requests = {request_with(plain, 1), request_with(plain, 2), request_with(penalized, 3),
                                   request_with(greedy, 4)};
  for (Request& r : requests) r.max_new_tokens = r.id == 3 ? 5 : 60;
  Island island(4);
  for (const Request& r : requests) REQUIRE(island.engine().submit(r));
  std::map<RequestId, std::vector<TokenId>> texts;
  while (!island.engine().idle()) {
    const size_t n_penalized = texts[3].size();
    const int64_t bytes = island.step(texts);
    if (texts[4].size() < 2) continue;  // prompts
    const int rows = n_penalized < 5 ? 4 : 3;
    CHECK(bytes == rows * island.row_bytes(n_penalized < 5 ? 0 : kMostSelected));
  }
  for (const Request& r : requests) CHECK(texts[r.id] == text_on_cpu(r));
}

TEST_CASE("choices and drafts are sampled from the selected logits") {
  SamplingParams hot;
  hot.temperature = 3;
  Request request = request_with(hot);
  const std::vector<TokenId> expected = text_on_cpu(request);
  Island island(3, 4);
  request.choices = {2, 3};
  REQUIRE(island.engine().submit(request));
  std::map<RequestId, std::vector<TokenId>> texts;
  for (int n_steps = 0; !island.engine().idle(); ++n_steps) {
    REQUIRE(n_steps < 100);
    if (texts[1].size() == 3) {
      std::vector<TokenId> drafts(expected.begin() + 3, expected.begin() + 7);
      drafts[2] = (drafts[2] + 1) % island.engine().model().n_vocab();
      island.engine().propose(1, drafts);
    }
    const int64_t bytes = island.step(texts);
    CHECK(bytes <= 7 * island.row_bytes(kMostSelected));  // three sequences, four drafts
  }
  CHECK(island.engine().scheduler().stats().drafts.proposed > 0);
  CHECK(texts[1] == expected);
  for (const RequestId id : {2, 3}) {
    Request alone = request_with(hot);
    alone.sampling.seed = *alone.sampling.seed + id - 1;
    CHECK(texts[id] == text_on_cpu(alone));
  }
}

TEST_CASE("masked choices and drafts are sampled from the rows that are fetched") {
  SamplingParams hot;
  hot.temperature = 3, hot.top_k = 21;
  Request request = masked_request(hot, 3);
  request.max_new_tokens = 40;
  const std::vector<TokenId> expected = text_on_cpu(request);
  Request without_choices = request;
  Island island(3, 4);
  request.choices = {2, 3};
  REQUIRE(island.engine().submit(request));
  std::map<RequestId, std::vector<TokenId>> texts;
  bool fetched = false, not_fetched = false;
  for (int n_steps = 0; !island.engine().idle(); ++n_steps) {
    REQUIRE(n_steps < 100);
    const size_t n = texts[1].size();
    if (n >= 3 && n + 4 < expected.size()) {
      std::vector<TokenId> drafts(expected.begin() + static_cast<std::ptrdiff_t>(n),
                                  expected.begin() + static_cast<std::ptrdiff_t>(n) + 4);
      if (n_steps % 2 == 0) drafts[2] = (drafts[2] + 3) % island.engine().model().n_vocab();
      island.engine().propose(1, drafts);
    }
    const int64_t bytes = island.step(texts), row = 4 * island.engine().model().n_vocab();
    fetched = fetched || bytes >= row;
    not_fetched = not_fetched || bytes < row;
  }
  CHECK(fetched);
  CHECK(not_fetched);
  CHECK(island.engine().scheduler().stats().drafts.accepted > 4);
  CHECK(texts[1] == expected);
  for (const RequestId id : {2, 3}) {
    Request alone = without_choices;
    alone.sampling.seed = *alone.sampling.seed + id - 1;
    CHECK(texts[id] == text_on_cpu(alone));
  }
}

}  // namespace
}  // namespace infer
