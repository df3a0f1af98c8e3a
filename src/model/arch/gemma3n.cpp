// gemma3n: four residual streams, of which a layer computes one; a low-rank branch in parallel with attention; an input
// per layer; sparse gates in the first layers. The last layers read the keys and values of earlier ones. Heads are
// normalized, values without weights; sliding-window layers have a different rope base.
#include <algorithm>
#include <cmath>
#include <limits>

#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

constexpr int kStreams = 4;
constexpr int kBranchRank = 64;
constexpr int kInputWidth = 256;  // of a layer's input
constexpr int kStoringLayers = 20;
constexpr int kSparseLayers = 10;
constexpr float kSparsity = 1.6448534f;  // standard deviations above the mean: 95 % of a normal distribution are below
constexpr float kNotSparse = -std::numeric_limits<float>::infinity();

class Gemma3n final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    reader.count("attention.sliding_window", 1, kMaxContext);
    read_windows(reader, config, 0, 5);
    config.rope_window = without_scaling(config.rope);
    config.rope_window.freq_base = static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, 10000));
    read_shared_caches(reader, config, std::max(0, config.n_layer - kStoringLayers));
    reader.only("use_parallel_residual", {0});
    reader.only("altup.active_idx", {0});
    reader.only("altup.num_inputs", {kStreams});
    reader.only("embedding_length_per_layer_input", {kInputWidth});
    read_no_experts(reader);
    logits_cap_ = static_cast<float>(reader.number("final_logit_softcapping", 0, 1e6, 30));
    std::vector<float> usual(config.n_layer, kNotSparse);
    for (int i = 0; i < std::min(config.n_layer, kSparseLayers); ++i) usual[i] = kSparsity;
    sparsity_ = reader.numbers("activation_sparsity_scale", config.n_layer, kNotSparse, 10, usual);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const int64_t d = config.n_embd;
    const WeightRole role = WeightRole::kResidual;
    embedding_ = declare_embedding(weights, config);
    make_ = weights.require_parts(kInputLayer, role, "altup_proj.weight", kStreams - 1, {d, d});
    inputs_ = declare_per_layer_inputs(weights, config, kInputWidth);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.altup = declare_altup(weights, config, i, kStreams);
      w.attn_norm = declare_norm(weights, i, "attn_norm", d);
      w.branch_in = declare_linear(weights, i, role, "laurel_l", kBranchRank, d);
      w.branch_out = declare_linear(weights, i, role, "laurel_r", d, kBranchRank);
      w.branch_norm = declare_norm(weights, i, "laurel_post_norm", d);
      w.attn = declare_normalized_attention(weights, config, i);
      w.attn_post_norm = declare_norm(weights, i, "post_attention_norm", d);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", d);
      w.ffn = declare_gated_feed_forward(weights, config, i);
      w.ffn_post_norm = declare_norm(weights, i, "post_ffw_norm", d);
      w.correct_scale = weights.require(i, role, "altup_correct_scale.weight", {d});
      w.per_layer = declare_per_layer(weights, config, i, kInputWidth);
    }
    merge_ = weights.require_parts(kOutputLayer, role, "altup_unembd_proj.weight", kStreams - 1, {d, d});
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", d);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    const ValueId x = g.scale(embed(g, *embedding_), std::sqrt(static_cast<float>(config.n_embd)));
    const ValueId inputs = per_layer_inputs(g, x, inputs_, config);  // [n_tokens, n_layer * kInputWidth]
    const WindowTables tables = {g.rope_table(config.rope), g.rope_table(config.rope_window)};
    ValueId streams = make_streams(g, x, make_);  // [n_tokens, kStreams, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId input = g.view_columns(inputs, int64_t{i} * kInputWidth, kInputWidth);  // [n_tokens, kInputWidth]
      streams = predict_streams(g, streams, w.altup, eps);
      ValueId h = named(g, i, "attn_norm", g.rms_norm(stream_of(g, streams, 0), w.attn_norm, eps));
      ValueId branch = g.add(g.rms_norm(linear(g, linear(g, h, w.branch_in), w.branch_out), w.branch_norm, eps), h);
      // [n_tokens, n_head * value_dim]
      h = normalized_attention(g, h, w.attn, config, i, tables, model.cache_desc(i, cache));
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);                      // [n_outputs, n_head * value_dim]
        branch = g.select_rows(branch);            // [n_outputs, n_embd]
        input = g.select_rows(input);              // [n_outputs, kInputWidth]
        streams = select_stream_rows(g, streams);  // [n_outputs, kStreams, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.heads.out));  // [n_rows, n_embd]
      h = g.add(g.rms_norm(h, w.attn_post_norm, eps), stream_of(g, streams, 0));
      const ValueId attended = g.scale(g.add(h, branch), 1 / std::sqrt(2.0f));  // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(attended, w.ffn_norm, eps));                          // [n_rows, n_embd]
      h = g.rms_norm(named(g, i, "ffn_out", feed_forward(g, h, w.ffn, i)), w.ffn_post_norm, eps);  // [n_rows, n_embd]
      streams = correct_streams(g, streams, g.add(h, attended), w.altup, eps);
      h = g.mul(stream_of(g, streams, 0), g.weight(*w.correct_scale));  // [n_rows, n_embd]
      streams = add_to_other_streams(g, streams, per_layer_embedding(g, h, input, w.per_layer, eps));
      named(g, i, "out", stream_of(g, streams, 0));
    }
    g.set_layer(kOutputLayer);
    const ValueId merged = merge_streams(g, streams, merge_);                        // [n_outputs, n_embd]
    const ValueId hidden = g.rms_norm(merged, output_norm_, eps);                    // [n_outputs, n_embd]
    const ValueId logits = soft_cap(g, head_logits(g, hidden, head_), logits_cap_);  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    AltupWeights altup;
    const Weight* attn_norm = nullptr;    // [n_embd]
    Linear branch_in;                     // [kBranchRank, n_embd]
    Linear branch_out;                    // [n_embd, kBranchRank]
    const Weight* branch_norm = nullptr;  // [n_embd]
    NormalizedAttentionWeights attn;
    const Weight* attn_post_norm = nullptr;  // [n_embd]
    const Weight* ffn_norm = nullptr;        // [n_embd]
    GatedFeedForwardWeights ffn;
    const Weight* ffn_post_norm = nullptr;  // [n_embd]
    const Weight* correct_scale = nullptr;  // [n_embd], scales the first stream before the layer's input
    PerLayerWeights per_layer;
  };

  // x [n_rows, n_embd] -> [n_rows, n_embd].
  ValueId feed_forward(Graph& g, ValueId x, const GatedFeedForwardWeights& w, int layer) const {
    ValueId gate = linear(g, x, w.gate);  // [n_rows, n_ff]
    if (sparsity_[layer] > kNotSparse) gate = g.sparsify(gate, sparsity_[layer]);
    return linear(g, g.gated_activation(gate, linear(g, x, w.up), UnaryKind::kGeluTanh), w.down);
  }

  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  PerLayerInputWeights inputs_;
  std::vector<const Weight*> make_, merge_;  // the streams' matrices, [kStreams - 1] times [n_embd, n_embd]
  std::vector<Layer> layers_;                // [n_layer]
  const Weight* output_norm_ = nullptr;      // [n_embd]
  Linear head_;                              // [n_vocab, n_embd]
  std::vector<float> sparsity_;              // [n_layer], deviations, or kNotSparse
  float logits_cap_ = 0;                     // 0: none
};

}  // namespace

std::unique_ptr<Architecture> create_gemma3n() { return std::make_unique<Gemma3n>(); }

}  // namespace infer
