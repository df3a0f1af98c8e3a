// llama: Llama 1 to 3, Mistral, Mixtral and many more. Interleaved rotation, gated SiLU or routed experts.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Llama final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_decoder_config(reader);
    read_experts(reader, config, /*normalized=*/true);
    reader.only("expert_shared_count", {0});
    reader.only("expert_shared_feed_forward_length", {0});
    if (config.n_ff_expert == 0) config.n_ff_expert = config.layers[0].n_ff;
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kNone);
    decoder_.rope_factors = weights.optional(kInputLayer, "rope_freqs.weight", {config.rope.n_dims / 2});
    for (int i = 0; i < config.n_layer; ++i) {
      if (config.n_expert > 0) experts_.push_back(declare_experts(weights, config, i));
      else dense_.push_back(declare_feed_forward(weights, config, i, Gate::kRequired));
    }
  }

  ModelOutputs build_graph(Graph& graph, const Model& model) const override {
    MoeRouteParams route;
    route.n_used = model.config().n_expert_used;
    route.normalize = true;
    DecoderOptions options;
    options.interleaved_rope = true;
    options.feed_forward = [&](Graph& g, int layer, ValueId x) {
      return experts_.empty() ? feed_forward(g, x, dense_[layer], UnaryKind::kSilu)
                              : experts(g, x, experts_[layer], route, UnaryKind::kSilu);
    };
    return build_decoder(graph, model, decoder_, options);
  }

 private:
  DecoderWeights decoder_;
  std::vector<FeedForwardWeights> dense_;  // one of the two, [n_layer]
  std::vector<ExpertWeights> experts_;
};

}  // namespace

std::unique_ptr<Architecture> create_llama() { return std::make_unique<Llama>(); }

}  // namespace infer
