// A model's hyper-parameters, and functions that read those common to several architectures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/op.h"
#include "src/model/config_reader.h"
#include "src/model/pooling.h"

namespace infer {

// Parameters that may differ between layers.
struct LayerConfig {
  int n_head = 0;
  int n_kv_head = 0;
  int n_ff = 0;              // inner width of the dense feed-forward; 0 if the file does not say
  int window = 0;            // AttentionParams::window
  int64_t state_values = 0;  // F32 values of the recurrent state; 0: the layer has none
  int64_t recent_ids = 0;    // token ids kept with that state, for n-grams
  int head_dim = 0;          // of queries, keys and values; 0: the model's key_dim and value_dim
  int cache_layer = -1;      // an earlier layer, whose keys and values this one reads; -1: it stores its own
  bool sparse = false;       // attention is restricted to some positions, or includes compressed entries
  bool indexed = false;      // the layer has an indexer, and caches its keys
  int compress = 0;          // positions per compressed entry; 0: no compression
  int index_stride = 1;      // positions per index key
};

// Sparse attention: index queries and keys select the positions that a token attends to.
struct IndexerConfig {
  int n_head = 0;  // of the queries; 0: no indexer
  int key_dim = 0;
  SelectParams select;
};

// Sizes of recurrent layers; their use depends on the architecture.
struct SsmConfig {
  int conv_width = 0;  // width of the short convolution, in tokens
  int n_inner = 0;     // channels
  int n_state = 0;
  int n_head = 0;  // or the rank of the time steps, in Mamba-1
  int n_group = 1;
};

// Multi-head latent attention (https://arxiv.org/abs/2405.04434): the keys and values of all heads are computed from
// one vector per position. If the cache holds that vector, the model's `key_dim` and `value_dim` are the cache's.
struct LatentConfig {
  int q_rank = 0;     // width of the compressed queries; 0: not compressed
  int kv_rank = 0;    // width of the compressed keys and values, without the rotated dimensions; 0: no latent attention
  int key_dim = 0;    // of a head, its last rope.n_dims rotated
  int value_dim = 0;  // of a head
  bool cached = false;  // the cache holds the compressed vector
};

// The classifier of a rerank model: see classifier.h.
struct ClassifierConfig {
  Pooling pooling = Pooling::kCls;  // of the hidden states
  UnaryKind activation = UnaryKind::kTanh;
  bool softmax = false;
  std::vector<std::string> labels = {};  // of the scores; empty if the file does not name them
};

struct ModelConfig {
  ModelPart part = ModelPart::kTrunk;
  int first_layer = 0;  // number of layer 0 in the file
  std::string architecture;
  std::string name;
  int n_layer = 0;
  int n_embd = 0;
  int n_vocab = 0;
  int context_length = 0;
  int max_context = 0;              // tokens that have a learned position; 0: no limit
  std::vector<LayerConfig> layers;  // [n_layer]
  int key_dim = 0;                  // per head
  int value_dim = 0;
  float norm_eps = 0;
  RopeTableParams rope;
  RopeTableParams rope_window;  // for layers with a window

  LatentConfig latent;
  IndexerConfig indexer;
  SsmConfig ssm;

  bool causal = true;                // false: an encoder, where every token attends to the whole text; it has no logits
  Pooling pooling = Pooling::kNone;  // as given by the file, or a suitable default
  std::optional<ClassifierConfig> classifier;  // for architectures whose files may have one

  int n_expert = 0;             // 0: dense
  int n_ff_expert = 0;          // inner width of a routed expert
  int n_ff_shared_expert = 0;   // inner width of the shared expert, 0: none
  MoeRouteParams routing;       // routing.n_used: experts that a token uses
  int n_prediction_layers = 0;  // in the file, after the others

