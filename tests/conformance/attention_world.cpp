#include "tests/conformance/attention_world.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ggml-like/error.h"
#include "ggml-like/quant/cache_row.h"

namespace infer::test {

Leaf token_leaf(const AttentionStep& step, int bucket, const std::vector<std::vector<float>>& from, int row,
                const Shape& shape) {
  Leaf leaf{make_desc(DataType::kF32, shape, RowKind::kTokens), {}};
  leaf.data.resize(leaf.desc.bytes());
  std::fill_n(leaf.as<float>(), shape.elements(), std::bit_cast<float>(kPaddingBits));
  CHECK_INTERNAL(shape.elements() == int64_t{bucket} * row);
  float* to = leaf.as<float>();
  for (const Run& run : step.runs) {
    std::copy_n(from[run.sequence].begin() + int64_t{run.first} * row, int64_t{run.count} * row, to);
    to += int64_t{run.count} * row;
  }
  return leaf;
}

namespace {

// The three leaves as columns of one tensor.
Leaf fuse(const std::vector<Leaf>& parts, int bucket) {
  int64_t width = 0;
  for (const Leaf& p : parts) width += p.desc.shape.row_elements();
  Leaf all{make_desc(DataType::kF32, {bucket, width}, RowKind::kTokens), {}};
  all.data.resize(all.desc.bytes());
  int64_t at = 0;
  for (const Leaf& p : parts) {
    const int64_t row = p.desc.shape.row_elements();
    for (int t = 0; t < bucket; ++t) std::copy_n(p.as<float>() + t * row, row, all.as<float>() + t * width + at);
    at += row;
  }
  return all;
}

// The same for the selected blocks.
Leaf blocks_leaf(const AttentionStep& step, int bucket, const AttentionData& d) {
  const int row = d.a.selections() * d.a.count;
  Leaf leaf{make_desc(DataType::kI32, {bucket, d.a.selections(), d.a.count}, RowKind::kTokens), {}};
  leaf.data.resize(leaf.desc.bytes(), kSentinel);
  int32_t* to = leaf.as<int32_t>();
  for (const Run& run : step.runs) {
    to = std::copy_n(d.blocks[run.sequence].begin() + int64_t{run.first} * row, int64_t{run.count} * row, to);
  }
  return leaf;
}

// The first `count` values of each row of `width` values.
std::vector<float> first_columns(const std::vector<float>& x, int width, int count) {
  std::vector<float> columns;
  for (size_t at = 0; at < x.size(); at += width) columns.insert(columns.end(), &x[at], &x[at] + count);
  return columns;
}

// Random blocks among those that each token sees.
std::vector<int32_t> draw_blocks(const AttentionCase& a, int length, Random& random) {
  std::vector<int32_t> blocks;
  for (int p = 0; p < length; ++p) {
    for (int s = 0; s < a.selections(); ++s) {
      const int entries = (p + 1) / a.stride;
      std::vector<int32_t> all(static_cast<size_t>((entries + a.block - 1) / a.block));
      std::iota(all.begin(), all.end(), 0);
      for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.next() % i]);
      if (static_cast<int>(all.size()) > a.count) all.resize(static_cast<size_t>(a.count));
      std::sort(all.begin(), all.end());
      all.resize(static_cast<size_t>(a.count), -1);
      blocks.insert(blocks.end(), all.begin(), all.end());
    }
  }
  return blocks;
}

}  // namespace

StepInputs step_of(const AttentionStep& part, const AttentionData& d, int bucket) {
  size_t longest = 1;
  for (const auto& table : d.tables) longest = std::max(longest, table.size());
  StepInputs step({bucket, 0, static_cast<int>(part.runs.size()), 1, static_cast<int>(longest) + 1});
  for (const Run& run : part.runs) {
    // Blocks behind the window are released, as in a cache with a window: their entries must not be read.
    std::vector<int32_t> table = d.tables[run.sequence];
    const int first_seen = d.a.params.window > 0 ? std::max(0, run.first - d.a.params.window + 1) / kBlockTokens : 0;
    std::fill_n(table.begin(), first_seen, -1);
    const std::span<const int32_t> tables[] = {table};
    const int index = step.add_sequence(tables, run.first + run.count);
    for (int t = 0; t < run.count; ++t) step.add_token(index, 0, run.first + t, false);
  }
  return step;
}

