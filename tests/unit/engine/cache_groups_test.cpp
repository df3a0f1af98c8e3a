// A model with two full cache groups: blocks of one group are written and copied without touching the other's.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "src/engine/engine.h"
#include "src/model/arch/architecture.h"
#include "src/model/random_model.h"

namespace infer {
namespace {

// Llama with layers alternating between two cache groups.
class TwoGroups final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override { return llama_->read_config(reader); }
  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    llama_->declare_weights(weights, config);
  }
  std::vector<CacheGroup> cache_groups(const ModelConfig& config) const override {
    std::vector<CacheGroup> groups(2);
    for (int32_t layer = 0; layer < config.n_layer; ++layer) {
      groups[static_cast<size_t>(layer % 2)].layers.push_back(layer);
    }
    return groups;
  }
  ModelOutputs build_graph(Graph& graph, const Model& model, CacheTypes cache) const override {
    return llama_->build_graph(graph, model, cache);
  }

 private:
  std::unique_ptr<Architecture> llama_ = create_architecture("llama");
};

std::shared_ptr<Model> tiny_model(int n_groups) {
  const auto path = std::filesystem::temp_directory_path() / ("infer_groups_" + std::to_string(getpid()) + ".gguf");
  write_random_model("tiny", "Q8_0", path.string());
  const auto file = GgufFile::open(path.string());
  std::filesystem::remove(path);
  return n_groups == 1 ? load_model(file) : load_model(file, std::make_unique<TwoGroups>());
}

constexpr int kBlocks = 24, kLongest = 100;  // blocks of a group, tokens of a sequence

std::unique_ptr<ModelRunner> make_runner(int n_groups) {
  RunnerOptions options;
  DeviceOptions device;
  device.n_threads = 1;
  options.devices = open_devices({"cpu"}, device);
  options.n_blocks.assign(static_cast<size_t>(n_groups), kBlocks);
  options.capacity = {kLongest, 1, 1, n_groups, static_cast<int>(blocks_for(kLongest)), 1};
  return std::make_unique<ModelRunner>(tiny_model(n_groups), options);
}

// A text whose first `computed` tokens have their keys and values in the blocks of `tables`.
struct Text {
  std::vector<TokenId> tokens;
  int64_t computed = 0;
  std::vector<std::vector<BlockId>> tables;  // one per group
};

// Computes the rest of the text and returns the logits of its last token.
std::vector<float> compute(ModelRunner& runner, Text& text) {
  StepInputs step({kLongest, 1, 1, static_cast<int>(text.tables.size()), static_cast<int>(blocks_for(kLongest)), 1});
  std::vector<std::span<const int32_t>> tables(text.tables.begin(), text.tables.end());
  const int64_t n = static_cast<int64_t>(text.tokens.size());
  const int sequence = step.add_sequence(tables, static_cast<int>(n));
  for (int64_t i = text.computed; i < n; ++i) {
    step.add_token(sequence, text.tokens[static_cast<size_t>(i)], static_cast<int32_t>(i), i + 1 == n);
  }
  runner.run(step);
  text.computed = n;
  const auto logits = runner.logits(0);
  return {logits.begin(), logits.end()};
}

// Texts that begin, continue, fork and end at random. Blocks of the two groups are allocated in different orders.
class TwoGroupsDriver {
 public:
  explicit TwoGroupsDriver(uint32_t seed) : random_(seed), free_(2) {
    for (auto& blocks : free_) {
      for (BlockId b = 0; b < kBlocks; ++b) blocks.push_back(b);
      std::shuffle(blocks.begin(), blocks.end(), random_);
    }
  }

  void act() {
    const auto kind = random_() % 4;
    if (texts_.empty() || kind == 0) {
      begin();
    } else if (kind == 1) {
      fork(texts_[random_() % texts_.size()]);
    } else if (Text& text = texts_[random_() % texts_.size()]; text.tokens.size() + 5 < kLongest) {
      extend(text, 1 + random_() % 4);
    } else {
      end();
    }
    while (texts_.size() > 4) end();
  }
  int n_forks() const { return n_forks_; }

 private:
  void begin() {
    texts_.push_back({{}, 0, std::vector<std::vector<BlockId>>(2)});
    extend(texts_.back(), 1 + random_() % 70);
  }

  void extend(Text& text, size_t n) {
    for (size_t i = 0; i < n; ++i) text.tokens.push_back(static_cast<TokenId>(3 + random_() % 500));
    for (size_t g = 0; g < 2; ++g) {
      while (static_cast<int64_t>(text.tables[g].size()) < blocks_for(static_cast<int64_t>(text.tokens.size()))) {
        text.tables[g].push_back(take(g));
      }
    }
    Text alone{text.tokens, 0, {{}}};
    for (BlockId b = 0; b < blocks_for(kLongest); ++b) alone.tables[0].push_back(b);
    const std::vector<float> expected = compute(*one_group_, alone), found = compute(*two_groups_, text);
    REQUIRE(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(float)) == 0);
  }

  // All blocks of both groups are copied.
  void fork(const Text& parent) {
    Text child{parent.tokens, parent.computed, std::vector<std::vector<BlockId>>(2)};
    for (size_t g = 0; g < 2; ++g) {
      for (const BlockId from : parent.tables[g]) {
        child.tables[g].push_back(take(g));
        two_groups_->copy_block(static_cast<int>(g), from, child.tables[g].back());
      }
    }
    texts_.push_back(std::move(child));
    ++n_forks_;
  }

  void end() {
    const auto text = texts_.begin() + static_cast<std::ptrdiff_t>(random_() % texts_.size());
    for (size_t g = 0; g < 2; ++g) free_[g].insert(free_[g].begin(), text->tables[g].begin(), text->tables[g].end());
    texts_.erase(text);
  }

  BlockId take(size_t g) {
    const BlockId block = free_[g].back();
    free_[g].pop_back();
    return block;
  }

  std::mt19937 random_;
  std::vector<std::vector<BlockId>> free_;  // one list per group
  std::vector<Text> texts_;
  std::unique_ptr<ModelRunner> one_group_ = make_runner(1), two_groups_ = make_runner(2);
  int n_forks_ = 0;
};

TEST_CASE("a block copied in one cache group does not change the blocks of the other") {
  TwoGroupsDriver driver(3);
  for (int i = 0; i < 400; ++i) driver.act();
  CHECK(driver.n_forks() > 40);
}

TEST_CASE("a model with two full cache groups gives the results of one") {
  const auto answers = [](int n_groups) {
    EngineOptions options;
    options.context = 256;
    options.n_threads = 1;
    options.max_sequences = 3;
    options.cache_tokens = 256;
    Engine engine(tiny_model(n_groups), options);
    std::map<RequestId, std::vector<TokenId>> tokens;
    for (RequestId id = 10; id < 40; id += 10) {
      Request request;
      request.id = id;
      for (TokenId t = 0; t < 40; ++t) request.prompt.push_back(10 + t);
      request.choices = {id + 1, id + 2};
      request.max_new_tokens = 30;
      request.sampling.seed = id;
      REQUIRE(engine.submit(request));
    }
    while (!engine.idle()) {
      for (const Progress& p : engine.step()) {
        tokens[p.id].insert(tokens[p.id].end(), p.tokens.begin(), p.tokens.end());
      }
    }
    return tokens;
  };
  CHECK(answers(1) == answers(2));
}

}  // namespace
}  // namespace infer
