// arcee: as llama, but the feed forward is a squared ReLU without a gate.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Arcee final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    read_no_experts(reader);
    return read_decoder_config(reader);
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kNone);
    decoder_.rope_factors = weights.optional(kInputLayer, "rope_freqs.weight", {config.rope.n_dims / 2});
    for (int i = 0; i < config.n_layer; ++i) {
      dense_.push_back(declare_feed_forward(weights, config, i, Gate::kNone));
    }
  }

  ModelOutputs build_graph(Graph& graph, const Model& model) const override {
    DecoderOptions options;
    options.interleaved_rope = true;
    options.feed_forward = [&](Graph& g, int layer, ValueId x) {
      return feed_forward(g, x, dense_[layer], UnaryKind::kReluSquared);
    };
    return build_decoder(graph, model, decoder_, options);
  }

 private:
  DecoderWeights decoder_;
  std::vector<FeedForwardWeights> dense_;  // [n_layer]
};

}  // namespace

std::unique_ptr<Architecture> create_arcee() { return std::make_unique<Arcee>(); }

}  // namespace infer
