// A graph of operations, built once per bucket by model code. Every shape and type is checked here, in the builder, and
// nowhere else; a wrong call throws Error(kInvalidFile) naming operation and tensors, because shapes come from the
// model file. A Graph owns descriptors only; weights belong to the model and outlive it.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ggml-like/op.h"
#include "ggml-like/tensor.h"

namespace infer {

class Buffer;

using ValueId = int;
inline constexpr ValueId kNoValue = -1;

// A model weight, with its data in the mapped file. PlanOptions::weight says where a device's copy is.
struct Weight {
  std::string name;
  TensorDesc desc;
  const std::byte* host = nullptr;
  // Multiplies the result of a matmul with this weight, before a bias is added: F32 [1], or [e, 1, 1] for e experts.
  // Null: 1. Formats with little range, such as NVFP4, have one.
  const Weight* factor = nullptr;
};

// The two places outside the repeated layers.
inline constexpr int kInputLayer = -1;
inline constexpr int kOutputLayer = 1 << 20;

// "layer 3", "layers 3 to 5", "the output", "layer 3 to the output", for messages.
std::string layers_text(int first, int last);

struct Value {
  TensorDesc desc;
  std::string name;                // for observers, profiles and errors; "" for most
  const Weight* weight = nullptr;  // a leaf
  ValueId alias_of = kNoValue;     // a view: same memory, `offset` elements further on
  int64_t offset = 0;
  int producer = -1;  // node, -1 for leaves
};

struct Node {
  Op op;
  OpParams params;
  std::vector<ValueId> inputs;  // optional inputs that are absent are kNoValue
  std::vector<ValueId> outputs;
  CacheDesc cache;  // only where op_info(op).has_cache
  int layer = kInputLayer;
};

class Graph {
 public:
  // Buckets this graph is built for: rows of kTokens, kOutputs and kLogits tensors.
  Graph(int token_bucket, int output_bucket, int logits_bucket)
      : tokens_(token_bucket), outputs_(output_bucket), logits_(logits_bucket) {}
  Graph(int token_bucket, int output_bucket) : Graph(token_bucket, output_bucket, output_bucket) {}

  // The layer that nodes added from now on belong to (kInputLayer, 0 .., kOutputLayer).
  void set_layer(int layer) { layer_ = layer; }
  int token_bucket() const { return tokens_; }
  int output_bucket() const { return outputs_; }
  int logits_bucket() const { return logits_; }

  // A leaf; the same weight gives the same value.
  ValueId weight(const Weight& weight);

