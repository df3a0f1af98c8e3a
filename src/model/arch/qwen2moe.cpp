// qwen2moe: qwen2 with routed experts, whose softmax weights stay as they are, and a shared expert with a sigmoid gate.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Qwen2Moe final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_decoder_config(reader);
    read_experts(reader, config, /*normalized=*/false);
    require_experts(config);
    config.n_ff_shared_expert = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
    if (config.n_ff_shared_expert == 0) config.n_ff_shared_expert = config.layers[0].n_ff;
    reader.only("expert_shared_count", {0, 1});
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kNone);
    const int64_t d = config.n_embd, f = config.n_ff_shared_expert;
    for (int i = 0; i < config.n_layer; ++i) {
      ExpertWeights& w = experts_.emplace_back(declare_experts(weights, config, i));
      w.shared.gate = weights.require(i, "ffn_gate_shexp.weight", {f, d});
      w.shared.up = weights.require(i, "ffn_up_shexp.weight", {f, d});
      w.shared.down = weights.require(i, "ffn_down_shexp.weight", {d, f});
      w.shared_gate = weights.require(i, "ffn_gate_inp_shexp.weight", {1, d});
    }
  }

  ModelOutputs build_graph(Graph& graph, const Model& model) const override {
    MoeRouteParams route;
    route.n_used = model.config().n_expert_used;
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

std::unique_ptr<Architecture> create_qwen2moe() { return std::make_unique<Qwen2Moe>(); }

}  // namespace infer
