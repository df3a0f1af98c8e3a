#include "tools/quantize/mix.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <numeric>

#include "ggml-like/error.h"

namespace infer {
namespace {

// ---- Roles: the function of a tensor, by its name ----

enum class Role : uint8_t {
  kOther,
  kOutput,
  kTokenEmbedding,
  kAttentionV,  // and matrices that contain V: the fused Q, K, V and the latent K, V
  kAttentionK,
  kAttentionQ,
  kAttentionOutput,
  kFfnUp,
  kFfnGate,
  kFfnDown,
};
constexpr int kRoles = static_cast<int>(Role::kFfnDown) + 1;

struct RoleName {
  std::string_view text;
  bool whole;  // match the whole name instead of a part
  Role role;
};

// The first match wins.
constexpr RoleName kRoleNames[] = {
    {"output.weight", true, Role::kOutput},
    {"token_embd.weight", true, Role::kTokenEmbedding},
    {"per_layer_token_embd.weight", true, Role::kTokenEmbedding},
    {"attn_qkv.weight", false, Role::kAttentionV},
    {"attn_kv_b.weight", false, Role::kAttentionV},
    {"attn_v.weight", false, Role::kAttentionV},
    {"attn_k.weight", false, Role::kAttentionK},
    {"attn_q.weight", false, Role::kAttentionQ},
    {"attn_output.weight", false, Role::kAttentionOutput},
    {"ffn_up", false, Role::kFfnUp},
    {"ffn_gate", false, Role::kFfnGate},
    {"ffn_down", false, Role::kFfnDown},
};

Role role_of(std::string_view name) {
  for (const RoleName& row : kRoleNames) {
    if (row.whole ? name == row.text : name.find(row.text) != std::string_view::npos) return row.role;
  }
  return Role::kOther;
}

// ---- Tensors that are never quantized: small, or too sensitive ----

constexpr std::string_view kKeptNames[] = {"position_embd.weight", "token_types.weight"};
constexpr std::string_view kKeptParts[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",  // norms, routers
    "altup",
    "laurel",
    "per_layer_model_proj",  // small projections
    "ssm_conv1d",
    "shortconv.conv.weight",  // convolutions of a few taps
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",  // sparse attention's indexer
    "time_mix_first.weight",
    "time_mix_w0.weight",
    "time_mix_w1.weight",
    "time_mix_w2.weight",
    "time_mix_v0.weight",
    "time_mix_v1.weight",
    "time_mix_v2.weight",
    "time_mix_a0.weight",
    "time_mix_a1.weight",
    "time_mix_a2.weight",
    "time_mix_g1.weight",
    "time_mix_g2.weight",
    "time_mix_decay_w1.weight",
    "time_mix_decay_w2.weight",
    "time_mix_lerp_fused.weight",
    "attn_rel_b.weight",  // RWKV's small matrices, T5's position bias
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",  // vision and audio
};

// The number of dimensions up to the slowest one above 1.
size_t rank(std::span<const int64_t> shape) {
  const auto slowest = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n > 1; });
  return std::max<size_t>(1, static_cast<size_t>(shape.end() - slowest));
}

bool may_be_quantized(const MixTensor& tensor, const MixOptions& options) {
  if (rank(tensor.shape) < 2 || !tensor.name.ends_with("weight")) return false;
  if (options.leave_output && tensor.name == "output.weight") return false;
  const auto in_name = [&](std::string_view part) { return tensor.name.find(part) != std::string_view::npos; };
  return std::find(std::begin(kKeptNames), std::end(kKeptNames), tensor.name) == std::end(kKeptNames) &&
         std::none_of(std::begin(kKeptParts), std::end(kKeptParts), in_name);
}

// ---- Rules ----

using enum FileType;
using FileTypes = uint64_t;  // a set: one bit each
constexpr FileTypes kEvery = ~FileTypes{0};
constexpr FileTypes in(std::initializer_list<FileType> types) {
  FileTypes set = 0;
  for (const FileType type : types) set |= FileTypes{1} << static_cast<int>(type);
  return set;
}

constexpr FileTypes kLow = in({kIQ1_S, kIQ1_M, kIQ2_XXS, kIQ2_XS, kIQ2_S, kIQ2_M});
constexpr FileTypes kLowest = kLow & ~in({kIQ2_S, kIQ2_M});

