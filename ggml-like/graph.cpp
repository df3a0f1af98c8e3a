#include "ggml-like/graph.h"

#include <cstring>

#include "ggml-like/error.h"

namespace infer {
namespace {

bool is_f32(const TensorDesc& desc) { return desc.type == DataType::kF32; }

Shape with_last(Shape shape, int64_t last) {
  shape.dim[shape.rank - 1] = last;
  return shape;
}

// Whether b can be the second operand of add and mul: of a's shape, one row for all rows, or one vector for all vectors
// of a row.
bool same_or_row(const TensorDesc& a, const TensorDesc& b) {
  return (b.shape == a.shape && b.rows == a.rows) || b.shape == Shape{a.shape.last()};
}
bool is_vector_of_row(const TensorDesc& a, const TensorDesc& b) {
  return a.shape.rank == 3 && b.rows == a.rows && b.shape == Shape{a.shape[0], 1, a.shape[2]};
}

}  // namespace

std::string layers_text(int first, int last) {
  const auto name = [](int layer) {
    return layer == kInputLayer ? "the input" : layer == kOutputLayer ? "the output" : concat("layer ", layer);
  };
  if (first == last) return name(first);
  if (first < 0 || last == kOutputLayer) return name(first) + " to " + name(last);
  return concat("layers ", first, " to ", last);
}

void Graph::fail(Op op, const std::string& expected, std::initializer_list<ValueId> found) const {
  std::string text = concat("[graph] ", op_info(op).name, " in layer ", layer_, ": ", expected, ", found");
  for (const ValueId id : found) {
    if (id == kNoValue) continue;
    const Value& v = values_[id];
    text +=
        concat(" ", v.weight ? v.weight->name : v.name, " ", traits(v.desc.type).name, " ", v.desc.shape.to_string());
  }
  throw Error(ErrorCode::kInvalidFile, text);
}

ValueId Graph::add_value(const TensorDesc& desc, int producer) {
  Value v;
  v.desc = desc;
  v.producer = producer;
  values_.push_back(std::move(v));
  return static_cast<ValueId>(values_.size()) - 1;
}

std::vector<ValueId> Graph::add_node(Op op, OpParams params, std::vector<ValueId> inputs,
                                     std::vector<TensorDesc> outputs, const CacheDesc& cache) {
  const int index = static_cast<int>(nodes_.size());
  Node node{op, std::move(params), std::move(inputs), {}, cache, layer_};
  for (const TensorDesc& desc : outputs) node.outputs.push_back(add_value(desc, index));
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

ValueId Graph::weight(const Weight& weight) {
  const auto [at, inserted] = weights_.try_emplace(&weight, kNoValue);
  if (inserted) {
    at->second = add_value(weight.desc, -1);
    values_.back().weight = &weight;
    values_.back().name = weight.name;
  }
  return at->second;
}

ValueId Graph::embed(const Weight& table, RowsBy rows) {
  const ValueId w = weight(table);
  require(table.desc.shape.rank == 2 && traits(table.desc.type).to_float, Op::kEmbed, "a table [n, d]", {w});
  return add_node(Op::kEmbed, EmbedParams{rows}, {w},
                  {make_desc(DataType::kF32, {tokens_, table.desc.shape[1]}, RowKind::kTokens)})[0];
}

ValueId Graph::step_hidden(int64_t d) {
  return add_node(Op::kStepHidden, NoParams{}, {}, {make_desc(DataType::kF32, {tokens_, d}, RowKind::kTokens)})[0];
}

ValueId Graph::select_rows(ValueId x) {
  const TensorDesc& d = values_[x].desc;
  require(is_f32(d) && d.shape.rank == 2 && d.rows == RowKind::kTokens, Op::kSelectRows, "F32 [T, d]", {x});
  return add_node(Op::kSelectRows, NoParams{}, {x},
                  {make_desc(DataType::kF32, {outputs_, d.shape[1]}, RowKind::kOutputs)})[0];
}

ValueId Graph::matmul(ValueId x, const Weight& weight, const Weight* bias) {
  const ValueId w = this->weight(weight), b = optional_weight(bias);
  const TensorDesc dx = values_[x].desc, &dw = weight.desc;
  require(is_f32(dx) && dx.shape.rank == 2 && dw.shape.rank == 2 && dw.shape[1] == dx.shape[1] && traits(dw.type).dot,
          Op::kMatMul, "x F32 [rows, k] and weight [n, k] of a type that multiplies", {x, w});
  require(!bias || (is_f32(bias->desc) && bias->desc.shape == Shape{dw.shape[0]}), Op::kMatMul, "bias F32 [n]", {w, b});
  const ValueId y = add_node(Op::kMatMul, NoParams{}, {x, w, weight.factor ? kNoValue : b},
                             {make_desc(DataType::kF32, {dx.shape[0], dw.shape[0]}, dx.rows)})[0];
  if (!weight.factor) return y;
  const ValueId scaled = apply_factor(y, weight, x, kNoValue);
  return bias ? add(scaled, b) : scaled;
}

ValueId Graph::matmul_experts(ValueId x, const Weight& weight, ValueId ids, const Weight* bias) {
  const ValueId w = this->weight(weight), b = optional_weight(bias);
  const TensorDesc dx = values_[x].desc, &dw = weight.desc;
  const bool per_expert = dx.shape.rank == 3;
  require(is_f32(dx) && dx.contiguous() && (dx.shape.rank == 2 || per_expert) && dw.shape.rank == 3 &&
              dw.shape[2] == dx.shape.last() && traits(dw.type).dot,
          Op::kMatMulExperts, "x F32 [T, k] or [T, u, k] and weight [e, n, k]", {x, w, ids});
  int64_t used = dw.shape[0];
  if (ids == kNoValue) {
    require(per_expert && dx.shape[1] == used, Op::kMatMulExperts, "x F32 [T, e, k] where there are no ids", {x, w});
  } else {
    const TensorDesc& di = values_[ids].desc;
    used = di.shape[1];
    require(di.type == DataType::kI32 && di.shape.rank == 2 && di.rows == dx.rows && di.shape[0] == dx.shape[0] &&
                di.contiguous() && (!per_expert || dx.shape[1] == used),
            Op::kMatMulExperts, "ids I32 [T, u]", {x, w, ids});
  }
  require(!bias || (is_f32(bias->desc) && bias->desc.shape == Shape{dw.shape[0], dw.shape[1]}), Op::kMatMulExperts,
          "bias F32 [e, n]", {w, b});
  require(!bias || !weight.factor, Op::kMatMulExperts, "a factor or a bias of the experts, not both", {w, b});
  const ValueId y = add_node(Op::kMatMulExperts, NoParams{}, {x, w, ids, b},
                             {make_desc(DataType::kF32, {dx.shape[0], used, dw.shape[1]}, dx.rows)})[0];
  return weight.factor ? apply_factor(y, weight, x, ids) : y;
}

ValueId Graph::apply_factor(ValueId y, const Weight& weight, ValueId x, ValueId ids) {
  const Weight& factor = *weight.factor;
  if (factor.desc.shape == Shape{1}) {
    float value = 1;
    if (factor.host) std::memcpy(&value, factor.host, sizeof value);
    return scale(y, value);
  }
  require(ids != kNoValue && factor.desc.shape == Shape{weight.desc.shape[0], 1, 1}, Op::kMatMulExperts,
          "one factor, or one per expert where tokens select experts", {y, this->weight(factor)});
  // Gathers the factors of the selected experts: a matmul of ones with the factors.
  const Shape shape = values_[x].desc.shape;
  const ValueId rows = shape.rank == 2 ? x : reshape(x, {shape[0], shape.row_elements()});
  const ValueId ones = clamp(view_columns(rows, 0, 1), 1, 1);  // [T, 1]
  return mul(y, matmul_experts(ones, factor, ids));            // times [T, u, 1]
}

ValueId Graph::rms_norm(ValueId x, const Weight* weight, float eps) {
  const ValueId w = optional_weight(weight);
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2, Op::kRmsNorm, "x F32 [.., d]", {x});
  require(!weight || (is_f32(weight->desc) && weight->desc.shape == Shape{d.shape.last()}), Op::kRmsNorm,
          "weight F32 of x's last dimension", {x, w});
  return add_node(Op::kRmsNorm, NormParams{eps}, {x, w}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::layer_norm(ValueId x, const Weight* weight, const Weight* bias, float eps) {
  const ValueId w = optional_weight(weight), b = optional_weight(bias);
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2, Op::kLayerNorm, "x F32 [.., d]", {x});
  for (const Weight* p : {weight, bias}) {
    require(!p || (is_f32(p->desc) && p->desc.shape == Shape{d.shape.last()}), Op::kLayerNorm,
            "weight and bias F32 of x's last dimension", {x, w, b});
  }
  return add_node(Op::kLayerNorm, NormParams{eps}, {x, w, b}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::rms(ValueId x) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2, Op::kRms, "x F32 [.., d]", {x});
  return add_node(Op::kRms, NoParams{}, {x}, {make_desc(DataType::kF32, with_last(d.shape, 1), d.rows)})[0];
}

ValueId Graph::softmax(ValueId x) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2, Op::kSoftmax, "x F32 [.., d]", {x});
  return add_node(Op::kSoftmax, NoParams{}, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::sparsify(ValueId x, float factor) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2 && d.shape.last() >= 2, Op::kSparsify, "x F32 [.., d] with d at least 2", {x});
  return add_node(Op::kSparsify, SparsifyParams{factor}, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::add(ValueId a, ValueId b) {
  const TensorDesc da = values_[a].desc, db = values_[b].desc;
  require(is_f32(da) && is_f32(db) && (same_or_row(da, db) || is_vector_of_row(da, db)), Op::kAdd,
          "F32 operands of one shape, or the second [last dimension] or with 1 as its middle dimension", {a, b});
  return add_node(Op::kAdd, NoParams{}, {a, b}, {make_desc(DataType::kF32, da.shape, da.rows)})[0];
}

ValueId Graph::mul(ValueId a, ValueId b) {
  const TensorDesc da = values_[a].desc, db = values_[b].desc;
  require(is_f32(da) && is_f32(db) &&
              (same_or_row(da, db) || is_vector_of_row(da, db) ||
               (da.shape.rank > 1 && db.rows == da.rows && db.shape == with_last(da.shape, 1))),
          Op::kMul,
          "F32 operands of one shape, or the second [last dimension] or with 1 as its middle or last dimension",
          {a, b});
  return add_node(Op::kMul, NoParams{}, {a, b}, {make_desc(DataType::kF32, da.shape, da.rows)})[0];
}

ValueId Graph::scale(ValueId x, float factor) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d), Op::kScale, "x F32", {x});
  return add_node(Op::kScale, ScaleParams{factor}, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::clamp(ValueId x, float low, float high) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && low <= high, Op::kClamp, concat("x F32 and an interval, ", low, " to ", high), {x});
  return add_node(Op::kClamp, ClampParams{low, high}, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::unary(ValueId x, UnaryKind kind) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d), Op::kUnary, "x F32", {x});
  return add_node(Op::kUnary, UnaryParams{kind}, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::xielu(ValueId x, const XieluParams& params) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d), Op::kXielu, "x F32", {x});
  return add_node(Op::kXielu, params, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::gated_activation(ValueId gate, ValueId up, const GatedActivationParams& params) {
  const TensorDesc dg = values_[gate].desc, du = values_[up].desc;
  require(is_f32(dg) && is_f32(du) && dg.shape == du.shape && dg.rows == du.rows, Op::kGatedActivation,
          "gate and up F32 of one shape", {gate, up});
  return add_node(Op::kGatedActivation, params, {gate, up}, {make_desc(DataType::kF32, dg.shape, dg.rows)})[0];
}

ValueId Graph::slice_columns(ValueId x, int64_t begin, int64_t count) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank >= 2 && begin >= 0 && count >= 1 && begin <= d.shape.last() - count, Op::kSlice,
          concat("x F32 [.., d] with d at least ", begin, " + ", count), {x});
  TensorDesc out = make_desc(DataType::kF32, d.shape, d.rows);
  out.shape.dim[out.shape.rank - 1] = count;
  out.row_stride = out.shape.row_elements();
  return add_node(Op::kSlice, SliceParams{begin, count}, {x}, {out})[0];
}

