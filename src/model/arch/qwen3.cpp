// qwen3: as qwen2 without biases; every head of queries and keys has its norm before the rotation.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Qwen3 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    read_no_experts(reader);
    return read_decoder_config(reader);
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kRequired);
    for (int i = 0; i < config.n_layer; ++i) {
      dense_.push_back(declare_feed_forward(weights, config, i, Gate::kRequired));
    }
  }

  ModelOutputs build_graph(Graph& graph, const Model& model) const override {
    DecoderOptions options;
    options.interleaved_rope = false;
    options.feed_forward = [&](Graph& g, int layer, ValueId x) {
      return feed_forward(g, x, dense_[layer], UnaryKind::kSilu);
    };
    return build_decoder(graph, model, decoder_, options);
  }

 private:
  DecoderWeights decoder_;
  std::vector<FeedForwardWeights> dense_;  // [n_layer]
};

}  // namespace

std::unique_ptr<Architecture> create_qwen3() { return std::make_unique<Qwen3>(); }

}  // namespace infer