// A subset of the layers, in order. For attention V, n is the number of V tensors, otherwise the number of layers.
enum class Layers : uint8_t {
  kAll,
  kFirst2,
  kFirst4,
  kFirst8th,   // of n
  kFirst16th,  // of n
  kMoreBits,   // the first eighth, the last eighth, and every third in between
  kMiddle,     // all but the first and the last eighth
};

using Conditions = uint32_t;  // all must hold
constexpr Conditions kAlways = 0;
constexpr Conditions kEightExperts = 1 << 0,
                     kOtherExperts = 1 << 1;  // a model with exactly eight experts, or with another number
constexpr Conditions kFalcon = 1 << 2, kNotFalcon = 1 << 3;
constexpr Conditions kSharedHeads = 1 << 4;  // four or more query heads per KV head
constexpr Conditions kImportance = 1 << 5, kNoImportance = 1 << 6;
constexpr Conditions kOddRow = 1 << 7;       // the row is not a multiple of the base type's block
constexpr Conditions kStacked = 1 << 8;      // more than one matrix; used by the MXFP4 file type
constexpr Conditions kFourExperts = 1 << 9;  // or more

struct Rule {
  Role role;
  FileTypes files;
  Conditions conditions;
  Layers layers;
  DataType type;
};

// The first match wins; without one, the base type. kOutput also covers the token embedding of a model without a
// separate output matrix.
constexpr Rule kRules[] = {
    {Role::kOutput, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kOutput, kEvery, kFalcon, Layers::kAll, DataType::kQ8_0},
    {Role::kOutput, kEvery, kOddRow, Layers::kAll, DataType::kQ8_0},
    {Role::kOutput, kLow | in({kIQ3_XXS}), kAlways, Layers::kAll, DataType::kQ5_K},
    {Role::kOutput, kEvery & ~in({kQ8_0}), kAlways, Layers::kAll, DataType::kQ6_K},

    {Role::kAttentionV, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kAttentionV, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionV, kLow, kSharedHeads, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, kLow, kFourExperts, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, kLowest, kAlways, Layers::kAll, DataType::kQ2_K},
    {Role::kAttentionV, kLow, kAlways, Layers::kAll, DataType::kIQ3_S},
    {Role::kAttentionV, kEvery, kEightExperts, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionV, in({kQ2_K, kQ2_K_S}), kSharedHeads, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, in({kQ2_K}), kAlways, Layers::kAll, DataType::kQ3_K},
    {Role::kAttentionV, in({kQ3_K_M}), kAlways, Layers::kFirst2, DataType::kQ5_K},
    {Role::kAttentionV, in({kQ3_K_M}), kAlways, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, in({kQ3_K_L}), kAlways, Layers::kAll, DataType::kQ5_K},
    {Role::kAttentionV, in({kIQ3_XXS, kIQ3_XS, kIQ3_S}), kSharedHeads, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, in({kIQ3_XXS}), kNoImportance, Layers::kAll, DataType::kIQ3_S},
    {Role::kAttentionV, in({kIQ3_M}), kAlways, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionV, in({kIQ4_NL, kIQ4_XS}), kSharedHeads, Layers::kAll, DataType::kQ5_K},
    {Role::kAttentionV, in({kQ4_K_M, kQ5_K_M}), kAlways, Layers::kMoreBits, DataType::kQ6_K},
    {Role::kAttentionV, in({kQ4_K_S}), kAlways, Layers::kFirst4, DataType::kQ5_K},

    {Role::kAttentionK, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kAttentionK, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionK, kLow, kEightExperts, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionK, kEvery, kEightExperts, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionK, in({kIQ3_XS}), kAlways, Layers::kAll, DataType::kIQ3_XXS},
    {Role::kAttentionK, in({kIQ3_XXS}), kAlways, Layers::kAll, DataType::kIQ2_S},

    {Role::kAttentionQ, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kAttentionQ, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionQ, in({kIQ3_XS}), kAlways, Layers::kAll, DataType::kIQ3_XXS},
    {Role::kAttentionQ, in({kIQ3_XXS}), kAlways, Layers::kAll, DataType::kIQ2_S},

    {Role::kAttentionOutput, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kAttentionOutput, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kAttentionOutput, kLow, kEightExperts, Layers::kAll, DataType::kQ5_K},
    {Role::kAttentionOutput, in({kIQ1_S, kIQ1_M}), kAlways, Layers::kAll, DataType::kIQ2_XXS},
    {Role::kAttentionOutput, in({kIQ2_S, kIQ2_M}), kAlways, Layers::kAll, DataType::kIQ3_S},
    {Role::kAttentionOutput,
     in({kQ2_K, kQ3_K_S, kQ3_K_M, kQ4_K_S, kQ4_K_M, kIQ4_NL, kIQ4_XS, kIQ3_XXS, kIQ3_XS, kIQ3_S, kIQ3_M}),
     kEightExperts | kNotFalcon, Layers::kAll, DataType::kQ5_K},
    {Role::kAttentionOutput, in({kIQ3_XXS}), kOtherExperts | kNotFalcon, Layers::kAll, DataType::kIQ3_S},
    {Role::kAttentionOutput, in({kIQ3_M}), kOtherExperts | kNotFalcon, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionOutput, in({kQ2_K}), kOtherExperts | kNotFalcon, Layers::kAll, DataType::kQ3_K},
    {Role::kAttentionOutput, in({kQ3_K_M}), kOtherExperts | kNotFalcon, Layers::kAll, DataType::kQ4_K},
    {Role::kAttentionOutput, in({kQ3_K_L}), kOtherExperts | kNotFalcon, Layers::kAll, DataType::kQ5_K},
    {Role::kAttentionOutput, in({kQ3_K_L}), kFalcon, Layers::kAll, DataType::kQ4_K},

    {Role::kFfnDown, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kFfnDown, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kFfnDown, kLowest, kAlways, Layers::kFirst8th, DataType::kQ2_K},
    {Role::kFfnDown, kLow, kAlways, Layers::kFirst8th, DataType::kIQ3_S},
    {Role::kFfnDown, in({kIQ3_XXS}), kNoImportance, Layers::kFirst8th, DataType::kQ4_K},
    {Role::kFfnDown, in({kIQ3_XXS}), kNoImportance, Layers::kAll, DataType::kQ3_K},
    {Role::kFfnDown, in({kIQ3_M}), kAlways, Layers::kFirst8th, DataType::kQ4_K},
    {Role::kFfnDown, in({kIQ3_M}), kEightExperts, Layers::kMoreBits, DataType::kQ4_K},
    {Role::kFfnDown, in({kQ2_K}), kAlways, Layers::kAll, DataType::kQ3_K},
    {Role::kFfnDown, in({kQ2_K_S}), kAlways, Layers::kFirst8th, DataType::kQ4_K},
    {Role::kFfnDown, in({kQ3_K_M}), kAlways, Layers::kFirst16th, DataType::kQ5_K},
    {Role::kFfnDown, in({kQ3_K_M}), kNotFalcon, Layers::kAll, DataType::kQ4_K},
    {Role::kFfnDown, in({kQ3_K_M}), kFalcon, Layers::kMoreBits, DataType::kQ4_K},
    {Role::kFfnDown, in({kQ3_K_L}), kFalcon, Layers::kAll, DataType::kQ4_K},
    {Role::kFfnDown, in({kQ3_K_L}), kNotFalcon, Layers::kAll, DataType::kQ5_K},
    {Role::kFfnDown, in({kQ4_K_M}), kFalcon, Layers::kFirst16th, DataType::kQ6_K},
    {Role::kFfnDown, in({kQ4_K_M}), kFalcon, Layers::kMoreBits, DataType::kQ5_K},
    {Role::kFfnDown, in({kQ4_K_M}), kNotFalcon, Layers::kMoreBits, DataType::kQ6_K},
    {Role::kFfnDown, in({kQ5_K_M}), kAlways, Layers::kMoreBits, DataType::kQ6_K},
    {Role::kFfnDown, in({kQ4_K_S}), kNotFalcon, Layers::kFirst8th, DataType::kQ5_K},
    {Role::kFfnDown, in({kIQ4_NL, kIQ4_XS}), kNoImportance, Layers::kFirst8th, DataType::kQ5_K},
    {Role::kFfnDown, in({kQ4_0}), kImportance, Layers::kFirst8th, DataType::kQ4_1},
    {Role::kFfnDown, in({kQ5_0}), kImportance, Layers::kFirst8th, DataType::kQ5_1},

    {Role::kFfnUp, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kFfnUp, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kFfnUp, in({kIQ3_XS}), kAlways, Layers::kMiddle, DataType::kIQ3_XXS},
    {Role::kFfnGate, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kFfnGate, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kFfnGate, in({kIQ3_XS}), kAlways, Layers::kMiddle, DataType::kIQ3_XXS},

    {Role::kTokenEmbedding, kLowest, kAlways, Layers::kAll, DataType::kQ2_K},
    {Role::kTokenEmbedding, kLow | in({kIQ3_XXS}), kAlways, Layers::kAll, DataType::kIQ3_S},
    {Role::kTokenEmbedding, in({kTQ1_0, kTQ2_0, kQ2_0}), kAlways, Layers::kAll, DataType::kQ4_K},
    {Role::kTokenEmbedding, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
    {Role::kOther, in({kMXFP4}), kStacked, Layers::kAll, DataType::kMXFP4},
    {Role::kOther, in({kMXFP4}), kAlways, Layers::kAll, DataType::kQ8_0},
};

// In a 70B model, V is an eighth the size of Q, so more bits there cost next to nothing. Not for kLow.
struct Raise {
  DataType from, to;
};
constexpr Raise kRaisedV[] = {{DataType::kQ3_K, DataType::kQ5_K}, {DataType::kQ4_K, DataType::kQ5_K}};

bool has_raised_v(const MixModel& model) {
  constexpr std::string_view kFamilies[] = {"llama", "deci"};
  return (std::find(std::begin(kFamilies), std::end(kFamilies), model.architecture) != std::end(kFamilies) &&
          model.n_layer == 80 && model.n_head != model.n_kv_head) ||
         (model.architecture == "qwen2" && model.n_layer == 80);
}

// For rows that are not a multiple of the block size.
constexpr Raise kFallbacks[] = {
    {DataType::kQ2_K, DataType::kQ4_0},      {DataType::kQ3_K, DataType::kQ4_0},
    {DataType::kQ4_K, DataType::kQ5_0},      {DataType::kQ5_K, DataType::kQ5_1},
    {DataType::kQ6_K, DataType::kQ8_0},      {DataType::kIQ4_XS, DataType::kIQ4_NL},
    {DataType::kIQ1_S, DataType::kIQ4_NL},   {DataType::kIQ1_M, DataType::kIQ4_NL},
    {DataType::kIQ2_XXS, DataType::kIQ4_NL}, {DataType::kIQ2_XS, DataType::kIQ4_NL},
    {DataType::kIQ2_S, DataType::kIQ4_NL},   {DataType::kIQ3_XXS, DataType::kIQ4_NL},
    {DataType::kIQ3_S, DataType::kIQ4_NL},   {DataType::kTQ1_0, DataType::kQ4_0},
    {DataType::kTQ2_0, DataType::kQ4_0},     {DataType::kQ2_0, DataType::kQ4_0},
};

MixChoice fitting(DataType type, int64_t row) {
  const auto fits = [&](DataType t) { return row % traits(t).block_size == 0; };
  if (fits(type)) return {type};
  for (const Raise& fallback : kFallbacks) {
    if (fallback.from == type && fits(fallback.to)) return {fallback.to, true};
  }
  return {DataType::kF16, true};
}

// ---- State carried from tensor to tensor ----

// The number in "blk.N.", or -1.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t layer = -1;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  return error == std::errc() && at != end && *at == '.' ? layer : -1;
}

