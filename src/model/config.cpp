#include "src/model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// The values of expert_gating_func.
constexpr std::array kGatings = {
    std::pair{1, Gating::kSoftmax},
    std::pair{2, Gating::kSigmoid},
    std::pair{3, Gating::kSoftmaxOfSelected},
    std::pair{4, Gating::kSqrtSoftplus},
};

// The value for a gating; 0, "the file does not say", if it has none.
double gating_number(Gating gating) {
  if (gating == Gating::kSigmoidOfSelected) gating = Gating::kSigmoid;  // files do not distinguish the two
  for (const auto& [number, known] : kGatings) {
    if (known == gating) return number;
  }
  return 0;
}

// Reads group-limited routing: experts are selected only from the best groups.
void read_groups(ConfigReader& reader, ModelConfig& config) {
  const int groups = reader.count("expert_group_count", 0, std::max(config.n_expert, 1), 0);
  const int used = reader.count("expert_group_used_count", 0, std::max(groups, 1), 0);
  if (groups <= 1) return;
  const std::string key = reader.architecture() + ".expert_group_count";
  if (config.n_expert % groups != 0)
    reject_value(key, concat("a divisor of the ", config.n_expert, " experts"), groups);
  const int in_groups = config.n_expert / groups * used;
  if (in_groups < config.routing.n_used) {
    reject_value(reader.architecture() + ".expert_group_used_count",
                 concat("groups with at least ", config.routing.n_used, " experts"), used);
  }
  config.routing.n_groups = groups;
  config.routing.groups_used = used;
}

// The combined width of the shared experts, if each is `each` wide.
int width_of_shared_experts(ConfigReader& reader, const ModelConfig& config, int each) {
  const int64_t width = int64_t{reader.count("expert_shared_count", 0, kMaxExperts, 0)} * each;
  if (width <= kMaxWidth) return static_cast<int>(width);
  reject_value(config.architecture + ".expert_shared_count", concat("a width up to ", kMaxWidth), width);
}

// `has_none` tells from a layer's position in its period whether it has no window.
template <typename F>
void read_windows_except(ConfigReader& reader, ModelConfig& config, int fallback, int period, const F& has_none) {
  if (config.causal) reader.only("attention.causal", {1});
  const int window = reader.count("attention.sliding_window", 0, kMaxContext, fallback);
  const auto windowed = reader.flags("attention.sliding_window_pattern", config.n_layer);
  if (!windowed) period = reader.count("attention.sliding_window_pattern", 0, kMaxLayers, period);
  for (int i = 0; i < config.n_layer; ++i) {
    const bool has_window = windowed ? (*windowed)[i] : period == 0 || !has_none(i % period, period);
    if (has_window) config.layers[i].window = window;
  }
  config.rope_window = config.rope;
  config.rope_window.freq_base =
      static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, config.rope.freq_base));
}

}  // namespace