std::vector<Leaf> leaves_of(const AttentionStep& part, const AttentionData& d, int bucket) {
  const AttentionCase& a = d.a;
  std::vector<Leaf> leaves{token_leaf(part, bucket, d.q, d.q_row(), {bucket, a.heads, a.key_dim}),
                           token_leaf(part, bucket, d.k, d.k_row(), {bucket, a.kv_heads, a.key_dim})};
  if (!a.latent) leaves.push_back(token_leaf(part, bucket, d.v, d.v_row(), {bucket, a.kv_heads, a.value_dim}));
  if (a.fused) leaves = {fuse(leaves, bucket)};
  if (a.count > 0) leaves.push_back(blocks_leaf(part, bucket, d));
  if (a.sinks) {
    leaves.push_back({make_desc(DataType::kF32, {a.heads}), {}});
    leaves.back().data.resize(d.sinks.size() * 4);
    std::memcpy(leaves.back().data.data(), d.sinks.data(), d.sinks.size() * 4);
  }
  return leaves;
}

std::string describe(const AttentionCase& a) {
  std::string text = concat("h=", a.heads, "/", a.kv_heads, " dim=", a.key_dim);
  if (a.value_dim != a.key_dim) text += concat("/", a.value_dim);
  text += concat(" ", traits(a.key_type).name, "/", traits(a.value_type).name, " seq=");
  for (size_t i = 0; i < a.sequences.size(); ++i)
    text += concat(i ? "," : "", a.sequences[i].first, ":", a.sequences[i].second);
  if (!a.params.causal) text += " non-causal";
  if (a.params.window) text += concat(a.params.chunked ? " chunk=" : " window=", a.params.window);
  if (a.params.softcap > 0) text += concat(" softcap=", a.params.softcap);
  if (a.params.alibi_max_bias > 0) text += concat(" alibi=", a.params.alibi_max_bias);
  if (a.sinks) text += " sinks";
  if (a.fused) text += " fused";
  if (a.latent) text += " latent";
  if (a.count > 0) text += concat(" blocks=", a.count, "x", a.block, a.per_head ? " per head" : "");
  if (a.fp16_queries) text += " fp16 queries";
  if (a.large_rows) text += " large rows";
  if (a.stride > 1) text += concat(" stride=", a.stride);
  return text;
}

// Normally distributed rows.
std::vector<float> draw_rows(const AttentionCase& a, int length, int width, Random& random) {
  std::vector<float> rows = random.normals(static_cast<size_t>(length) * static_cast<size_t>(width));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (a.large_rows && i / static_cast<size_t>(width) % 5 == 3) rows[i] *= kLargeRow;
  }
  return rows;
}

AttentionData make_data(const AttentionCase& a, Random& random) {
  AttentionData d;
  d.a = a;
  d.cache = {0, 0, a.kv_heads, a.key_dim, a.value_dim, a.key_type, a.value_type, a.latent};
  if (a.sparse()) d.cache.use = CacheUse::kSparseAttention;
  d.cache.stride = a.stride;
  int64_t used = 0;
  for (const auto& [length, queries] : a.sequences) {
    d.q.push_back(random.normals(static_cast<size_t>(length) * d.q_row()));
    if (a.fp16_queries) d.q.back() = stored(DataType::kF16, d.q.back());
    d.k.push_back(draw_rows(a, length, d.k_row(), random));
    d.v.push_back(a.latent ? first_columns(d.k.back(), a.key_dim, a.value_dim)
                           : draw_rows(a, length, d.v_row(), random));
    if (a.count > 0) d.blocks.push_back(draw_blocks(a, length, random));
    used += (length + kBlockTokens - 1) / kBlockTokens;
  }
  d.n_blocks = used + 3;
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < d.n_blocks; ++i) ids.push_back(i);
  for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random.next() % i]);
  size_t next = 0;
  for (const auto& [length, queries] : a.sequences) {
    d.tables.emplace_back();
    for (int p = 0; p < length; p += kBlockTokens) d.tables.back().push_back(ids[next++]);
  }
  if (a.sinks) d.sinks = random.normals(static_cast<size_t>(a.heads));
  return d;
}