class TypeChooser {
 public:
  TypeChooser(const MixModel& model, std::span<const MixTensor> tensors, const MixOptions& options)
      : model_(model), options_(options), info_(file_type_info(options.type)) {
    for (const MixTensor& tensor : tensors) {
      n_attention_v_ += role_of(tensor.name) == Role::kAttentionV;
      tied_ = tied_ && role_of(tensor.name) != Role::kOutput;
    }
  }

  MixChoice choose(const MixTensor& tensor) {
    if (!may_be_quantized(tensor, options_)) return {tensor.type};
    const Role role = role_of(tensor.name);
    const int64_t row = tensor.shape.back();
    if (role == Role::kTokenEmbedding && options_.token_embedding_type)
      return fitting(*options_.token_embedding_type, row);
    if (role == Role::kOutput && options_.output_type) return fitting(*options_.output_type, row);
    if (options_.override_type) {
      if (const auto wanted = options_.override_type(tensor.name)) return fitting(*wanted, row);
    }
    if (options_.pure || !traits(info_.base).quantized) return fitting(info_.base, row);
    if (role == Role::kTokenEmbedding && tied_ && options_.output_type) return fitting(*options_.output_type, row);
    return fitting(by_rule(tensor, role == Role::kTokenEmbedding && tied_ ? Role::kOutput : role), row);
  }

