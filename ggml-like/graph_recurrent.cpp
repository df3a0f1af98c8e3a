// Builder calls of operations on recurrent states.
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/graph.h"

namespace infer {
namespace {

bool is_vector(const Weight& weight, int64_t n) {
  return weight.desc.type == DataType::kF32 && weight.desc.shape == Shape{n};
}

// F32 with a row per token and these dimensions after the first.
bool is_rows(const TensorDesc& desc, const Shape& row) {
  if (desc.type != DataType::kF32 || desc.rows != RowKind::kTokens || desc.shape.rank != row.rank + 1) return false;
  for (int i = 0; i < row.rank; ++i) {
    if (desc.shape[i + 1] != row[i]) return false;
  }
  return true;
}

bool holds(const CacheDesc& state, int64_t values) {
  return state.first_value >= 0 && state.first_value + values <= state.slot_values;
}

}  // namespace

ValueId Graph::ngram_embed(const Weight& table, std::shared_ptr<const NgramTables> tables, const CacheDesc& state) {
  const ValueId w = weight(table);
  require(table.desc.shape.rank == 2 && traits(table.desc.type).to_float, Op::kNgramEmbed, "a table [n, d]", {w});
  const auto lookups = static_cast<size_t>(tables->lookups());
  CHECK_INTERNAL(tables->multipliers.size() >= 2 && tables->sizes.size() == lookups &&
                 tables->offsets.size() == lookups && holds(state, tables->state_values()) &&
                 state.use == CacheUse::kTokenIds);
  for (size_t i = 0; i < lookups; ++i) {
    require(tables->sizes[i] > 0 &&
                uint64_t{tables->offsets[i]} + tables->sizes[i] <= static_cast<uint64_t>(table.desc.shape[0]),
            Op::kNgramEmbed, concat("rows ", tables->offsets[i], " to ", tables->offsets[i] + tables->sizes[i] - 1),
            {w});
  }
  const Shape shape{tokens_, tables->lookups() * table.desc.shape[1]};
  return add_node(Op::kNgramEmbed, NgramParams{std::move(tables)}, {w},
                  {make_desc(DataType::kF32, shape, RowKind::kTokens)}, state)[0];
}

ValueId Graph::short_conv(ValueId x, const Weight& weight, const Weight* bias, const ShortConvParams& params,
                          const CacheDesc& state) {
  const ValueId w = this->weight(weight), b = optional_weight(bias);
  const TensorDesc d = values_[x].desc, &dw = weight.desc;
  const int64_t c = d.shape.last();
  require(is_rows(d, {c}) && dw.type == DataType::kF32 && dw.shape.rank == 2 && dw.shape[0] == c && dw.shape[1] >= 2 &&
              dw.shape[1] <= kMaxConvWidth && (!bias || is_vector(*bias, c)),
          Op::kShortConv,
          concat("x F32 [T, c], weight F32 [c, width] with a width of 2 to ", kMaxConvWidth, " and bias F32 [c]"),
          {x, w, b});
  CHECK_INTERNAL(params.dilation >= 1 && holds(state, (dw.shape[1] - 1) * params.dilation * c));
  return add_node(Op::kShortConv, params, {x, w, b}, {make_desc(DataType::kF32, d.shape, RowKind::kTokens)}, state)[0];
}

ValueId Graph::gated_pool(ValueId x, ValueId gates, const Weight* offsets, int block, const CacheDesc& state) {
  const ValueId o = optional_weight(offsets);
  const TensorDesc d = values_[x].desc;
  require(d.shape.rank == 3 && (d.shape[1] == 1 || d.shape[1] == 2) && is_rows(d, {d.shape[1], d.shape[2]}) &&
              is_rows(values_[gates].desc, {d.shape[1], d.shape[2]}) && block >= 1,
          Op::kGatedPool, "x and gates F32 [T, 1 or 2, d]", {x, gates});
  require(
      !offsets || (offsets->desc.type == DataType::kF32 && offsets->desc.shape == Shape{block, d.shape.row_elements()}),
      Op::kGatedPool, concat("offsets F32 [", block, ", ", d.shape.row_elements(), "]"), {o});
  CHECK_INTERNAL(holds(state, 3 * d.shape.row_elements()));
  return add_node(Op::kGatedPool, GatedPoolParams{block}, {x, gates, o},
                  {make_desc(DataType::kF32, {tokens_, d.shape[2]}, RowKind::kTokens)}, state)[0];
}

ValueId Graph::token_shift(ValueId x, const CacheDesc& state) {
  const TensorDesc d = values_[x].desc;
  require(is_rows(d, {d.shape.last()}), Op::kTokenShift, "x F32 [T, c]", {x});
  CHECK_INTERNAL(holds(state, d.shape.last()));
  return add_node(Op::kTokenShift, NoParams{}, {x}, {make_desc(DataType::kF32, d.shape, RowKind::kTokens)}, state)[0];
}

ValueId Graph::selective_scan(const ScanInputs& in, const Weight& a, const Weight* skip, const CacheDesc& state) {
  const ValueId wa = weight(a), ws = optional_weight(skip);
  const TensorDesc x = values_[in.x].desc, b = values_[in.b].desc;
  require(x.shape.rank == 3 && b.shape.rank == 3, Op::kSelectiveScan, "x [T, h, d] and b [T, g, n]", {in.x, in.b});
  const int64_t h = x.shape[1], d = x.shape[2], g = b.shape[1], n = b.shape[2];
  require(is_rows(x, {h, d}) && is_rows(values_[in.dt].desc, {h}) && is_rows(b, {g, n}) &&
              is_rows(values_[in.c].desc, {g, n}) && h % g == 0,
          Op::kSelectiveScan, "F32 x [T, h, d], dt [T, h], b and c [T, g, n] with h a multiple of g",
          {in.x, in.dt, in.b, in.c});
  require((is_vector(a, h) || (a.desc.type == DataType::kF32 && a.desc.shape == Shape{h, n})) &&
              (!skip || is_vector(*skip, h)),
          Op::kSelectiveScan, concat("F32 a [", h, "] or [", h, ", ", n, "] and skip [", h, "]"), {wa, ws});
  CHECK_INTERNAL(holds(state, h * d * n));
  return add_node(Op::kSelectiveScan, NoParams{}, {in.x, in.dt, in.b, in.c, wa, ws},
                  {make_desc(DataType::kF32, {tokens_, h * d}, RowKind::kTokens)}, state)[0];
}

ValueId Graph::delta_rule(const DeltaInputs& in, const Weight& a, const DeltaRuleParams& params,
                          const CacheDesc& state) {
  const ValueId wa = weight(a);
  const TensorDesc q = values_[in.q].desc, v = values_[in.v].desc, dt = values_[in.dt].desc;
  require(q.shape.rank == 3 && v.shape.rank == 3, Op::kDeltaRule, "q [T, g, n] and v [T, h, d]", {in.q, in.v});
  const int64_t g = q.shape[1], n = q.shape[2], h = v.shape[1], d = v.shape[2];
  require(is_rows(q, {g, n}) && is_rows(values_[in.k].desc, {g, n}) && is_rows(v, {h, d}) && h % g == 0, Op::kDeltaRule,
          "F32 q and k [T, g, n] and v [T, h, d] with h a multiple of g", {in.q, in.k, in.v});
  require((is_rows(dt, {h}) || is_rows(dt, {h, n})) && is_rows(values_[in.beta].desc, {h}) && is_vector(a, h),
          Op::kDeltaRule, "F32 dt [T, h] or [T, h, n], beta [T, h] and a [h]", {in.dt, in.beta, wa});
  CHECK_INTERNAL(holds(state, h * n * d));
  return add_node(Op::kDeltaRule, params, {in.q, in.k, in.v, in.dt, in.beta, wa},
                  {make_desc(DataType::kF32, {tokens_, h * d}, RowKind::kTokens)}, state)[0];
}

Graph::Wkv Graph::wkv(const WkvInputs& in, const Weight& first, const CacheDesc& state) {
  const ValueId wf = weight(first);
  const TensorDesc r = values_[in.r].desc;
  require(r.shape.rank == 3, Op::kWkv, "r [T, h, n]", {in.r});
  const int64_t h = r.shape[1], n = r.shape[2];
  for (const ValueId part : {in.r, in.k, in.v, in.w, in.a, in.b}) {
    require(part == kNoValue || is_rows(values_[part].desc, {h, n}), Op::kWkv, "all inputs F32 [T, h, n]",
            {in.r, part});
  }
  require((in.a == kNoValue) == (in.b == kNoValue) && is_vector(first, h * n), Op::kWkv,
          concat("both a and b or neither, and first F32 [", h * n, "]"), {in.a, in.b, wf});
  CHECK_INTERNAL(holds(state, h * n * n));
  const TensorDesc out = make_desc(DataType::kF32, {tokens_, h * n}, RowKind::kTokens);
  const auto made = add_node(Op::kWkv, NoParams{}, {in.r, in.k, in.v, in.w, wf, in.a, in.b}, {out, out}, state);
  return {made[0], made[1]};
}

}  // namespace infer
