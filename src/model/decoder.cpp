#include "src/model/decoder.h"

#include <cmath>

#include "ggml-like/error.h"

namespace infer {

DecoderWeights declare_decoder(WeightSet& weights, const ModelConfig& config, HeadNorms norms) {
  const int64_t d = config.n_embd, n_vocab = config.n_vocab;
  DecoderWeights w;
  w.embedding = weights.require(kInputLayer, "token_embd.weight", {n_vocab, d});
  for (int i = 0; i < config.n_layer; ++i) {
    DecoderWeights::Layer& layer = w.layers.emplace_back();
    layer.attn_norm = weights.require(i, "attn_norm.weight", {d});
    layer.attention = declare_attention(weights, config, i, norms);
    layer.ffn_norm = weights.require(i, "ffn_norm.weight", {d});
    weights.ignore(i, "attn_rot_embd.weight");  // a table some old files carry; the rotation is computed
  }
  w.output_norm = weights.require(kOutputLayer, "output_norm.weight", {d});
  w.output = weights.optional(kOutputLayer, "output.weight", {n_vocab, d});
  if (!w.output) w.output = weights.share(kOutputLayer, *w.embedding);
  w.output_bias = weights.optional(kOutputLayer, "output.bias", {n_vocab});
  return w;
}

ModelOutputs build_decoder(Graph& graph, const Model& model, const DecoderWeights& weights,
                           const DecoderOptions& options) {
  const ModelConfig& config = model.config();
  AttentionOptions attention;
  attention.interleaved = options.interleaved_rope;
  attention.params.scale = 1 / std::sqrt(static_cast<float>(config.key_dim));
  attention.norm_eps = config.norm_eps;

  graph.set_layer(kInputLayer);
  ValueId x = graph.name(graph.embed(*weights.embedding), "embedding");
  attention.rope_table = graph.rope_table(config.rope, weights.rope_factors);

  for (int i = 0; i < config.n_layer; ++i) {
    graph.set_layer(i);
    const DecoderWeights::Layer& layer = weights.layers[i];
    const std::string prefix = concat("blk.", i, ".");

    ValueId normed = graph.name(graph.rms_norm(x, layer.attn_norm, config.norm_eps), prefix + "attn_norm");
    ValueId heads = attention_heads(graph, normed, layer.attention, model.cache_desc(i), attention);
    if (i == config.n_layer - 1) {
      // Only keys and values of the other rows are needed from here on.
      heads = graph.select_rows(heads);
      x = graph.select_rows(x);
    }
    graph.name(heads, prefix + "attn_heads");
    const ValueId out = graph.matmul(heads, *layer.attention.out, layer.attention.out_bias);
    x = graph.add(x, graph.name(out, prefix + "attn_out"));

    normed = graph.name(graph.rms_norm(x, layer.ffn_norm, config.norm_eps), prefix + "ffn_norm");
    x = graph.add(x, graph.name(options.feed_forward(graph, i, normed), prefix + "ffn_out"));
    graph.name(x, prefix + "out");
  }

  graph.set_layer(kOutputLayer);
  ModelOutputs outputs;
  outputs.hidden = graph.name(graph.rms_norm(x, weights.output_norm, config.norm_eps), "result_norm");
  const ValueId rows = graph.view_logits_rows(outputs.hidden);
  outputs.logits = graph.name(graph.matmul(rows, *weights.output, weights.output_bias), "logits");
  graph.mark_output(outputs.hidden);
  graph.mark_output(outputs.logits);
  return outputs;
}

}  // namespace infer
