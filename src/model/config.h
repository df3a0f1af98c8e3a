// A model's hyper-parameters, and how architectures read those that several have.
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
  int64_t recent_ids = 0;    // token ids that it keeps beside that state, for n-grams
  int head_dim = 0;          // of queries, keys and values; 0: the model's key_dim and value_dim
  int cache_layer = -1;      // the earlier layer whose keys and values this one reads; -1: it stores its own
  bool sparse = false;       // attention sees only some positions, or compressed entries besides
  bool indexed = false;      // the layer has an indexer, and caches its keys
  int compress = 0;          // positions of a compressed entry; 0: the layer has none
  int index_stride = 1;      // positions of an index key
};

// Sparse attention: index queries and keys choose the positions that a token sees.
struct IndexerConfig {
  int n_head = 0;  // of the queries; 0: no indexer
  int key_dim = 0;
  SelectParams select;
};

// Sizes of recurrent layers; an architecture says what it uses them for.
struct SsmConfig {
  int conv_width = 0;  // of the short convolution: tokens that an output depends on
  int n_inner = 0;     // channels
  int n_state = 0;
  int n_head = 0;  // or the rank of the time steps, in Mamba-1
  int n_group = 1;
};

// Multi-head latent attention (https://arxiv.org/abs/2405.04434): a position's keys and values are computed from one
// vector for all heads. If the cache holds that vector, `key_dim` and `value_dim` of the model are the cache's.
struct LatentConfig {
  int q_rank = 0;       // width of the compressed queries; 0: queries are not compressed
  int kv_rank = 0;      // width of the compressed keys and values, the rotated dimensions apart; 0: no latent attention
  int key_dim = 0;      // of a head, its last rope.n_dims rotated
  int value_dim = 0;    // of a head
  bool cached = false;  // the cache holds the compressed vector
};

// A classifier behind the model, as rerank models have: see classifier.h.
struct ClassifierConfig {
  Pooling pooling = Pooling::kCls;  // of the hidden states
  UnaryKind activation = UnaryKind::kTanh;
  bool softmax = false;
  std::vector<std::string> labels = {};  // of the scores; empty if the file does not name them
};

struct ModelConfig {
  ModelPart part = ModelPart::kTrunk;
  int first_layer = 0;  // the number in the file of layer 0
  std::string architecture;
  std::string name;
  int n_layer = 0;
  int n_embd = 0;
  int n_vocab = 0;
  int context_length = 0;
  int max_context = 0;              // tokens that have a learned position; 0: any number
  std::vector<LayerConfig> layers;  // [n_layer]
  int key_dim = 0;                  // per head
  int value_dim = 0;
  float norm_eps = 0;
  RopeTableParams rope;
  RopeTableParams rope_window;  // of layers with a window

  LatentConfig latent;
  IndexerConfig indexer;
  SsmConfig ssm;

  bool causal = true;                // false: an encoder, where every token sees the whole text; it has no logits
  Pooling pooling = Pooling::kNone;  // what the file says, or what suits the model
  std::optional<ClassifierConfig> classifier;  // of architectures whose files may have one

  int n_expert = 0;             // 0: dense
  int n_ff_expert = 0;          // inner width of a routed expert
  int n_ff_shared_expert = 0;   // inner width of the shared expert, 0: none
  MoeRouteParams routing;       // routing.n_used: experts that a token uses
  int n_prediction_layers = 0;  // of the file, behind the others

  int key_dim_of(int layer) const { return layers[layer].head_dim > 0 ? layers[layer].head_dim : key_dim; }
  int value_dim_of(int layer) const { return layers[layer].head_dim > 0 ? layers[layer].head_dim : value_dim; }
};

// Reads the architecture's name, the context length, the number of layers, the model's width, and each layer's heads
// and feed-forward width; other members keep their defaults. With `fewest_heads` 0, layers may lack attention, or only
// keys and values, or the feed-forward.
ModelConfig read_sizes(ConfigReader& reader, int fewest_heads = 1);

// The same for models without attention, whose files say nothing of heads.
ModelConfig read_sizes_without_attention(ConfigReader& reader);

// Reads the `ssm.` keys; the number of groups is 1 if the file does not say.
SsmConfig read_ssm(ConfigReader& reader);

// Reads the number of key and value heads 0 as: the layer is recurrent. Sets the size of its state.
void mark_recurrent_layers(ModelConfig& config, int64_t state_values);

float read_rms_norm_eps(ConfigReader& reader);
float read_layer_norm_eps(ConfigReader& reader);

// Rotary position embedding with linear or YaRN scaling, the latter with `beta_fast` if the file does not say.
// REQUIRES: `config` has its sizes.
RopeTableParams read_rope(ConfigReader& reader, const ModelConfig& config, float beta_fast = 32);