Attended attend(TestDevice& device, const AttentionData& d, const Composition& composition, std::byte fill) {
  const AttentionCase& a = d.a;
  Attended result;
  TestCache cache(device, d.cache, d.n_blocks, fill);
  for (size_t s = 0; s < a.sequences.size(); ++s) {
    result.out.emplace_back(static_cast<size_t>(a.sequences[s].first) * d.out_row(), NAN);
  }
  for (const AttentionStep& part : composition) {
    int tokens = 0;
    for (const Run& run : part.runs) tokens += run.count;
    const int bucket = tokens + 1;
    const StepInputs step = step_of(part, d, bucket);
    const std::vector<Leaf> leaves = leaves_of(part, d, bucket);
    const BuildGraph build = [&](Graph& g, const std::vector<Weight>& w) {
      ValueId q = g.weight(w[0]), k, v;
      if (a.fused) {
        k = g.reshape(g.view_columns(q, d.q_row(), d.k_row()), {bucket, a.kv_heads, a.key_dim});
        v = g.reshape(g.view_columns(q, d.q_row() + d.k_row(), d.v_row()), {bucket, a.kv_heads, a.value_dim});
        q = g.reshape(g.view_columns(q, 0, d.q_row()), {bucket, a.heads, a.key_dim});
      } else {
        k = g.weight(w[1]), v = a.latent ? kNoValue : g.weight(w[2]);
      }
      g.kv_store(k, v, d.cache);
      if (!part.queries) return std::vector<ValueId>{};
      const Weight* sinks = a.sinks ? &w.back() : nullptr;
      if (a.sparse()) {
        const ValueId blocks = a.count > 0 ? g.weight(w[a.latent ? 2 : 3]) : kNoValue;
        const SparseAttentionParams params = {.scale = a.params.scale, .block = a.block, .window = a.params.window};
        const Graph::PartialAttention partial = g.sparse_attention(q, blocks, d.cache, params, sinks);
        return std::vector{partial.out, partial.log_sum};
      }
      return std::vector{g.paged_attention(q, d.cache, a.params, sinks)};
    };
    const RunResult run = run_graph(device, Graph(bucket, 0), build, leaves, step, &cache);
    result.supported = run.supported;
    if (!run.broken.empty()) result.broken = run.broken;
    if (!run.supported) return result;
    if (!part.queries) continue;
    int row = 0;
    for (const Run& r : part.runs) {
      for (int p = r.first; p < r.first + r.count; ++p, ++row) {
        float* to = result.out[r.sequence].data() + int64_t{p} * d.out_row();
        to = std::copy_n(run.outputs[0].floats() + int64_t{row} * d.value_row(), d.value_row(), to);
        if (a.sparse()) std::copy_n(run.outputs[1].floats() + int64_t{row} * a.heads, a.heads, to);
      }
    }
  }
  result.cache = cache.download(device);
  return result;
}

Composition at_once(const AttentionCase& a) {
  AttentionStep store{{}, false}, query;
  for (int s = 0; s < static_cast<int>(a.sequences.size()); ++s) {
    const auto [length, queries] = a.sequences[s];
    if (length > queries) store.runs.push_back({s, 0, length - queries});
    query.runs.push_back({s, length - queries, queries});
  }
  Composition all;
  if (!store.runs.empty()) all.push_back(store);
  all.push_back(query);
  return all;
}

Composition in_chunks(const AttentionCase& a, int store_chunk, int chunk, bool mixed) {
  Composition all;
  std::vector<int> at;
  for (int s = 0; s < static_cast<int>(a.sequences.size()); ++s) {
    const auto [length, queries] = a.sequences[s];
    for (int p = 0; p < length - queries; p += store_chunk)
      all.push_back({{{s, p, std::min(store_chunk, length - queries - p)}}, false});
    at.push_back(length - queries);
  }
  for (bool more = true; more;) {
    more = false;
    AttentionStep step;
    for (int s = static_cast<int>(a.sequences.size()) - 1; s >= 0; --s) {
      const int count = std::min(chunk, a.sequences[s].first - at[s]);
      if (count <= 0) continue;
      more = true;
      step.runs.push_back({s, at[s], count});
      at[s] += count;
      if (mixed) continue;
      all.push_back(step);
      step.runs.clear();
    }
    if (!step.runs.empty()) all.push_back(step);
  }
  return all;
}

std::vector<float> stored(DataType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, static_cast<int64_t>(x.size())));
  std::vector<float> back(x.size());
  store_cache_row(type, x.data(), bytes.data(), static_cast<int64_t>(x.size()));
  traits(type).to_float(bytes.data(), back.data(), static_cast<int64_t>(x.size()));
  return back;
}

double norm(const float* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return std::sqrt(sum);
}

// What a CUDA device may round to fp16 for its tensor cores, with a relative error of up to 2^-11: queries, keys and
// values that are not fp16 (of BF16 those below 2^-14), and weights.
Rounded rounded_to_half(const AttentionCase& a) {
  const auto is_rounded = [](DataType type) { return type != DataType::kF16; };
  const DataType values = a.latent ? a.key_type : a.value_type;
  if (a.sparse() || a.key_type == DataType::kF32 || values == DataType::kF32) return {};  // not on tensor cores
  return {0x1.01p-11 * ((a.fp16_queries ? 0 : 1) + is_rounded(a.key_type)), 0x1.01p-11 * (1 + is_rounded(values))};
}

