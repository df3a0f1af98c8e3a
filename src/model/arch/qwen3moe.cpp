// qwen3moe: qwen3 with routed experts, whose softmax weights are divided by their sum.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Qwen3Moe final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_decoder_config(reader);
    read_experts(reader, config, /*normalized=*/true);
    require_experts(config);
    reader.only("expert_shared_count", {0});
    reader.only("expert_shared_feed_forward_length", {0});
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kRequired);
    for (int i = 0; i < config.n_layer; ++i) experts_.push_back(declare_experts(weights, config, i));
  }

  ModelOutputs build_graph(Graph& graph, const Model& model) const override {
    MoeRouteParams route;
    route.n_used = model.config().n_expert_used;
    route.normalize = true;
    DecoderOptions options;
    options.feed_forward = [&](Graph& g, int layer, ValueId x) {
      return experts(g, x, experts_[layer], route, UnaryKind::kSilu);
    };
    return build_decoder(graph, model, decoder_, options);
  }

 private:
  DecoderWeights decoder_;
  std::vector<ExpertWeights> experts_;  // [n_layer]
};

}  // namespace

std::unique_ptr<Architecture> create_qwen3moe() { return std::make_unique<Qwen3Moe>(); }

}  // namespace infer