// Linear scaling divides positions by the factor; YaRN interpolates by frequency (op.h).
RopeTableParams read_rope(ConfigReader& reader, const ModelConfig& config, float beta_fast) {
  RopeTableParams rope;
  rope.n_dims = reader.count("rope.dimension_count", 2, config.key_dim, config.key_dim);
  if (rope.n_dims % 2 != 0) {
    reject_value(reader.architecture() + ".rope.dimension_count", "an even number", rope.n_dims);
  }
  rope.freq_base = static_cast<float>(reader.number("rope.freq_base", 1.001, 1e15, 10000));

  const std::string type = reader.text("rope.scaling.type", "linear");
  // With longrope, the file also contains frequency factors.
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope") {
    throw Error(ErrorCode::kUnsupported,
                concat("[model] key ", reader.architecture(), ".rope.scaling.type = \"", printable(type, 60),
                       "\" is not supported (none, linear, longrope and yarn are)"));
  }
  const double old_factor = reader.number("rope.scale_linear", 0, 1e6, 0);
  const double factor = reader.number("rope.scaling.factor", 0, 1e6, old_factor);
  if (factor != 0 && factor < 1e-3) {
    reject_value(reader.architecture() + ".rope.scaling.factor", "0 or 0.001 to 1e6", factor);
  }
  if (type != "none" && factor != 0) rope.freq_scale = static_cast<float>(1 / factor);
  double magnitude = reader.number("rope.scaling.attn_factor", 1e-3, 1e3, 1);
  rope.original_context = reader.count("rope.scaling.original_context_length", 1, kMaxContext, config.context_length);
  rope.ext_factor = static_cast<float>(reader.number("rope.scaling.yarn_ext_factor", 0, 1, type == "yarn" ? 1 : 0));
  rope.beta_fast = static_cast<float>(reader.number("rope.scaling.yarn_beta_fast", 1e-3, 1e4, beta_fast));
  rope.beta_slow = static_cast<float>(reader.number("rope.scaling.yarn_beta_slow", 1e-3, 1e4, 1));
  reader.ignore("rope.scaling.yarn_attn_factor");  // with YaRN, llama.cpp does not apply it
  if (rope.ext_factor == 0) magnitude *= reader.number("rope.scaling.yarn_attn_factor", 1e-3, 1e3, 1);
  rope.attn_factor = static_cast<float>(magnitude);
  // YaRN's own magnitude factor is only for longer contexts; cancel it otherwise.
  if (rope.ext_factor != 0 && rope.freq_scale > 1) rope.attn_factor /= 1 - 0.1f * std::log(rope.freq_scale);
  return rope;
}

float read_yarn_magnitude(ConfigReader& reader, RopeTableParams& rope, RotatedMagnitude magnitude, float unit) {
  const float m = unit * static_cast<float>(reader.number("rope.scaling.yarn_log_multiplier", 0, 1e3, 0));
  if (rope.ext_factor == 0 || rope.freq_scale >= 1) return 1;
  const float log_factor = -std::log(rope.freq_scale), usual = 1 + 0.1f * log_factor, divisor = 1 + m * log_factor;
  const float rotated = m == 0 ? usual : magnitude == RotatedMagnitude::kOne ? 1 : usual / divisor;
  const float scores = rope.attn_factor * rotated * divisor;
  rope.attn_factor *= rotated / usual;
  return scores * scores;
}

PositionFactorParams read_query_factor(ConfigReader& reader, const ModelConfig& config) {
  PositionFactorParams factor;
  factor.scale = static_cast<float>(reader.number("attention.temperature_scale", 0, 1e3, 0));
  factor.interval = reader.count("attention.temperature_length", 0, kMaxContext, 0);
  if (factor.interval == 0) factor.interval = config.rope.original_context;
  return factor;
}

void read_latent_attention(ConfigReader& reader, ModelConfig& config) {
  LatentConfig& latent = config.latent;
  latent.q_rank = reader.count("attention.q_lora_rank", 0, kMaxWidth, 0);
  latent.kv_rank = reader.count("attention.kv_lora_rank", 1, kMaxWidth);
  latent.key_dim = reader.count("attention.key_length_mla", 0, kMaxHeadDim, 0);
  latent.value_dim = reader.count("attention.value_length_mla", 0, kMaxHeadDim, 0);
  latent.cached = latent.key_dim > 0 && latent.value_dim > 0;
  const std::string prefix = reader.architecture() + ".attention.";
  if (!latent.cached) {
    latent.key_dim = config.key_dim;
    latent.value_dim = config.value_dim;
  } else if (config.key_dim != latent.kv_rank + config.rope.n_dims) {
    reject_value(prefix + "key_length", concat(latent.kv_rank + config.rope.n_dims, " for the compressed vector"),
                 config.key_dim);
  } else {
    config.value_dim = latent.kv_rank;  // files need not give it
  }
  if (latent.key_dim <= config.rope.n_dims) {
    reject_value(prefix + "key_length_mla", concat("more than the ", config.rope.n_dims, " rotated dimensions"),
                 latent.key_dim);
  }
  for (const LayerConfig& l : config.layers) {
    const int expected = latent.cached ? 1 : l.n_head;
    const bool recurrent = l.n_kv_head == 0;
    if (l.n_kv_head != expected && !recurrent) reject_value(prefix + "head_count_kv", concat(expected), l.n_kv_head);
  }
}