 private:
  struct Place {
    int64_t i, n;
  };

  // Counts the tensors of a role in order. With experts the number comes from the name, because a layer may have
  // several tensors of a role; in kLow it does not.
  Place next_place(const MixTensor& tensor, Role role) {
    if (role == Role::kAttentionV) return {i_attention_v_++, n_attention_v_};
    if (role != Role::kFfnUp && role != Role::kFfnGate && role != Role::kFfnDown) return {0, 1};
    const int64_t counted = counted_[static_cast<size_t>(role)]++;
    const bool by_name = model_.n_expert > 1 && (in({options_.type}) & kLow) == 0;
    return {by_name ? layer_of(tensor.name) : counted, model_.n_layer};
  }

  static bool holds(Layers layers, Place at) {
    switch (layers) {
      case Layers::kAll:
        return true;
      case Layers::kFirst2:
        return at.i < 2;
      case Layers::kFirst4:
        return at.i < 4;
      case Layers::kFirst8th:
        return at.i < at.n / 8;
      case Layers::kFirst16th:
        return at.i < at.n / 16;
      case Layers::kMoreBits:
        return at.i < at.n / 8 || at.i >= 7 * at.n / 8 || (at.i - at.n / 8) % 3 == 2;
      case Layers::kMiddle:
        return at.i >= at.n / 8 && at.i < 7 * at.n / 8;
    }
    return false;
  }

