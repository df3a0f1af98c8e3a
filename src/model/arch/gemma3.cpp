// gemma3: five sliding-window layers to one with full attention. The two kinds have different rope bases, and only
// layers with full attention scale positions. Every head of queries and keys is normalized before the rotation.
#include <cmath>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Gemma3 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    read_windows(reader, config, 0, 6);
    reader.only("use_parallel_residual", {0});
    read_no_experts(reader);
    config.rope_window = without_scaling(config.rope);
    config.rope_window.freq_base = static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, 10000));
    // Only the 27B model does not scale by the head size.
    const int scaled_by = config.n_layer == 62 ? config.n_embd / config.layers[0].n_head : config.key_dim;
    attention_scale_ = 1 / std::sqrt(static_cast<float>(scaled_by));
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 0, 1e6, 0));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    layers_.declare(weights, config);
    head_ = declare_head(weights, config, layers_.embedding());
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ValueId hidden = layers_.build(g, model, cache, attention_scale_);         // [n_outputs, n_embd]
    const ValueId logits = soft_cap(g, head_logits(g, hidden, head_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  GemmaLayers layers_;
  float attention_scale_ = 1;
  Linear head_;           // [n_vocab, n_embd]
  float logits_cap_ = 0;  // 0: none
};

}  // namespace

std::unique_ptr<Architecture> create_gemma3() { return std::make_unique<Gemma3>(); }

}  // namespace infer
