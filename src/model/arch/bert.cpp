// Encoders with norms after attention and feed-forward; tanh GELU unless stated otherwise:
//   bert: learned positions;
//   jina-bert-v2: ALiBi in both directions; optionally normalized queries and keys, a second norm, a gate;
//   nomic-bert-moe: NeoX rope, experts in some layers;
//   nomic-bert: NeoX rope and a SiLU gate.
#include "src/model/arch/architecture.h"
#include "src/model/blocks.h"
#include "src/model/classifier.h"

namespace infer {
namespace {

enum class Positions : uint8_t { kLearned, kRope, kAlibi };

class Bert final : public Architecture {
 public:
  Bert(Positions positions, UnaryKind gate) : positions_(positions), activation_(gate) {}

  ModelConfig read_config(ConfigReader& reader) override {
    ModelConfig config = read_sizes(reader);
    config.norm_eps = read_layer_norm_eps(reader);
    require_encoder(reader, config);
    read_classifier(reader, config, {});
    if (positions_ == Positions::kRope) {
      config.rope = read_rope(reader, config);
    } else {
      reader.ignore("rope.dimension_count");
    }
    reader.ignore("moe_every_n_layers");  // the tensors show it
    read_experts(reader, config);
    if (config.n_expert > 0) require_wide_experts(config);
    set_routing(reader, config, Gating::kSoftmax, Normalization::kNone);
    return config;
  }

  void declare_weights(WeightSet& weights, const ModelConfig& config) override {
    const int64_t d = config.n_embd;
    embedding_ = declare_embedding(weights, config);
    token_type_ = declare_token_type(weights, config);
    if (positions_ == Positions::kLearned) position_table_ = require_positions(weights, config);
    embedding_norm_ = declare_layer_norm(weights, kInputLayer, "token_embd_norm", d);
    for (int i = 0; i < config.n_layer; ++i) {
      Layer& w = layers_.emplace_back();
      w.attn = declare_joined_attention(weights, config, i);
      if (weights.has(i, "attn_q_norm.weight")) {
        w.q_norm = declare_layer_norm(weights, i, "attn_q_norm", config.layers[i].n_head * config.key_dim);
        w.k_norm = declare_layer_norm(weights, i, "attn_k_norm", config.layers[i].n_kv_head * config.key_dim);
      }
      w.attn_norm = declare_layer_norm(weights, i, "attn_output_norm", d);
      if (weights.has(i, "attn_norm_2.weight")) w.second_norm = declare_layer_norm(weights, i, "attn_norm_2", d);
      declare_mlp(weights, config, i, w);
      w.ffn_norm = declare_layer_norm(weights, i, "layer_output_norm", d);
    }
  }

  ModelOutputs build_graph(Graph& g, const Model& model, CacheTypes cache) const override {
    const ModelConfig& config = model.config();
    const float eps = config.norm_eps;
    ValueId x = embed(g, *embedding_, position_table_);  // [n_tokens, n_embd]
    if (token_type_) x = g.add(x, g.weight(*token_type_));
    x = layer_norm(g, x, embedding_norm_, eps);
    const ValueId table = positions_ == Positions::kRope ? g.rope_table(config.rope) : kNoValue;
    const float alibi = positions_ == Positions::kAlibi ? kAlibiMaxBias : 0.0f;
    const AttentionParams params = {.scale = attention_scale(config), .causal = false, .alibi_max_bias = alibi};
    for (int i = 0; i < config.n_layer; ++i) {
      g.set_layer(i);
      const Layer& w = layers_[i];
      Heads heads = project_heads(g, x, w.attn, config, i);
      if (w.q_norm.weight) layer_norm_rows(g, heads, w.q_norm, w.k_norm, eps);
      if (table != kNoValue) rope_neox(g, heads, table);
      ValueId h = attention(g, heads, model.cache_desc(i, cache), params);  // [n_tokens, n_head * value_dim]
      // From here on, the last layer needs only the output rows.
      if (i + 1 == config.n_layer) {
        h = g.select_rows(h);  // [n_outputs, n_head * value_dim]
        x = g.select_rows(x);  // [n_outputs, n_embd]
      }
      named(g, i, "attn_heads", h);
      h = named(g, i, "attn_out", linear(g, h, w.attn.out));  // [n_rows, n_embd]
      h = layer_norm(g, g.add(h, x), w.attn_norm, eps);
      if (w.second_norm.weight) h = layer_norm(g, g.add(h, x), w.second_norm, eps);
      const ValueId mixed = named(g, i, "ffn_out", mlp(g, h, w, config));  // [n_rows, n_embd]
      x = named(g, i, "out", layer_norm(g, g.add(mixed, h), w.ffn_norm, eps));
    }
    return encoder_outputs(g, x);
  }

