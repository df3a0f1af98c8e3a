// deepseek4: several residual streams; attention to the last positions and to compressed entries, with one vector as
// key and value of all heads; routed experts plus shared ones, selected by the token's id in the first layers.
#include "ggml-like/message.h"
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class DeepSeek4 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    reader.only("attention.causal", {1});
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSqrtSoftplus);
    reader.only("expert_gating_func", {0, 4});
    read_shared_expert(reader, config);
    routed_limits_ = reader.numbers("swiglu_clamp_exp", config.n_layer, 0, 1e6);
    shared_limits_ = reader.numbers("swiglu_clamp_shexp", config.n_layer, 0, 1e6, routed_limits_);
    read_compressed_attention(reader, config);
    hyper_.n_stream = reader.count("hyper_connection.count", 1, kMaxStreams);
    hyper_.sinkhorn_iterations = reader.count("hyper_connection.sinkhorn_iterations", 1, 1000);
    hyper_.eps = static_cast<float>(reader.number("hyper_connection.epsilon", 0, 1));
    n_groups_ = reader.count("attention.output_group_count", 1, config.layers[0].n_head);
    out_rank_ = reader.count("attention.output_lora_rank", 1, kMaxWidth);
    n_hashed_ = reader.count("hash_layer_count", 0, config.n_layer);
    // Files may count prediction layers that they do not contain.
    const int n_further = reader.count("nextn_predict_layers", 0, config.n_layer - 1, 0);
    const std::string further = concat("blk.", config.n_layer - n_further, ".nextn.eh_proj.weight");
    if (n_further > 0 && reader.has_tensor(further)) drop_prediction_layers(reader, config);
    return config;
  }

  std::vector<CacheGroup> cache_groups(const ModelConfig& config) const override {
    return compressed_cache_groups(config);
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const int64_t d = config.n_embd;
    embedding_ = declare_embedding(weights, config);
    ignore_prediction_layers(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_streams = declare_hyper_connection(weights, hyper_, i, "hc_attn", d);
      w.attn_norm = declare_norm(weights, i, "attn_norm", d);
      w.attn = declare_compressed_attention(weights, config, i, n_groups_, out_rank_);
      w.ffn_streams = declare_hyper_connection(weights, hyper_, i, "hc_ffn", d);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", d);
      w.router = declare_router(weights, config, i);
      w.experts = declare_experts(weights, config, i);
      w.shared = declare_shared_expert(weights, config, i);
      weights.ignore(i, "exp_probs_b_vl.bias");  // for images
      if (i >= n_hashed_) continue;
      const Shape shape{config.n_vocab, config.routing.n_used};
      w.experts_of = weights.require_indices(i, WeightRole::kRouter, "ffn_gate_tid2eid.weight", shape, config.n_expert);
    }
    output_streams_ = declare_hyper_output(weights, hyper_, "output_hc", d);
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", d);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId streams = make_equal_streams(g, embed(g, *embedding_), hyper_.n_stream);  // [n_tokens, n_stream, n_embd]
    const CompressedTables plain = compressed_tables(g, config.rope_window, 1);
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      const int stride = config.layers[i].compress;
      HyperInput in = read_streams(g, streams, w.attn_streams, hyper_, eps);
      ValueId h = named(g, i, "attn_norm", g.rms_norm(in.x, w.attn_norm, eps));  // [n_tokens, n_embd]
      const CompressedTables tables = stride == 0 ? plain : compressed_tables(g, config.rope, stride);
      h = compressed_attention(g, h, w.attn, config, i, tables, compressed_caches(model, i, cache));
      h = grouped_output(g, named(g, i, "attn_heads", h), w.attn);  // [n_tokens, n_embd]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);                      // [n_outputs, n_embd]
        streams = select_stream_rows(g, streams);  // [n_outputs, n_stream, n_embd]
        select_hyper_rows(g, in);
      }
      streams = write_streams(g, streams, named(g, i, "attn_out", h), in);  // [n_rows, n_stream, n_embd]

      in = read_streams(g, streams, w.ffn_streams, hyper_, eps);
      h = named(g, i, "ffn_norm", g.rms_norm(in.x, w.ffn_norm, eps));  // [n_rows, n_embd]
      h = named(g, i, "ffn_out", feed_forward(g, h, w, config, i));    // [n_rows, n_embd]
      streams = write_streams(g, streams, h, in);
      named(g, i, "out", stream_of(g, streams, 0));
    }
    g.set_layer(kOutputLayer);
    const ValueId merged = merge_hyper_streams(g, streams, output_streams_, hyper_, eps);  // [n_outputs, n_embd]
    const ValueId hidden = g.rms_norm(merged, output_norm_, eps);                          // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);                                  // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  static constexpr int kMaxStreams = 64;

  struct Layer {
    HyperWeights attn_streams;
    const Weight* attn_norm = nullptr;  // [n_embd]
    CompressedAttentionWeights attn;
    HyperWeights ffn_streams;
    const Weight* ffn_norm = nullptr;  // [n_embd]
    RouterWeights router;
    ExpertWeights experts;
    GatedFeedForwardWeights shared;      // empty without a shared expert
    const Weight* experts_of = nullptr;  // [n_vocab, n_used]: each token's experts; null if scores select them
  };

  // x [n_rows, n_embd] -> [n_rows, n_embd].
  ValueId feed_forward(Graph& g, ValueId x, const Layer& w, const ModelConfig& config, int layer) const {
    const ValueId scores = linear(g, x, w.router.scores);  // [n_rows, n_expert]
    const Graph::Route route = g.moe_route(scores, config.routing, w.router.selection_bias, w.experts_of);
    const ValueId sum = gated_experts(g, x, w.experts, route, input_limited_swiglu(routed_limits_[layer]));
    if (!w.shared.up.weight) return sum;
    return g.add(sum, gated_feed_forward(g, x, w.shared, input_limited_swiglu(shared_limits_[layer])));
  }

  HyperConfig hyper_;
  int n_groups_ = 1, out_rank_ = 0;                   // of the output's first matrices
  int n_hashed_ = 0;                                  // layers that select experts by the token's id
  std::vector<float> routed_limits_, shared_limits_;  // [block_count]
  const Weight* embedding_ = nullptr;                 // [n_vocab, n_embd]
  std::vector<Layer> layers_;                         // [n_layer]
  HyperWeights output_streams_;
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_deepseek4() { return std::make_unique<DeepSeek4>(); }

}  // namespace infer