ValueId Graph::concat_columns(ValueId a, ValueId b) {
  const TensorDesc da = values_[a].desc, db = values_[b].desc;
  require(is_f32(da) && is_f32(db) && da.shape.rank == 3 && db.shape.rank == 3 && da.rows == db.rows &&
              da.shape[0] == db.shape[0] && (db.shape[1] == da.shape[1] || db.shape[1] == 1),
          Op::kConcat, "a F32 [T, h, m] and b F32 [T, h or 1, n]", {a, b});
  return add_node(Op::kConcat, NoParams{}, {a, b},
                  {make_desc(DataType::kF32, {da.shape[0], da.shape[1], da.shape[2] + db.shape[2]}, da.rows)})[0];
}

ValueId Graph::mix_streams(ValueId x, ValueId weights) {
  const TensorDesc d = values_[x].desc, dw = values_[weights].desc;
  require(is_f32(d) && is_f32(dw) && d.shape.rank == 3 && dw.shape.rank == 3 && dw.rows == d.rows &&
              dw.shape[0] == d.shape[0] && dw.shape[2] == d.shape[1],
          Op::kMixStreams, "x F32 [T, s, d] and weights F32 [T, o, s]", {x, weights});
  return add_node(Op::kMixStreams, NoParams{}, {x, weights},
                  {make_desc(DataType::kF32, {d.shape[0], dw.shape[1], d.shape[2]}, d.rows)})[0];
}