  Conditions true_of(const MixTensor& tensor) const {
    Conditions all = 0;
    const bool falcon = model_.architecture == "falcon";
    all |= model_.n_expert == 8 ? kEightExperts : kOtherExperts;
    all |= model_.n_expert >= 4 ? kFourExperts : 0;
    all |= falcon ? kFalcon : kNotFalcon;
    all |= model_.n_kv_head > 0 && model_.n_head / model_.n_kv_head >= 4 ? kSharedHeads : 0;
    all |= options_.has_importance ? kImportance : kNoImportance;
    all |= tensor.shape.back() % traits(info_.base).block_size != 0 ? kOddRow : 0;
    all |= tensor.shape.size() >= 3 && tensor.shape[tensor.shape.size() - 3] > 1 ? kStacked : 0;
    return all;
  }

  DataType by_rule(const MixTensor& tensor, Role role) {
    const Place at = next_place(tensor, role);
    const Conditions conditions = true_of(tensor);
    const auto fits = [&](const Rule& rule) {
      return rule.role == role && (rule.files & in({options_.type})) != 0 &&
             (rule.conditions & conditions) == rule.conditions && holds(rule.layers, at);
    };
    const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), fits);
    DataType type = rule == std::end(kRules) ? info_.base : rule->type;
    const bool low = (in({options_.type}) & kLow) != 0;
    if (role == Role::kAttentionV && model_.n_expert != 8 && !low && has_raised_v(model_)) {
      for (const Raise& raise : kRaisedV) {
        if (raise.from == type) return raise.to;
      }
    }
    return type;
  }

  const MixModel& model_;
  const MixOptions& options_;
  const FileTypeInfo& info_;
  bool tied_ = true;
  int64_t n_attention_v_ = 0, i_attention_v_ = 0;
  int64_t counted_[kRoles] = {};
};

}  // namespace

MixModel MixModel::of(const GgufFile& file) {
  MixModel model;
  model.architecture = file.get_string("general.architecture").value_or("");
  const auto number = [&](const char* name) -> int64_t {
    const std::string key = model.architecture + "." + name;
    const GgufValue* found = file.find(key);
    if (!found) return 0;
    if (found->type != GgufType::kArray) return file.get_int(key).value_or(0);
    const auto per_layer = file.get_int_array(key);
    return per_layer && !per_layer->empty() ? per_layer->front() : 0;
  };
  model.n_layer = number("block_count");
  model.n_head = number("attention.head_count");
  const std::string kv_key = model.architecture + ".attention.head_count_kv";
  model.n_kv_head = file.find(kv_key) ? number("attention.head_count_kv") : model.n_head;
  model.n_expert = number("expert_count");
  return model;
}

std::vector<MixChoice> choose_types(const MixModel& model, std::span<const MixTensor> tensors,
                                    const MixOptions& options) {
  // Rules that count follow the order of the layers, whatever their order in the file.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t layer_a = layer_of(tensors[a].name), layer_b = layer_of(tensors[b].name);
    return layer_a != layer_b ? layer_a < layer_b : tensors[a].name < tensors[b].name;
  });
  TypeChooser chooser(model, tensors, options);
  std::vector<MixChoice> choices(tensors.size(), MixChoice{DataType::kF32});
  for (const size_t i : order) choices[i] = chooser.choose(tensors[i]);
  return choices;
}

}  // namespace infer