float read_rms_norm_eps(ConfigReader& reader) {
  return static_cast<float>(reader.number("attention.layer_norm_rms_epsilon", 1e-20, 1));
}

float read_layer_norm_eps(ConfigReader& reader) {
  return static_cast<float>(reader.number("attention.layer_norm_epsilon", 1e-20, 1));
}

void read_windows(ConfigReader& reader, ModelConfig& config, int fallback, int period) {
  read_windows_except(reader, config, fallback, period, [](int at, int p) { return at == p - 1; });
}

void read_windows_after_first(ConfigReader& reader, ModelConfig& config, int fallback, int period) {
  read_windows_except(reader, config, fallback, period, [](int at, int) { return at == 0; });
}

void read_shared_caches(ConfigReader& reader, ModelConfig& config, int fallback) {
  const int n_shared = reader.count("attention.shared_kv_layers", 0, config.n_layer, fallback);
  const int n_stored = config.n_layer - n_shared;
  for (int i = n_stored; i < config.n_layer; ++i) {
    LayerConfig& reading = config.layers[i];
    reading.cache_layer = n_stored - (reading.window > 0 ? 2 : 1);
    const bool exists = reading.cache_layer >= 0;
    const LayerConfig* stored = exists ? &config.layers[reading.cache_layer] : nullptr;
    if (exists && stored->window == reading.window && stored->head_dim == reading.head_dim &&
        reading.n_head % stored->n_kv_head == 0) {
      continue;
    }
    reject_value(reader.architecture() + ".attention.shared_kv_layers",
                 concat("layer ", reading.cache_layer, " whose keys and values layer ", i, " can read"),
                 exists ? "one with another window or other heads" : "none");
  }
}

RopeTableParams without_scaling(const RopeTableParams& rope) {
  return {.n_dims = rope.n_dims, .freq_base = rope.freq_base};
}

void read_window_rope(ConfigReader& reader, ModelConfig& config) {
  config.rope_window.freq_base = static_cast<float>(reader.number("rope.freq_base_swa", 1.001, 1e15, 10000));
  config.rope_window.freq_scale = 1;
}

void read_position_sections(ConfigReader& reader, const ModelConfig& config) {
  const std::vector<int> none = {config.rope.n_dims, 0, 0, 0};
  const std::vector<int> sections = reader.counts("rope.dimension_sections", 4, 0, kMaxHeadDim, &none);
  if (sections[0] + sections[1] + sections[2] < config.rope.n_dims / 2) reader.only("rope.dimension_sections", {});
}

Pooling read_pooling(ConfigReader& reader, const ModelConfig& config) {
  // The values of pooling_type.
  constexpr std::array kPoolings = {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast, Pooling::kRank};
  const Pooling pooling = kPoolings[reader.count("pooling_type", 0, std::size(kPoolings) - 1, 0)];
  if (pooling != Pooling::kNone) return pooling;
  return config.causal ? Pooling::kLast : Pooling::kMean;
}

void require_encoder(ConfigReader& reader, ModelConfig& config) {
  reader.only("attention.causal", {0});
  config.causal = false;
}

void require_full_causal_attention(ConfigReader& reader, const ModelConfig& config) {
  reader.only("attention.causal", {1});
  // A window at least as long as the context has no effect.
  const int window = reader.count("attention.sliding_window", 0, kMaxContext, 0);
  if (window > 0 && window < config.context_length) reader.only("attention.sliding_window", {0});
}

