// minimax-m3: normalized heads with partial NeoX rope; leading dense layers, then layers with routed experts plus
// shared ones, whose attention is restricted to blocks of positions that an indexer selects for each head of keys and
// values.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"

namespace infer {
namespace {

class MiniMaxM3 final : public Architecture {
 public:
  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_rms_norm_eps(reader);
    config.rope = read_rope(reader, config);
    require_full_causal_attention(reader, config);
    reader.only("use_parallel_residual", {0});
    read_experts(reader, config);
    require_experts(config);
    read_routing(reader, config, Gating::kSigmoid);
    read_shared_expert(reader, config);
    read_indexer(reader, config);
    SelectParams& select = config.indexer.select;
    select.sum_heads = false;
    select.block = reader.count("attention.indexer.block_size", 1, kMaxContext);
    select.n_last = reader.count("attention.indexer.local_blocks", 0, select.count);
    const int n_dense = reader.count("leading_dense_block_count", 0, config.n_layer, 0);
    for (int i = n_dense; i < config.n_layer; ++i) {
      LayerConfig& l = config.layers[i];
      l.sparse = l.indexed = true;
      if (l.n_kv_head != config.indexer.n_head) {
        reader.only("attention.indexer.head_count", {static_cast<double>(l.n_kv_head)});
      }
    }
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    embedding_ = declare_embedding(weights, config);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn_norm = declare_norm(weights, i, "attn_norm", config.n_embd);
      w.attn = declare_joined_attention(weights, config, i);
      w.q_norm = declare_norm(weights, i, "attn_q_norm", config.key_dim);
      w.k_norm = declare_norm(weights, i, "attn_k_norm", config.key_dim);
      if (config.layers[i].indexed) w.indexer = declare_normalized_indexer(weights, config, i);
      w.ffn_norm = declare_norm(weights, i, "ffn_norm", config.n_embd);
      w.ffn = declare_layer_feed_forward(weights, config, i);
    }
    output_norm_ = declare_norm(weights, kOutputLayer, "output_norm", config.n_embd);
    head_ = declare_head(weights, config, *embedding_);
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_);                // [n_tokens, n_embd]
    const ValueId table = g.rope_table(config.rope);  // [n_tokens, rope.n_dims / 2, 2]
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      ValueId h = named(g, i, "attn_norm", g.rms_norm(x, w.attn_norm, eps));  // [n_tokens, n_embd]
      Heads heads = project_heads(g, h, w.attn, config, i);
      rms_norm_heads(g, heads, w.q_norm, w.k_norm, eps);
      rope_neox(g, heads, table);
      h = attend(g, h, heads, w, model, i, table, cache);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      x = g.add(x, h);                                        // [n_rows, n_embd]

      h = named(g, i, "ffn_norm", g.rms_norm(x, w.ffn_norm, eps));    // [n_rows, n_embd]
      h = layer_feed_forward(g, h, w.ffn, config, clamped_swiglu());  // [n_rows, n_embd]
      x = named(g, i, "out", g.add(x, named(g, i, "ffn_out", h)));    // [n_rows, n_embd]
    }
    g.set_layer(kOutputLayer);
    const ValueId hidden = g.rms_norm(x, output_norm_, eps);  // [n_outputs, n_embd]
    const ValueId logits = head_logits(g, hidden, head_);     // [n_logits, n_vocab]
    return model_outputs(g, hidden, logits);
  }

 private:
  struct Layer {
    const Weight* attn_norm = nullptr;  // [n_embd]
    AttentionWeights attn;
    const Weight* q_norm = nullptr;    // [key_dim]
    const Weight* k_norm = nullptr;    // [key_dim]
    NormalizedIndexerWeights indexer;  // empty in leading layers
    const Weight* ffn_norm = nullptr;  // [n_embd]
    LayerFeedForwardWeights ffn;
  };

  // x [n_tokens, n_embd], from which the heads were projected -> [n_tokens, n_head * value_dim].
  static ValueId attend(Graph& g, ValueId x, const Heads& heads, const Layer& w, const Model& model, int layer,
                        ValueId table, CacheTypes cache) {
    const ModelConfig& config = model.config();
    const CacheDesc desc = model.cache_desc(layer, cache);
    const float scale = attention_scale(config);
    if (!config.layers[layer].indexed) return attention(g, heads, desc, {.scale = scale});
    const ValueId blocks = select_positions(g, x, w.indexer, config, table, model.index_desc(layer, cache));
    g.kv_store(heads.k, heads.v, desc);
    return g.sparse_attention(heads.q, blocks, desc, {.scale = scale, .block = config.indexer.select.block}).out;
  }

  const Weight* embedding_ = nullptr;    // [n_vocab, n_embd]
  std::vector<Layer> layers_;            // [n_layer]
  const Weight* output_norm_ = nullptr;  // [n_embd]
  Linear head_;                          // [n_vocab, n_embd]
};

}  // namespace

std::unique_ptr<Architecture> create_minimax_m3() { return std::make_unique<MiniMaxM3>(); }

}  // namespace infer