  ValueId embed(const Weight& table, RowsBy rows = RowsBy::kToken);
  // `state`: the layer's slot for token ids (CacheUse::kTokenIds), used from state.first_value on.
  ValueId ngram_embed(const Weight& table, std::shared_ptr<const NgramTables> tables, const CacheDesc& state);
  // REQUIRES: the steps have StepCapacity::hidden = d.
  ValueId step_hidden(int64_t d);
  ValueId select_rows(ValueId x);
  ValueId matmul(ValueId x, const Weight& weight, const Weight* bias = nullptr);
  // `ids` may be kNoValue.
  ValueId matmul_experts(ValueId x, const Weight& weight, ValueId ids, const Weight* bias = nullptr);
  ValueId rms_norm(ValueId x, const Weight* weight, float eps);
  ValueId layer_norm(ValueId x, const Weight* weight, const Weight* bias, float eps);
  ValueId rms(ValueId x);
  ValueId softmax(ValueId x);
  ValueId sparsify(ValueId x, float factor);
  ValueId add(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId scale(ValueId x, float factor);
  ValueId clamp(ValueId x, float low, float high);
  ValueId unary(ValueId x, UnaryKind kind);
  ValueId xielu(ValueId x, const XieluParams& params);
  ValueId gated_activation(ValueId gate, ValueId up, const GatedActivationParams& params);
  ValueId slice_columns(ValueId x, int64_t begin, int64_t count);
  ValueId concat_columns(ValueId a, ValueId b);
  ValueId mix_streams(ValueId x, ValueId weights);
  ValueId agreement(ValueId a, ValueId b);
  ValueId sinkhorn(ValueId x, const SinkhornParams& params);
  // Uses the first n_dims / 2 of the frequency factors.
  ValueId rope_table(const RopeTableParams& params, const Weight* frequency_factors = nullptr);
  ValueId rope(ValueId x, ValueId table, bool interleaved);
  ValueId position_factor(const PositionFactorParams& params);
  // `v` is kNoValue if the cache is latent.
  void kv_store(ValueId k, ValueId v, const CacheDesc& cache);
  ValueId paged_attention(ValueId q, const CacheDesc& cache, const AttentionParams& params,
                          const Weight* sinks = nullptr);
  // `index`: the layer's index keys; `weights` may be kNoValue.
  ValueId select_positions(ValueId q, ValueId weights, const CacheDesc& index, const SelectParams& params);
  struct PartialAttention {
    ValueId out, log_sum;
  };
  // `blocks` may be kNoValue.
  PartialAttention sparse_attention(ValueId q, ValueId blocks, const CacheDesc& cache,
                                    const SparseAttentionParams& params, const Weight* sinks = nullptr);
  // Operations on recurrent states (graph_recurrent.cpp). `state` is the layer's slot, used from state.first_value on.
  ValueId short_conv(ValueId x, const Weight& weight, const Weight* bias, const ShortConvParams& params,
                     const CacheDesc& state);
  ValueId gated_pool(ValueId x, ValueId gates, const Weight* offsets, int block, const CacheDesc& state);
  ValueId token_shift(ValueId x, const CacheDesc& state);
  struct ScanInputs {
    ValueId x, dt, b, c;
  };
  ValueId selective_scan(const ScanInputs& in, const Weight& a, const Weight* skip, const CacheDesc& state);
  struct DeltaInputs {
    ValueId q, k, v, dt, beta;
  };
  ValueId delta_rule(const DeltaInputs& in, const Weight& a, const DeltaRuleParams& params, const CacheDesc& state);
  struct WkvInputs {
    ValueId r, k, v, w;
    ValueId a = kNoValue, b = kNoValue;  // RWKV-7
  };
  struct Wkv {
    ValueId out, bonus;
  };
  Wkv wkv(const WkvInputs& in, const Weight& first, const CacheDesc& state);
  struct Route {
    ValueId ids, weights;
  };
  // `experts`: for models in which the token id selects the experts, the table of its experts. REQUIRES: its entries
  // are valid expert numbers.
  Route moe_route(ValueId logits, const MoeRouteParams& params, const Weight* selection_bias = nullptr,
                  const Weight* experts = nullptr);
  ValueId moe_combine(ValueId y, ValueId weights);
  struct TopK {
    ValueId ids, values, log_sum_exp;
  };
  TopK top_k(ValueId logits, int k);

  // The same memory with another shape after the first dimension; the row stride does not change.
  ValueId reshape(ValueId x, const Shape& shape);
  // Columns [begin, begin + count) of a rank 2 tensor: a view with the parent's row stride.
  ValueId view_columns(ValueId x, int64_t begin, int64_t count);

  // A view of the rows of a kOutputs tensor whose logits are needed.
  ValueId view_logits_rows(ValueId x);

  // Names a value so that observers find it.
  ValueId name(ValueId x, std::string text);
  // A value the caller reads after the run; it stays allocated to the end.
  void mark_output(ValueId x);
  // An output that the run leaves on its device, for Plan::fetch().
  void mark_output_on_request(ValueId x);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<ValueId>& marked_outputs() const { return marked_; }
  bool is_on_request(ValueId output) const {
    return std::find(on_request_.begin(), on_request_.end(), output) != on_request_.end();
  }
  const Value& value(ValueId id) const { return values_[id]; }
  ValueId find(const std::string& name) const;  // kNoValue when absent
  // The value whose memory `id` uses.
  ValueId root(ValueId id) const;

 private:
  ValueId add_value(const TensorDesc& desc, int producer);
  std::vector<ValueId> add_node(Op op, OpParams params, std::vector<ValueId> inputs, std::vector<TensorDesc> outputs,
                                const CacheDesc& cache = {});
  // Multiplies y, the product of x with the weight, by the weight's factor. `ids`: the selected experts, if the weight
  // has experts.
  ValueId apply_factor(ValueId y, const Weight& weight, ValueId x, ValueId ids);
  ValueId optional_weight(const Weight* weight) { return weight ? this->weight(*weight) : kNoValue; }
  [[noreturn]] void fail(Op op, const std::string& expected, std::initializer_list<ValueId> found) const;
  void require(bool condition, Op op, const std::string& expected, std::initializer_list<ValueId> found) const {
    if (!condition) fail(op, expected, found);
  }

  int tokens_, outputs_, logits_;
  int layer_ = kInputLayer;
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<ValueId> marked_, on_request_;
  std::map<const Weight*, ValueId> weights_;
};

}  // namespace infer