// Images have three positions per token, and each pair of dimensions uses one of them. Text has only one, so the
// sections have no effect. Rejects files whose sections leave pairs out. REQUIRES: `config` has its rope.
void read_position_sections(ConfigReader& reader, const ModelConfig& config);

// Where files give a multiplier m of the logarithm, YaRN by a factor F multiplies rotated values by
// (1 + 0.1 ln F) / (1 + m ln F), or by 1, instead of 1 + 0.1 ln F.
enum class RotatedMagnitude : uint8_t { kRatio, kOne };
// Reads rope.scaling.yarn_log_multiplier, m in `unit`s, which read_rope() does not, and applies it to `rope`. Returns a
// factor for attention scores, the square of the magnitude of rotated values times 1 + m ln F, which latent attention
// uses.
float read_yarn_magnitude(ConfigReader& reader, RopeTableParams& rope, RotatedMagnitude magnitude, float unit = 1);

// What queries are multiplied by; scale 0: nothing. REQUIRES: `config` has its rope.
PositionFactorParams read_query_factor(ConfigReader& reader, const ModelConfig& config);

// Sets config.latent. Layers without key and value heads have none of it. REQUIRES: `config` has its sizes and rope.
void read_latent_attention(ConfigReader& reader, ModelConfig& config);

// Reads pooling_type; where the file does not say, an encoder takes the mean and other models the last position.
Pooling read_pooling(ConfigReader& reader, const ModelConfig& config);

// Marks the model as an encoder. Rejects files that say that its attention is causal.
void require_encoder(ConfigReader& reader, ModelConfig& config);

// Rejects attention that does not see all earlier positions, or sees later ones. REQUIRES: `config` has its sizes.
void require_full_causal_attention(ConfigReader& reader, const ModelConfig& config);

// Sets the layers' windows: attention.sliding_window, or `fallback` if the file does not say (0: none). Of each
// `period` layers, the last has none; attention.sliding_window_pattern is another period (0: all layers have one), or
// says for each layer whether it has one. Sets `rope_window` to `rope`, with rope.freq_base_swa as its base if the file
// has that key. Rejects attention that is not causal, except in encoders. REQUIRES: `config` has its sizes and rope.
void read_windows(ConfigReader& reader, ModelConfig& config, int fallback, int period);
// The same, but of each `period` layers the first has none.
void read_windows_after_first(ConfigReader& reader, ModelConfig& config, int fallback, int period);

// Reads attention.shared_kv_layers, or takes `fallback`: so many of the last layers store no keys and values. One with
// a window reads those of the last layer but one that stores some, one without a window those of the last. REQUIRES:
// `config` has its windows and the heads' sizes.
void read_shared_caches(ConfigReader& reader, ModelConfig& config, int fallback);

// The rope of layers with a window in models that scale positions only in the other layers.
RopeTableParams without_scaling(const RopeTableParams& rope);
// Sets `rope_window` in models where these layers neither scale positions nor share the base of the others: it is
// rope.freq_base_swa, or 10,000 if the file does not say. REQUIRES: `config` has its windows.
void read_window_rope(ConfigReader& reader, ModelConfig& config);

// Reads the counts of experts and of their groups and the width of an expert, 0 where the key is absent. The tensors
// say which layers have experts (declare_layer_feed_forward), so the keys for that are ignored.
void read_experts(ConfigReader& reader, ModelConfig& config);

// For architectures where experts are required. If the file has no expert width, it is an equal share of the dense
// width.
void require_experts(ModelConfig& config);
// The same, but it is the dense width.
void require_wide_experts(ModelConfig& config);

// Sets the gating and normalization, for architectures that always use these. Rejects files that say otherwise.
enum class Normalization : uint8_t { kNone, kSum };
void set_routing(ConfigReader& reader, ModelConfig& config, Gating gating, Normalization normalization);
// The same as the file says; `gating` if it does not say.
void read_routing(ConfigReader& reader, ModelConfig& config, Gating gating);

// Reads the width of the shared expert. If the file has none, it is that of as many routed experts as the file counts
// shared ones. REQUIRES: `config` has its experts.
void read_shared_expert(ConfigReader& reader, ModelConfig& config);
// The same where the file says the width of one of them.
void read_each_shared_expert(ConfigReader& reader, ModelConfig& config);
void read_no_shared_expert(ConfigReader& reader);

// Leaves in `config` the layers of the reader's part. REQUIRES: all parameters of layers have been read.
void choose_layers(ConfigReader& reader, ModelConfig& config);
// The same for architectures that only run without their prediction layers: throws Error(kUnsupported) for these.
void drop_prediction_layers(ConfigReader& reader, ModelConfig& config);

// Rejects files that declare experts, for architectures that have none.
void read_no_experts(ConfigReader& reader);

}  // namespace infer
