// gemma-embedding: an encoder with the layers of gemma3, optionally followed by two linear layers.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class GemmaEmbedding final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    require_encoder(reader, config);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 6);
    read_no_experts(reader);
    for (const char* key : {"dense_2_feat_in", "dense_3_feat_out"}) {  // absent without the linear layers
      reader.only(key, {0, static_cast<double>(config.n_embd)});
    }
    n_inner_ = reader.count("dense_2_feat_out", 0, kMaxWidth, 0);
    reader.only("dense_3_feat_in", {0, static_cast<double>(n_inner_)});
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    layers_.declare(weights, config);
    weights.ignore(kOutputLayer, "output.weight");
    if (!weights.has(kOutputLayer, "dense_2.weight")) return;
    dense_2_ = declare_linear(weights, kOutputLayer, WeightRole::kOutput, "dense_2", n_inner_, config.n_embd);
    dense_3_ = declare_linear(weights, kOutputLayer, WeightRole::kOutput, "dense_3", config.n_embd, n_inner_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    ValueId x = layers_.build(g, model, cache, attention_scale(model.config()));  // [n_outputs, n_embd]
    // The model applies these layers to the mean. They are linear, so applying them before the mean gives the same.
    if (dense_2_.weight) x = linear(g, linear(g, x, dense_2_), dense_3_);  // [n_outputs, n_embd]
    return encoder_outputs(g, x);
  }

 private:
  GemmaLayers layers_;
  int n_inner_ = 0;  // width between the linear layers
  Linear dense_2_;   // [n_inner, n_embd], or empty
  Linear dense_3_;   // [n_embd, n_inner], or empty
};

}  // namespace

std::unique_ptr<Architecture> create_gemma_embedding() { return std::make_unique<GemmaEmbedding>(); }

}  // namespace infer