ValueId Graph::agreement(ValueId a, ValueId b) {
  const TensorDesc da = values_[a].desc, db = values_[b].desc;
  require(is_f32(da) && is_f32(db) && da.shape.rank == 3 && db.shape == da.shape && db.rows == da.rows, Op::kAgreement,
          "a and b F32 [T, h, d]", {a, b});
  return add_node(Op::kAgreement, NoParams{}, {a, b},
                  {make_desc(DataType::kF32, {da.shape[0], da.shape[1], 1}, da.rows)})[0];
}

ValueId Graph::sinkhorn(ValueId x, const SinkhornParams& params) {
  const TensorDesc d = values_[x].desc;
  require(is_f32(d) && d.shape.rank == 3 && d.shape[1] == d.shape[2] && params.iterations >= 1, Op::kSinkhorn,
          "x F32 [T, n, n] and at least one iteration", {x});
  return add_node(Op::kSinkhorn, params, {x}, {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::rope_table(const RopeTableParams& params, const Weight* frequency_factors) {
  const ValueId f = optional_weight(frequency_factors);
  require(params.n_dims >= 2 && params.n_dims % 2 == 0 && params.freq_base > 0 && params.period >= 1, Op::kRopeTable,
          concat("an even number of rotated dimensions and a positive base, n_dims ", params.n_dims), {f});
  require(!frequency_factors || (is_f32(frequency_factors->desc) && frequency_factors->desc.shape.rank == 1 &&
                                 frequency_factors->desc.shape[0] >= params.n_dims / 2),
          Op::kRopeTable, concat("at least ", params.n_dims / 2, " frequency factors F32"), {f});
  return add_node(Op::kRopeTable, params, {f},
                  {make_desc(DataType::kF32, {tokens_, params.n_dims / 2, 2}, RowKind::kTokens)})[0];
}

ValueId Graph::rope(ValueId x, ValueId table, bool interleaved) {
  const TensorDesc d = values_[x].desc, dt = values_[table].desc;
  require(is_f32(dt) && dt.rows == RowKind::kTokens && dt.shape.rank == 3 && dt.shape[2] == 2 && dt.contiguous(),
          Op::kRope, "a table F32 [T, n_dims / 2, 2]", {x, table});
  const int n_dims = static_cast<int>(dt.shape[1]) * 2;
  require(is_f32(d) && d.shape.rank == 3 && d.rows == RowKind::kTokens && n_dims <= d.shape[2], Op::kRope,
          "x F32 [T, n_head, head_dim] with head_dim at least the rotated dimensions", {x, table});
  return add_node(Op::kRope, RopeParams{n_dims, interleaved}, {x, table},
                  {make_desc(DataType::kF32, d.shape, d.rows)})[0];
}

ValueId Graph::position_factor(const PositionFactorParams& params) {
  require(params.interval >= 1 && params.offset >= 0, Op::kPositionFactor,
          concat("an interval of at least 1 and no negative offset, ", params.interval, " and ", params.offset), {});
  return add_node(Op::kPositionFactor, params, {}, {make_desc(DataType::kF32, {tokens_, 1}, RowKind::kTokens)})[0];
}

void Graph::kv_store(ValueId k, ValueId v, const CacheDesc& cache) {
  const auto fits = [&](ValueId id, int dim) {
    const TensorDesc& d = values_[id].desc;
    return is_f32(d) && d.rows == RowKind::kTokens && d.shape == Shape{tokens_, cache.n_kv_head, dim};
  };
  require(fits(k, cache.key_dim) && cache.latent == (v == kNoValue) && (cache.latent || fits(v, cache.value_dim)) &&
              (!cache.latent || cache.value_dim <= cache.key_dim),
          Op::kKvStore, "k and, unless the cache is latent, v F32 [T, n_kv_head, head_dim] as the cache is", {k, v});
  CHECK_INTERNAL(cache.stride == 1 || cache.latent);
  add_node(Op::kKvStore, NoParams{}, {k, v}, {}, cache);
}

ValueId Graph::paged_attention(ValueId q, const CacheDesc& cache, const AttentionParams& params, const Weight* sinks) {
  const ValueId s = optional_weight(sinks);
  const TensorDesc d = values_[q].desc;
  require(is_f32(d) && d.shape.rank == 3 && d.rows == RowKind::kTokens && d.shape[2] == cache.key_dim &&
              cache.n_kv_head > 0 && d.shape[1] % cache.n_kv_head == 0,
          Op::kPagedAttention, "q F32 [T, n_head, key_dim] with n_head a multiple of the cache's heads", {q});
  require(!sinks || (is_f32(sinks->desc) && sinks->desc.shape == Shape{d.shape[1]}), Op::kPagedAttention,
          "sinks F32 [n_head]", {q, s});
  return add_node(Op::kPagedAttention, params, {q, s},
                  {make_desc(DataType::kF32, {tokens_, d.shape[1] * cache.value_dim}, RowKind::kTokens)}, cache)[0];
}

ValueId Graph::select_positions(ValueId q, ValueId weights, const CacheDesc& index, const SelectParams& params) {
  const TensorDesc d = values_[q].desc;
  require(is_f32(d) && d.shape.rank == 3 && d.rows == RowKind::kTokens && d.shape[2] == index.key_dim &&
              params.count >= 1 && params.block >= 1 && params.n_last >= 0 && params.n_last <= params.count,
          Op::kSelectPositions, concat("q F32 [T, h, ", index.key_dim, "] and at least one block"), {q});
  if (weights != kNoValue) {
    const TensorDesc& dw = values_[weights].desc;
    require(params.sum_heads && is_f32(dw) && dw.rows == d.rows && dw.shape == Shape{d.shape[0], d.shape[1]},
            Op::kSelectPositions, "weights F32 [T, h] of the heads to sum", {q, weights});
  }
  CHECK_INTERNAL(index.use == CacheUse::kIndex && index.latent && index.n_kv_head == 1);
  const Shape shape{d.shape[0], params.sum_heads ? 1 : d.shape[1], params.count + (params.unfinished ? 1 : 0)};
  return add_node(Op::kSelectPositions, params, {q, weights}, {make_desc(DataType::kI32, shape, d.rows)}, index)[0];
}

Graph::PartialAttention Graph::sparse_attention(ValueId q, ValueId blocks, const CacheDesc& cache,
                                                const SparseAttentionParams& params, const Weight* sinks) {
  const ValueId s = optional_weight(sinks);
  const TensorDesc d = values_[q].desc;
  require(is_f32(d) && d.shape.rank == 3 && d.rows == RowKind::kTokens && d.shape[2] == cache.key_dim &&
              cache.n_kv_head > 0 && d.shape[1] % cache.n_kv_head == 0,
          Op::kSparseAttention, "q F32 [T, n_head, key_dim] with n_head a multiple of the cache's heads", {q});
  require(!sinks || (is_f32(sinks->desc) && sinks->desc.shape == Shape{d.shape[1]}), Op::kSparseAttention,
          "sinks F32 [n_head]", {q, s});
  if (blocks != kNoValue) {
    const TensorDesc& db = values_[blocks].desc;
    require(db.type == DataType::kI32 && db.contiguous() && db.shape.rank == 3 && db.rows == d.rows &&
                db.shape[0] == d.shape[0] && (db.shape[1] == 1 || db.shape[1] == cache.n_kv_head) && params.block >= 1,
            Op::kSparseAttention, "blocks I32 [T, 1 or n_kv_head, count]", {q, blocks});
  }
  CHECK_INTERNAL(cache.use == CacheUse::kSparseAttention &&
                 (cache.stride == 1 || (cache.latent && params.window == 0)));
  const auto out = add_node(Op::kSparseAttention, params, {q, blocks, s},
                            {make_desc(DataType::kF32, {tokens_, d.shape[1] * cache.value_dim}, RowKind::kTokens),
                             make_desc(DataType::kF32, {tokens_, d.shape[1]}, RowKind::kTokens)},
                            cache);
  return {out[0], out[1]};
}

Graph::Route Graph::moe_route(ValueId logits, const MoeRouteParams& params, const Weight* selection_bias,
                              const Weight* experts) {
  const ValueId b = optional_weight(selection_bias), e = optional_weight(experts);
  const TensorDesc d = values_[logits].desc;
  require(is_f32(d) && d.shape.rank == 2 && params.n_used >= 1 && params.n_used <= d.shape[1] && params.n_groups >= 1 &&
              d.shape[1] % params.n_groups == 0 && params.groups_used >= 1 && params.groups_used <= params.n_groups &&
              params.n_used <= d.shape[1] / params.n_groups * params.groups_used,
          Op::kMoeRoute, concat("logits F32 [T, e] with at least the ", params.n_used, " experts that are used"),
          {logits});
  require(!selection_bias || (is_f32(selection_bias->desc) && selection_bias->desc.shape == Shape{d.shape[1]}),
          Op::kMoeRoute, "selection bias F32 [e]", {logits, b});
  require(!experts || (experts->desc.type == DataType::kI32 && experts->desc.shape.rank == 2 &&
                       experts->desc.shape[1] == params.n_used && d.rows != RowKind::kFixed),
          Op::kMoeRoute, concat("experts I32 [n, ", params.n_used, "] of each token id"), {logits, e});
  const Shape shape{d.shape[0], params.n_used};
  const auto out = add_node(Op::kMoeRoute, params, {logits, b, e},
                            {make_desc(DataType::kI32, shape, d.rows), make_desc(DataType::kF32, shape, d.rows)});
  return {out[0], out[1]};
}

ValueId Graph::moe_combine(ValueId y, ValueId weights) {
  const TensorDesc d = values_[y].desc, dw = values_[weights].desc;
  require(is_f32(d) && d.shape.rank == 3 && is_f32(dw) && dw.rows == d.rows &&
              dw.shape == Shape{d.shape[0], d.shape[1]} && d.contiguous() && dw.contiguous(),
          Op::kMoeCombine, "y F32 [T, u, d] and weights F32 [T, u]", {y, weights});
  return add_node(Op::kMoeCombine, NoParams{}, {y, weights},
                  {make_desc(DataType::kF32, {d.shape[0], d.shape[2]}, d.rows)})[0];
}

Graph::TopK Graph::top_k(ValueId logits, int k) {
  const TensorDesc d = values_[logits].desc;
  require(is_f32(d) && d.shape.rank == 2 && k >= 1 && k <= d.shape[1], Op::kTopK,
          concat("logits F32 [O, v] with at least ", k, " columns"), {logits});
  const auto out =
      add_node(Op::kTopK, TopKParams{k}, {logits},
               {make_desc(DataType::kI32, {d.shape[0], k}, d.rows), make_desc(DataType::kF32, {d.shape[0], k}, d.rows),
                make_desc(DataType::kF32, {d.shape[0], 1}, d.rows)});
  return {out[0], out[1], out[2]};
}

ValueId Graph::reshape(ValueId x, const Shape& shape) {
  const TensorDesc d = values_[x].desc;
  CHECK_INTERNAL(shape.rank >= 1 && shape[0] == d.shape[0]);
  if (shape.elements() != d.shape.elements()) {
    throw Error(ErrorCode::kInvalidFile, concat("[graph] layer ", layer_, ": expected a tensor of shape ",
                                                shape.to_string(), ", found ", d.shape.to_string()));
  }
  TensorDesc view = make_desc(d.type, shape, d.rows);
  view.row_stride = d.row_stride;
  const ValueId id = add_value(view, values_[x].producer);
  values_[id].alias_of = x;
  return id;
}

ValueId Graph::view_columns(ValueId x, int64_t begin, int64_t count) {
  const TensorDesc d = values_[x].desc;
  CHECK_INTERNAL(d.shape.rank == 2 && begin >= 0 && count >= 1 && begin + count <= d.shape[1]);
  TensorDesc view = make_desc(d.type, {d.shape[0], count}, d.rows);
  view.row_stride = d.row_stride;
  const ValueId id = add_value(view, values_[x].producer);
  values_[id].alias_of = x;
  values_[id].offset = begin;
  return id;
}

ValueId Graph::view_logits_rows(ValueId x) {
  const TensorDesc d = values_[x].desc;
  CHECK_INTERNAL(d.rows == RowKind::kOutputs && logits_ <= outputs_);
  TensorDesc view = d;
  view.rows = RowKind::kLogits;
  view.shape.dim[0] = logits_;
  const ValueId id = add_value(view, values_[x].producer);
  values_[id].alias_of = x;
  return id;
}

ValueId Graph::name(ValueId x, std::string text) {
  values_[x].name = std::move(text);
  return x;
}

void Graph::mark_output(ValueId x) { marked_.push_back(x); }

void Graph::mark_output_on_request(ValueId x) {
  mark_output(x);
  on_request_.push_back(x);
}

ValueId Graph::find(const std::string& name) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return static_cast<ValueId>(i);
  }
  return kNoValue;
}

ValueId Graph::root(ValueId id) const {
  while (values_[id].alias_of != kNoValue) id = values_[id].alias_of;
  return id;
}

}  // namespace infer
