// qwen4exp: several residual streams; gated delta-net layers mixed with gated attention, which may be restricted to
// positions that an indexer selects; embeddings of hashed n-grams before one layer; routed experts plus a gated shared
// one.
#include "ggml-like/message.h"
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class Qwen4Exp final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    read_position_sections(reader, config);
    reader.only("use_parallel_residual", {0});
    read_mixture(reader, config);
    require_experts(config);
    config.ssm = read_ssm(reader);
    check_delta_net_sizes(config);
    read_delta_net_layers(reader, config);
    n_stream_ = reader.count("hyper_connection.count", 2, kMaxStreams);
    rank_ = reader.count("hyper_connection.low_rank", 1, kMaxWidth);
    read_indexer(reader, config);
    read_index_strides(reader, config);
    ngrams_ = read_ngram_embedding(reader, config);
    if (ngrams_.layer >= 0) {
      LayerConfig& layer = config.layers[ngrams_.layer];
      layer.recent_ids = ngrams_.tables->state_values();
      ngram_state_ = layer.state_values;
      layer.state_values += ngrams_.conv_values(int64_t{n_stream_} * config.n_embd);
    }
    attention_scale_ = static_cast<float>(reader.number("attention.scale", 0, 1e6, 0));
    if (attention_scale_ == 0) attention_scale_ = attention_scale(config);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const int64_t d = config.n_embd;
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_streams = declare_gated_streams(weights, i, "hc_attn", n_stream_, d, rank_);
      if (config.layers[i].n_kv_head > 0) {
        w.attn = declare_gated_attention(weights, config, i);
        w.out = w.attn.out;
        if (config.layers[i].indexed) w.indexer = declare_normalized_indexer(weights, config, i);
        else ignore_normalized_indexer(weights, i);
      } else {
        w.delta = declare_delta_net(weights, config, i);
        w.out = w.delta.out;
      }
      w.ffn_streams = declare_gated_streams(weights, i, "hc_ffn", n_stream_, d, rank_);
      w.mixture = declare_mixture(weights, config, i);
    }
    if (ngrams_.layer >= 0) ngram_weights_ = declare_ngram_embedding(weights, config, ngrams_, n_stream_);
    output_streams_ = declare_gated_output(weights, "output_hc", n_stream_, d, rank_);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    const ValueId table = g.rope_table(config.rope);                            // [n_tokens, rope.n_dims / 2, 2]
    ValueId streams = make_equal_streams(g, embed(g, *embedding_), n_stream_);  // [n_tokens, n_stream, n_embd]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      if (i == ngrams_.layer) {
        const CacheDesc state = after(model.state_desc(i), ngram_state_);
        streams = add_ngram_embedding(g, streams, ngram_weights_, ngrams_, eps, model.token_ids_desc(i), state);
      }
      GatedStreamInput in = read_gated_streams(g, streams, w.attn_streams, eps);
      ValueId h = named(g, i, "attn_norm", in.x);  // [n_tokens, n_embd]
      if (w.attn.out.weight) {
        h = attend(g, h, w, model, i, table, cache);  // [n_tokens, n_head * value_dim]
      } else {
        const DeltaRuleParams heads{.tiled_heads = true};
        h = delta_net(g, h, w.delta, config, heads, model.state_desc(i), UnaryKind::kSigmoid);  // [n_tokens, n_inner]
      }
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);                        // [n_outputs, n_head * value_dim or n_inner]
        streams = select_stream_rows(g, streams);    // [n_outputs, n_stream, n_embd]
        in.write = select_stream_rows(g, in.write);  // [n_outputs, n_stream, 1]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.out));        // [n_rows, n_embd]
      streams = write_gated_streams(g, streams, h, in.write);  // [n_rows, n_stream, n_embd]

      in = read_gated_streams(g, streams, w.ffn_streams, eps);
      h = named(g, i, "ffn_out", mixture(g, named(g, i, "ffn_norm", in.x), w.mixture, config));  // [n_rows, n_embd]
      streams = write_gated_streams(g, streams, h, in.write);
      named(g, i, "out", stream_of(g, streams, 0));
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = read_gated_streams(g, streams, output_streams_, eps).x;  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);                           // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  static constexpr int kMaxStreams = 64;

  struct Layer {
    GatedStreamWeights attn_streams;
    GatedAttentionWeights attn;
    NormalizedIndexerWeights indexer;  // only for attention to selected positions
    DeltaNetWeights delta;             // of layers without attention
    Linear out;                        // of attention or delta: [n_embd, n_head * value_dim or n_inner]
    GatedStreamWeights ffn_streams;
    MixtureWeights mixture;
  };

  // x [n_tokens, n_embd] -> [n_tokens, n_head * value_dim], before `out`.
  ValueId attend(Graph& g, ValueId x, const Layer& w, const Model& model, int layer, ValueId table,
                 CacheTypes types) const {
    const ModelConfig& config = model.config();
    const LayerConfig& l = config.layers[layer];
    SelectedCaches caches{.kv = model.cache_desc(layer, types), .index = {}, .state = {}};
    if (!l.indexed) return gated_attention(g, x, w.attn, config, layer, table, caches.kv, attention_scale_);
    caches.index = model.index_desc(layer, types);
    if (l.index_stride > 1) caches.state = model.state_desc(layer);
    return gated_attention_to_selected(g, x, w.attn, w.indexer, config, layer, table, caches, attention_scale_);
  }

  int n_stream_ = 0, rank_ = 0;  // of the residual streams and their gates
  NgramConfig ngrams_;
  int64_t ngram_state_ = 0;  // offset of its convolution's state in the layer's slot
  float attention_scale_ = 0;
  const Weight* embedding_ = nullptr;  // [n_vocab, n_embd]
  NgramWeights ngram_weights_;
  std::vector<Layer> layers_;  // [n_layer]
  GatedStreamWeights output_streams_;
  Linear head_;  // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_qwen4exp() { return std::make_unique<Qwen4Exp>(); }

}  // namespace infer