  int key_dim_of(int layer) const { return layers[layer].head_dim > 0 ? layers[layer].head_dim : key_dim; }
  int value_dim_of(int layer) const { return layers[layer].head_dim > 0 ? layers[layer].head_dim : value_dim; }
};

// Reads the architecture's name, the context length, the number of layers, the model's width, and each layer's heads
// and feed-forward width; other members keep their defaults. With `fewest_heads` 0, layers may lack attention, only
// keys and values, or the feed-forward.
ModelConfig read_sizes(ConfigReader& reader, int fewest_heads = 1);

// The same for models without attention, whose files do not mention heads.
ModelConfig read_sizes_without_attention(ConfigReader& reader);

// Reads the `ssm.` keys; the number of groups is 1 if the file does not say.
SsmConfig read_ssm(ConfigReader& reader);

// Marks layers with 0 key and value heads as recurrent, and sets the size of their state.
void mark_recurrent_layers(ModelConfig& config, int64_t state_values);

float read_rms_norm_eps(ConfigReader& reader);
float read_layer_norm_eps(ConfigReader& reader);

// Rotary position embedding with linear or YaRN scaling, the latter with `beta_fast` if the file does not give one.
// REQUIRES: `config` has its sizes.
RopeTableParams read_rope(ConfigReader& reader, const ModelConfig& config, float beta_fast = 32);

// For images a token has three positions, and each pair of dimensions uses one of them. Text has only one, so the
// sections have no effect. Rejects files whose sections do not cover all pairs. REQUIRES: `config` has its rope.
void read_position_sections(ConfigReader& reader, const ModelConfig& config);

// If a file gives a multiplier m of the logarithm, YaRN with factor F multiplies rotated values by
// (1 + 0.1 ln F) / (1 + m ln F), or by 1, instead of 1 + 0.1 ln F.
enum class RotatedMagnitude : uint8_t { kRatio, kOne };
// Reads rope.scaling.yarn_log_multiplier (m, in `unit`s), which read_rope() does not read, and applies it to `rope`.
// Returns the factor on attention scores in latent attention: the square of r (1 + m ln F), with r the magnitude of
// rotated values.
float read_yarn_magnitude(ConfigReader& reader, RopeTableParams& rope, RotatedMagnitude magnitude, float unit = 1);

// The factor on queries; scale 0: none. REQUIRES: `config` has its rope.
PositionFactorParams read_query_factor(ConfigReader& reader, const ModelConfig& config);

// Sets config.latent. Layers without key and value heads do not use it. REQUIRES: `config` has its sizes and rope.
void read_latent_attention(ConfigReader& reader, ModelConfig& config);

// Reads pooling_type. The default is the mean for encoders, and the last position for other models.
Pooling read_pooling(ConfigReader& reader, const ModelConfig& config);

// Marks the model as an encoder. Rejects files that declare causal attention.
void require_encoder(ConfigReader& reader, ModelConfig& config);

// Rejects attention that is not causal or has a window. REQUIRES: `config` has its sizes.
void require_full_causal_attention(ConfigReader& reader, const ModelConfig& config);

// Sets the layers' windows: attention.sliding_window, or `fallback` if the file does not give one (0: none). In each
// `period` of layers, the last has none. attention.sliding_window_pattern is another period (0: all layers have a
// window) or a flag per layer. Sets `rope_window` to `rope`, with rope.freq_base_swa as its base if the file has that
// key. Rejects attention that is not causal, except in encoders. REQUIRES: `config` has its sizes and rope.
void read_windows(ConfigReader& reader, ModelConfig& config, int fallback, int period);
// The same, but the first layer of each `period` has none.
void read_windows_after_first(ConfigReader& reader, ModelConfig& config, int fallback, int period);

// Reads attention.shared_kv_layers (default: `fallback`), the number of layers at the end that store no keys and
// values. Those with a window read the second-to-last layer that stores some, those without a window the last one.
// REQUIRES: `config` has its windows and the heads' sizes.
void read_shared_caches(ConfigReader& reader, ModelConfig& config, int fallback);

// The rope of sliding-window layers, in models that scale positions only in the other layers.
RopeTableParams without_scaling(const RopeTableParams& rope);
// Sets `rope_window` in models whose sliding-window layers do not scale positions and have their own base:
// rope.freq_base_swa, or 10,000 if the file does not give it. REQUIRES: `config` has its windows.
void read_window_rope(ConfigReader& reader, ModelConfig& config);

// Reads the numbers of experts and of their groups and the width of an expert; 0 if the key is absent. The tensors tell
// which layers have experts (declare_layer_feed_forward), so the keys for that are ignored.
void read_experts(ConfigReader& reader, ModelConfig& config);

// For architectures that require experts. If the file gives no expert width, it is an equal share of the dense width.
void require_experts(ModelConfig& config);
// The same, but the default is the whole dense width.
void require_wide_experts(ModelConfig& config);

// Sets the gating and normalization, for architectures where they are fixed. Rejects files that say otherwise.
enum class Normalization : uint8_t { kNone, kSum };
void set_routing(ConfigReader& reader, ModelConfig& config, Gating gating, Normalization normalization);
// Reads them from the file; `gating` is the default.
void read_routing(ConfigReader& reader, ModelConfig& config, Gating gating);

// Reads the width of the shared expert. If the file gives none, it is the width of a routed expert times the number of
// shared experts. REQUIRES: `config` has its experts.
void read_shared_expert(ConfigReader& reader, ModelConfig& config);
// The same for files that give the width of each shared expert.
void read_each_shared_expert(ConfigReader& reader, ModelConfig& config);
void read_no_shared_expert(ConfigReader& reader);

// Keeps only the layers of the reader's part in `config`. REQUIRES: all parameters of layers have been read.
void choose_layers(ConfigReader& reader, ModelConfig& config);
// The same for architectures whose prediction layers are not implemented: throws Error(kUnsupported) if they are asked
// for.
void drop_prediction_layers(ConfigReader& reader, ModelConfig& config);

// Rejects files that declare experts, for architectures that have none.
void read_no_experts(ConfigReader& reader);

}  // namespace infer
