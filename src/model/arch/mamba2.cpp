// mamba2: Mamba-2 layers, without attention or feed-forward.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Mamba2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes_without_attention(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.ssm = read_ssm(reader);
    check_mamba2_sizes(config);
    mark_recurrent_layers(config, mamba2_state_values(config.ssm));
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.mamba = declare_mamba2(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);  // [n_tokens, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.norm, eps));  // [n_tokens, n_embd]
      h = mamba2(g, h, w.mamba, config, model.state_desc(i));            // [n_tokens, n_inner]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_inner]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      h = named(g, i, "attn_out", linear(g, h, w.mamba.out));  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, h));                     // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* norm = nullptr;  // [n_embd]
    Mamba2Weights mamba;
  };

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_mamba2() { return std::make_unique<Mamba2>(); }

}  // namespace infer