ModelConfig read_sizes(ConfigReader& reader, int fewest_heads) {
  ModelConfig config;
  config.architecture = reader.architecture();
  config.context_length = reader.count("context_length", 1, kMaxContext);
  config.n_layer = reader.count("block_count", 1, kMaxLayers);
  config.n_embd = reader.count("embedding_length", 1, kMaxWidth);

  const std::vector<int> heads = reader.counts("attention.head_count", config.n_layer, fewest_heads, kMaxHeads);
  const std::vector<int> kv_heads =
      reader.counts("attention.head_count_kv", config.n_layer, fewest_heads, kMaxHeads, &heads);
  const std::vector<int> no_widths(config.n_layer, 0);
  const std::vector<int> widths =
      reader.counts("feed_forward_length", config.n_layer, fewest_heads, kMaxWidth, &no_widths);
  const std::string head_key = reader.architecture() + ".attention.head_count";
  config.layers.resize(config.n_layer);
  for (int i = 0; i < config.n_layer; ++i) {
    config.layers[i] = {heads[i], kv_heads[i], widths[i]};
    if (kv_heads[i] > 0 && (heads[i] == 0 || heads[i] % kv_heads[i] != 0)) {
      reject_value(head_key, concat("a multiple of the ", kv_heads[i], " key and value heads"), heads[i]);
    }
  }

  std::optional<int> head_dim;
  if (heads[0] > 0 && config.n_embd % heads[0] == 0) head_dim = config.n_embd / heads[0];
  config.key_dim = reader.count("attention.key_length", 1, kMaxHeadDim, head_dim);
  config.value_dim = reader.count("attention.value_length", 1, kMaxHeadDim, head_dim);
  for (const int n : heads) {
    const int64_t width = static_cast<int64_t>(n) * std::max(config.key_dim, config.value_dim);
    if (width > kMaxWidth) reject_value(head_key, concat("heads of at most ", kMaxWidth, " values"), width);
  }
  return config;
}

ModelConfig read_sizes_without_attention(ConfigReader& reader) {
  ModelConfig config;
  config.architecture = reader.architecture();
  config.context_length = reader.count("context_length", 1, kMaxContext);
  config.n_layer = reader.count("block_count", 1, kMaxLayers);
  config.n_embd = reader.count("embedding_length", 1, kMaxWidth);
  reader.only("attention.head_count", {0});
  reader.only("attention.head_count_kv", {0});
  const std::vector<int> none(config.n_layer, 0);
  for (const int width : reader.counts("feed_forward_length", config.n_layer, 0, kMaxWidth, &none)) {
    config.layers.push_back({.n_ff = width});
  }
  return config;
}

SsmConfig read_ssm(ConfigReader& reader) {
  SsmConfig ssm;
  ssm.conv_width = reader.count("ssm.conv_kernel", 2, kMaxConvWidth);
  ssm.n_inner = reader.count("ssm.inner_size", 1, kMaxWidth);
  ssm.n_state = reader.count("ssm.state_size", 1, kMaxHeadDim);
  ssm.n_head = reader.count("ssm.time_step_rank", 1, kMaxHeads);
  ssm.n_group = std::max(1, reader.count("ssm.group_count", 0, kMaxHeads, 1));
  return ssm;
}

void mark_recurrent_layers(ModelConfig& config, int64_t state_values) {
  for (LayerConfig& layer : config.layers) {
    if (layer.n_kv_head == 0) layer.state_values = state_values;
  }
}

void read_experts(ConfigReader& reader, ModelConfig& config) {
  config.n_expert = reader.count("expert_count", 0, kMaxExperts, 0);
  config.routing.n_used = reader.count("expert_used_count", 0, kMaxExperts, 0);
  if (config.n_expert == 0) {
    reader.only("expert_used_count", {0});
  } else if (config.routing.n_used < 1 || config.routing.n_used > config.n_expert) {
    reject_value(reader.architecture() + ".expert_used_count", concat("1 to ", config.n_expert), config.routing.n_used);
  }
  config.n_ff_expert = reader.count("expert_feed_forward_length", 0, kMaxWidth, 0);
  read_groups(reader, config);
  reader.ignore("leading_dense_block_count");
  reader.ignore("interleave_moe_layer_step");
}