double attention_bound(const AttentionData& d, const Rounded& rounded) {
  const AttentionCase& a = d.a;
  double largest_q = 0, largest_k = 0, largest_v = 0;
  int longest = 0;
  for (size_t s = 0; s < a.sequences.size(); ++s) {
    const std::vector<float> k = stored(a.key_type, d.k[s]), v = stored(a.value_type, d.v[s]);
    for (size_t i = 0; i < d.q[s].size(); i += a.key_dim)
      largest_q = std::max(largest_q, norm(d.q[s].data() + i, a.key_dim));
    for (size_t i = 0; i < k.size(); i += a.key_dim) largest_k = std::max(largest_k, norm(k.data() + i, a.key_dim));
    for (const float x : v) largest_v = std::max(largest_v, std::abs(static_cast<double>(x)));
    longest = std::max(longest, a.sequences[s].first);
  }
  const double score = a.params.scale * largest_q * largest_k;
  double score_error = ((a.key_dim + 6) * kEps + rounded.scores) * score;
  if (a.params.softcap > 0)
    score_error += 3e-7 * std::min(score, static_cast<double>(a.params.softcap)) + 3 * kEps * score;
  if (a.params.alibi_max_bias > 0) score_error += 3 * kEps * (score + longest);
  const int cuts = longest / kAttentionSplit + 2;
  const double weight_error = 2 * score_error + rounded.weights + 4e-7 +
                              (std::min(longest, kAttentionSplit) + 8 + 6 * cuts) * kEps + cuts * 4e-7;
  return 2 * weight_error * largest_v;
}

bool same_bits(const std::vector<std::vector<float>>& x, const std::vector<std::vector<float>>& y, std::string& where) {
  for (size_t s = 0; s < x.size(); ++s) {
    for (size_t i = 0; i < x[s].size(); ++i) {
      if (std::memcmp(&x[s][i], &y[s][i], 4) == 0 || (std::isnan(x[s][i]) && std::isnan(y[s][i]))) continue;
      where = concat("sequence ", s, ", value ", i, ": ", x[s][i], " and ", y[s][i]);
      return false;
    }
  }
  return true;
}

Verdict check_attention(const AttentionCase& a, const std::string& name, const Devices& devices) {
  Random random = random_for(name);
  const AttentionData d = make_data(a, random);
  Verdict verdict;
  const Attended reference = attend(test_devices()[0], d, at_once(a));
  const double f32_bound = attention_bound(d), cuda_bound = attention_bound(d, rounded_to_half(a));
  std::vector<std::vector<float>> first_cpu;
  std::string where;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) { verdict.failures.push_back({device->name, what}); };
    const double bound = device->name.starts_with("cuda") ? cuda_bound : f32_bound;
    const Attended all = attend(*device, d, at_once(a));
    if (!all.supported) {
      ++verdict.unsupported;
      continue;
    }
    ++verdict.runs;
    if (!all.broken.empty()) fail(all.broken);
    for (size_t s = 0; s < a.sequences.size(); ++s) {
      for (size_t i = static_cast<size_t>(a.sequences[s].first - a.sequences[s].second) * d.out_row();
           i < all.out[s].size(); ++i) {
        const double off = std::abs(static_cast<double>(all.out[s][i]) - reference.out[s][i]);
        if (off <= bound) continue;
        fail(concat("against ref: sequence ", s, ", position ", i / d.out_row(), ", element ", i % d.out_row(), ": ",
                    reference.out[s][i], " expected, ", all.out[s][i], " found, tolerance ", bound));
        break;
      }
    }
    if (!device->is_cpu() && device->name != "ref") continue;
    if (device->is_cpu()) {
      if (first_cpu.empty()) {
        first_cpu = all.out;
        for (const auto& o : all.out) {
          verdict.fingerprint =
              fingerprint(verdict.fingerprint, DataType::kF32, o.data(), static_cast<int64_t>(o.size()));
        }
      } else if (!same_bits(first_cpu, all.out, where)) fail("against the first CPU level: " + where);
    }
    if (!a.params.causal || device->threads != 1) continue;
    const Composition others[] = {in_chunks(a, 37, 1, false), in_chunks(a, 1000, 3, true), in_chunks(a, 32, 1, true)};
    for (size_t i = 0; i < std::size(others); ++i) {
      const Attended other = attend(*device, d, others[i]);
      if (!other.broken.empty()) fail(other.broken);
      if (!same_bits(all.out, other.out, where)) fail(concat("at once and in composition ", i, ": ", where));
      if (all.cache != other.cache) fail(concat("the cache differs between at once and composition ", i));
    }
  }
  return verdict;
}

}  // namespace infer::test