 private:
  struct Layer {
    AttentionWeights attn;
    LayerNorm q_norm, k_norm;         // [n_head * key_dim], [n_kv_head * key_dim], or empty
    LayerNorm attn_norm;              // [n_embd], of attention plus its input
    LayerNorm second_norm;            // [n_embd], of attn_norm's result plus the input of attention; or empty
    FeedForwardWeights plain;         // one of these four is used
    GatedFeedForwardWeights gated;    // gate and up are separate
    JoinedFeedForwardWeights joined;  // gate and up in one matrix
    UngatedExpertWeights experts;     // used with the router
    RouterWeights router;
    LayerNorm ffn_norm;  // [n_embd], of the feed-forward plus its input
  };

  static void declare_mlp(WeightSet& weights, const ModelConfig& config, int i, Layer& w) {
    if (has_experts(weights, i)) {
      w.router = declare_router(weights, config, i);
      w.experts = declare_ungated_experts(weights, config, i, config.n_embd);
    } else if (weights.has(i, "ffn_gate.weight")) {
      w.gated = declare_gated_feed_forward(weights, config, i);
    } else if (weights.rows(i, "ffn_up.weight") == 2 * config.layers[i].n_ff) {
      w.joined = declare_joined_feed_forward(weights, config, i);
    } else {
      w.plain = declare_feed_forward(weights, config, i);
    }
  }

  // x [n_rows, n_embd] -> the same shape.
  ValueId mlp(Graph& g, ValueId x, const Layer& w, const ModelConfig& config) const {
    if (w.router.scores.weight) {
      return ungated_experts(g, x, w.experts, route(g, x, w.router, config), activation_);
    }
    if (w.gated.gate.weight) return gated_feed_forward(g, x, w.gated, activation_);
    if (w.joined.gate_up.weight) return gated_feed_forward(g, x, w.joined, activation_);
    return feed_forward(g, x, w.plain, activation_);
  }

  const Positions positions_;
  const UnaryKind activation_;
  const Weight* embedding_ = nullptr;       // [n_vocab, n_embd]
  const Weight* token_type_ = nullptr;      // [n_embd], null if the file has none
  const Weight* position_table_ = nullptr;  // [context_length, n_embd], null without learned positions
  LayerNorm embedding_norm_;                // [n_embd]
  std::vector<Layer> layers_;               // [n_layer]
};

std::unique_ptr<Architecture> create(Positions positions, UnaryKind activation) {
  return std::make_unique<Bert>(positions, activation);
}

}  // namespace

std::unique_ptr<Architecture> create_bert() { return create(Positions::kLearned, UnaryKind::kGeluTanh); }
std::unique_ptr<Architecture> create_jina_bert_v2() { return create(Positions::kAlibi, UnaryKind::kGeluTanh); }
std::unique_ptr<Architecture> create_nomic_bert() { return create(Positions::kRope, UnaryKind::kSilu); }
std::unique_ptr<Architecture> create_nomic_bert_moe() { return create(Positions::kRope, UnaryKind::kGeluTanh); }

}  // namespace infer
