// A model whose odd layers see only a window of positions. Releasing blocks behind the window, and prefix hits that
// need only the window's blocks, give the same bits as keeping everything.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "tests/unit/engine/engine_world.h"

namespace infer {
namespace {

using namespace infer::test;

constexpr int kWindow = 40;

// Attention without feed-forward; the odd layers are in a group of the given kind.
class Windowed final : public Architecture {
 public:
  explicit Windowed(CacheKind kind) : kind_(kind) {}

  ModelConfig read_config(ConfigReader& reader) override { return llama_->read_config(reader); }
  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      norms_.push_back(declare_norm(weights, i, "attn_norm", config.n_embd));
      attention_.push_back(declare_attention(weights, config, i));
      declare_norm(weights, i, "ffn_norm", config.n_embd);
      declare_gated_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }
  std::vector<CacheGroup> cache_groups(const ModelConfig& config) const override {
    std::vector<CacheGroup> groups(2);
    groups[1].kind = kind_;
    groups[1].window = kWindow;
    for (int32_t layer = 0; layer < config.n_layer; ++layer) groups[layer % 2].layers.push_back(layer);
    return groups;
  }
  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    ValueId x = embed(g, *embedding_);  // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope, nullptr);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const AttentionWeights& w = attention_[i];
      const ValueId h = g.rms_norm(x, norms_[i], config.norm_eps);
      const ValueId q = rope_interleaved(g, split_heads(g, linear(g, h, w.q), config.key_dim), table);
      const ValueId k = rope_interleaved(g, split_heads(g, linear(g, h, w.k), config.key_dim), table);
      const ValueId v = split_heads(g, linear(g, h, w.v), config.value_dim);
      const AttentionParams params = {.scale = attention_scale(config), .window = i % 2 == 1 ? kWindow : 0};
      x = g.add(x, linear(g, attention(g, q, k, v, model.cache_desc(i, cache), params), w.out));
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(g.select_rows(x), output_norm_, config.norm_eps);  // [n_outputs, n_embd]
    return model_outputs(g, hidden, head_logits(g, hidden, head_));
  }

 private:
  CacheKind kind_;
  std::unique_ptr<Architecture> llama_ = create_architecture("llama");
  const Weight* embedding_ = nullptr;
  std::vector<const Weight*> norms_;
  std::vector<AttentionWeights> attention_;
  const Weight* output_norm_ = nullptr;
  Linear head_;
};

std::shared_ptr<Model> windowed_model(CacheKind kind) {
  return load_model(open_file("Q8_0"), std::make_unique<Windowed>(kind));
}

std::map<RequestId, Answer> answers(Engine& engine) {
  std::vector<std::pair<int, Request>> requests;
  for (int i = 0; i < 6; ++i) {
    Request request = make_request(10 + 10 * i, 170, 40, i / 2);  // two requests each have the same prompt
    if (i % 3 == 0) request.choices = {request.id + 1, request.id + 2};
    requests.emplace_back(25 * i, request);
  }
  return run_all(engine, requests);
}

}  // namespace

TEST_CASE("a window group gives the bits of a full group, with fewer blocks") {
  for (const char* device : {"cpu", "ref"}) {
    CAPTURE(device);
    EngineOptions options = small_options();
    options.devices = {device};
    options.placement.n_gpu_layers = kAllLayers;
    options.max_sequences = 3;
    options.step_tokens = 48;
    Engine full(windowed_model(CacheKind::kFull), options), window(windowed_model(CacheKind::kWindow), options);
    const KvCache& cache = window.scheduler().cache();
    CHECK(cache.pool(1).stats().total < full.scheduler().cache().pool(1).stats().total);
    const auto expected = answers(full), found = answers(window);
    CHECK(found.size() == 10);
    for (const auto& [id, answer] : expected) check_same(answer, found.at(id));
    CHECK(window.scheduler().stats().prefix_hits > 0);
    CHECK(cache.pool(1).stats().evictions > 0);
    CHECK(cache.pool(0).stats().used == 0);
    CHECK(cache.pool(1).stats().used == 0);
  }
}

}  // namespace infer