void require_experts(ModelConfig& config) {
  if (config.n_expert == 0) reject_value(config.architecture + ".expert_count", "at least 1", "none");
  if (config.n_ff_expert == 0) config.n_ff_expert = config.layers[0].n_ff / config.routing.n_used;
  if (config.n_ff_expert == 0) reject_value(config.architecture + ".expert_feed_forward_length", "a width", "none");
}

void require_wide_experts(ModelConfig& config) {
  if (config.n_ff_expert == 0) config.n_ff_expert = config.layers[0].n_ff;
  require_experts(config);
}

void set_routing(ConfigReader& reader, ModelConfig& config, Gating gating, Normalization normalization) {
  config.routing.gating = gating;
  config.routing.normalize = normalization == Normalization::kSum;
  reader.only("expert_gating_func", {0, gating_number(gating)});
  reader.only("expert_weights_norm", {normalization == Normalization::kSum ? 1.0 : 0.0});
  reader.only("expert_weights_scale", {0, 1});
}

void read_routing(ConfigReader& reader, ModelConfig& config, Gating gating) {
  const int number = reader.count("expert_gating_func", 0, kGatings.back().first, 0);
  for (const auto& [known, meaning] : kGatings) {
    if (known == number) gating = meaning;
  }
  config.routing.gating = gating;
  config.routing.normalize = reader.number("expert_weights_norm", 0, 1, 0) != 0;
  const double scale = reader.number("expert_weights_scale", 0, 1e6, 0);
  if (scale != 0) config.routing.scale = static_cast<float>(scale);
}

void read_shared_expert(ConfigReader& reader, ModelConfig& config) {
  const int width = width_of_shared_experts(reader, config, config.n_ff_expert);
  config.n_ff_shared_expert = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, width);
}

void read_each_shared_expert(ConfigReader& reader, ModelConfig& config) {
  const int each = reader.count("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
  config.n_ff_shared_expert = width_of_shared_experts(reader, config, each > 0 ? each : config.n_ff_expert);
}

void read_no_shared_expert(ConfigReader& reader) {
  reader.only("expert_shared_count", {0});
  reader.only("expert_shared_feed_forward_length", {0});
}

void choose_layers(ConfigReader& reader, ModelConfig& config) {
  config.part = reader.part();
  config.n_prediction_layers = reader.count("nextn_predict_layers", 0, config.n_layer - 1, 0);
  const int n_trunk = config.n_layer - config.n_prediction_layers;
  if (config.part == ModelPart::kPrediction) {
    // Files may count prediction layers that they do not contain.
    const std::string joined = concat("blk.", n_trunk, ".nextn.eh_proj.weight");
    if (config.n_prediction_layers == 0 || !reader.has_tensor(joined)) {
      throw Error(ErrorCode::kUnsupported,
                  "The model has no prediction layer. Choose another --spec, or a --draft-model.");
    }
    config.first_layer = n_trunk;
    config.layers.erase(config.layers.begin(), config.layers.begin() + n_trunk);
  }
  config.n_layer = config.part == ModelPart::kPrediction ? 1 : n_trunk;
  config.layers.resize(config.n_layer);
}

void drop_prediction_layers(ConfigReader& reader, ModelConfig& config) {
  if (reader.part() == ModelPart::kPrediction) {
    throw Error(ErrorCode::kUnsupported, concat("The prediction layers of ", config.architecture,
                                                " are not implemented. Choose another --spec, or a --draft-model."));
  }
  choose_layers(reader, config);
}

void read_no_experts(ConfigReader& reader) {
  for (const std::string_view key : {"expert_count", "expert_used_count", "expert_feed_forward_length"}) {
    reader.only(key, {0});
  }
  read_no_shared_expert(reader);
}

}  // namespace infer
