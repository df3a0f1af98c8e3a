// qwen2: rotation of halves, biases on queries, keys and values.
#include "src/model/arch/architecture.h"
#include "src/model/decoder.h"

namespace infer {
namespace {

class Qwen2 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    read_no_experts(reader);
    return read_decoder_config(reader);
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    decoder_ = declare_decoder(weights, config, HeadNorms::kNone);
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

std::unique_ptr<Architecture> create_qwen2() { return std::make_unique<Qwen2>(); }

}  // namespace infer
