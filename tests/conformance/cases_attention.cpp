// Cases of kv_store and paged_attention: keys and values go into shuffled blocks of a cache full of NaN, queries of the
// last tokens of every sequence come out. Each case is computed in several compositions (all at once, token by token,
// chunks of sequences mixed); on the CPU all give the same bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/quant/cache_row.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

struct AttentionCase {
  int heads = 2, kv_heads = 2, key_dim = 16, value_dim = 16;
  DataType key_type = DataType::kF16, value_type = DataType::kF16;
  AttentionParams params = {};
  bool sinks = false, fused = false;                // fused: q, k and v are columns of one tensor
  std::vector<std::pair<int, int>> sequences = {};  // length, and how many of its last tokens have queries
};

std::string describe(const AttentionCase& a) {
  std::string text = concat("h=", a.heads, "/", a.kv_heads, " dim=", a.key_dim);
  if (a.value_dim != a.key_dim) text += concat("/", a.value_dim);
  text += concat(" ", traits(a.key_type).name, "/", traits(a.value_type).name, " seq=");
  for (size_t i = 0; i < a.sequences.size(); ++i)
    text += concat(i ? "," : "", a.sequences[i].first, ":", a.sequences[i].second);
  if (!a.params.causal) text += " non-causal";
  if (a.params.window) text += concat(" window=", a.params.window);
  if (a.params.softcap > 0) text += concat(" softcap=", a.params.softcap);
  if (a.params.alibi_max_bias > 0) text += concat(" alibi=", a.params.alibi_max_bias);
  if (a.sinks) text += " sinks";
  if (a.fused) text += " fused";
  return text;
}

// Consecutive tokens of one sequence in a step.
struct Run {
  int sequence, first, count;
};
struct AttentionStep {
  std::vector<Run> runs;
  bool queries = true;  // false: keys and values are stored only
};
using Composition = std::vector<AttentionStep>;

struct AttentionData {
  AttentionCase a;
  CacheDesc cache;
  int64_t n_blocks = 0;
  std::vector<std::vector<int32_t>> tables;  // of each sequence
  std::vector<std::vector<float>> q, k, v;   // [sequence][position * row]
  std::vector<float> sinks;

  int q_row() const { return a.heads * a.key_dim; }
  int k_row() const { return a.kv_heads * a.key_dim; }
  int v_row() const { return a.kv_heads * a.value_dim; }
  int out_row() const { return a.heads * a.value_dim; }
};

AttentionData make_data(const AttentionCase& a, Random& random) {
  AttentionData d;
  d.a = a;
  d.cache = {0, 0, a.kv_heads, a.key_dim, a.value_dim, a.key_type, a.value_type};
  int64_t used = 0;
  for (const auto& [length, queries] : a.sequences) {
    d.q.push_back(random.normals(static_cast<size_t>(length) * d.q_row()));
    d.k.push_back(random.normals(static_cast<size_t>(length) * d.k_row()));
    d.v.push_back(random.normals(static_cast<size_t>(length) * d.v_row()));
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

// Rows of the tokens of a step, then padding.
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

// The three leaves side by side in one tensor.
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

struct Attended {
  bool supported = true;
  std::string broken;
  std::vector<std::vector<float>> out;  // [sequence][position * out_row()], NaN where there is no query
  std::vector<std::byte> cache;
};

Attended attend(TestDevice& device, const AttentionData& d, const Composition& composition,
                std::byte fill = kSentinel) {
  const AttentionCase& a = d.a;
  Attended result;
  TestCache cache(device, d.cache, d.n_blocks, fill);
  size_t longest = 1;
  for (size_t s = 0; s < a.sequences.size(); ++s) {
    result.out.emplace_back(static_cast<size_t>(a.sequences[s].first) * d.out_row(), NAN);
    longest = std::max(longest, d.tables[s].size());
  }
  for (const AttentionStep& part : composition) {
    int tokens = 0;
    for (const Run& run : part.runs) tokens += run.count;
    const int bucket = tokens + 1;
    StepInputs step({bucket, 0, static_cast<int>(part.runs.size()), 1, static_cast<int>(longest) + 1});
    for (const Run& run : part.runs) {
      // Blocks behind the window are released, as a cache of windows does: nobody may look at their entries.
      std::vector<int32_t> table = d.tables[run.sequence];
      const int first_seen = a.params.window > 0 ? std::max(0, run.first - a.params.window + 1) / kBlockTokens : 0;
      std::fill_n(table.begin(), first_seen, -1);
      const std::span<const int32_t> tables[] = {table};
      const int index = step.add_sequence(tables, run.first + run.count);
      for (int t = 0; t < run.count; ++t) step.add_token(index, 0, run.first + t, false);
    }
    std::vector<Leaf> leaves{token_leaf(part, bucket, d.q, d.q_row(), {bucket, a.heads, a.key_dim}),
                             token_leaf(part, bucket, d.k, d.k_row(), {bucket, a.kv_heads, a.key_dim}),
                             token_leaf(part, bucket, d.v, d.v_row(), {bucket, a.kv_heads, a.value_dim})};
    if (a.fused) leaves = {fuse(leaves, bucket)};
    if (a.sinks) {
      leaves.push_back({make_desc(DataType::kF32, {a.heads}), {}});
      leaves.back().data.resize(d.sinks.size() * 4);
      std::memcpy(leaves.back().data.data(), d.sinks.data(), d.sinks.size() * 4);
    }
    const BuildGraph build = [&](Graph& g, const std::vector<Weight>& w) {
      ValueId q = g.weight(w[0]), k, v;
      if (a.fused) {
        k = g.reshape(g.view_columns(q, d.q_row(), d.k_row()), {bucket, a.kv_heads, a.key_dim});
        v = g.reshape(g.view_columns(q, d.q_row() + d.k_row(), d.v_row()), {bucket, a.kv_heads, a.value_dim});
        q = g.reshape(g.view_columns(q, 0, d.q_row()), {bucket, a.heads, a.key_dim});
      } else {
        k = g.weight(w[1]), v = g.weight(w[2]);
      }
      g.kv_store(k, v, d.cache);
      if (!part.queries) return std::vector<ValueId>{};
      return std::vector{g.paged_attention(q, d.cache, a.params, a.sinks ? &w.back() : nullptr)};
    };
    const RunResult run = run_graph(device, Graph(bucket, 0), build, leaves, step, &cache);
    result.supported = run.supported;
    if (!run.broken.empty()) result.broken = run.broken;
    if (!run.supported) return result;
    if (!part.queries) continue;
    const float* from = run.outputs[0].floats();
    for (const Run& r : part.runs) {
      std::copy_n(from, int64_t{r.count} * d.out_row(),
                  result.out[r.sequence].begin() + int64_t{r.first} * d.out_row());
      from += int64_t{r.count} * d.out_row();
    }
  }
  result.cache = cache.download(device);
  return result;
}

// All prefixes in one step, then all queries in one step.
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

// Prefixes in chunks of `store_chunk`, then queries in chunks of `chunk`, sequences taking turns in reverse order.
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

// Values as they come back from a cache of this type.
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

// One bound for every output of a case. A score less the maximum is off by key_dim + 6 roundings of |q| |k| and by what
// softcap (tanh, 4e-7) and ALiBi add; a weight by twice that relatively, by exp's 2e-7 and by the roundings of the sums
// over the visible positions and of the merges; all weights are positive, so that outputs are off by that part of the
// largest |v|.
double attention_bound(const AttentionData& d) {
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
  double score_error = (a.key_dim + 6) * kEps * score;
  if (a.params.softcap > 0)
    score_error += 3e-7 * std::min(score, static_cast<double>(a.params.softcap)) + 3 * kEps * score;
  if (a.params.alibi_max_bias > 0) score_error += 3 * kEps * (score + longest);
  const int cuts = longest / kAttentionSplit + 2;
  const double weight_error =
      2 * score_error + 4e-7 + (std::min(longest, kAttentionSplit) + 8 + 6 * cuts) * kEps + cuts * 4e-7;
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
  const double bound = attention_bound(d);
  std::vector<std::vector<float>> first_cpu;
  std::string where;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) { verdict.failures.push_back({device->name, what}); };
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

void add(std::vector<Entry>& list, AttentionCase a, bool quick) {
  a.params.scale = 1 / std::sqrt(static_cast<float>(a.key_dim));
  const std::string name = "paged_attention " + describe(a);
  list.push_back(
      {Op::kPagedAttention, name, quick, [=](const Devices& devices) { return check_attention(a, name, devices); }});
}

// kv_store alone. With a window of one position the softmax is exactly one weight of 1, so attention reads the stored
// values back as they are. Keys are read through scores: attention over two positions, whose bound is far below the
// difference that a wrong key makes. What is not a token's slot keeps its sentinel, on every block.
Verdict check_store(AttentionCase a, const std::string& name, const Devices& devices) {
  Random random = random_for(name);
  a.params.window = 1;
  const AttentionData d = make_data(a, random);
  Verdict verdict;
  std::string where;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) { verdict.failures.push_back({device->name, what}); };
    const Attended result = attend(*device, d, in_chunks(a, 7, 5, true));
    if (!result.supported) {
      ++verdict.unsupported;
      continue;
    }
    ++verdict.runs;
    if (!result.broken.empty()) fail(result.broken);
    size_t tokens = 0;
    for (size_t s = 0; s < a.sequences.size(); ++s) {
      tokens += static_cast<size_t>(a.sequences[s].first);
      const std::vector<float> v = stored(a.value_type, d.v[s]);
      const int group = a.heads / a.kv_heads;
      for (int p = a.sequences[s].first - a.sequences[s].second; p < a.sequences[s].first; ++p) {
        for (int i = 0; i < d.out_row(); ++i) {
          const float expected = v[int64_t{p} * d.v_row() + i / a.value_dim / group * a.value_dim + i % a.value_dim];
          const float found = result.out[s][int64_t{p} * d.out_row() + i];
          if (expected == found) continue;
          fail(concat("sequence ", s, ", position ", p, ", element ", i, ": ", expected, " stored, ", found, " read"));
          p = a.sequences[s].first;
          break;
        }
      }
    }
    if (device->is_cpu() && verdict.fingerprint == 0) {
      verdict.fingerprint =
          fingerprint(0, DataType::kI32, result.cache.data(), static_cast<int64_t>(result.cache.size() / 4));
    }
    const size_t block = device->device->cache_block_bytes(d.cache);
    std::vector<bool> in_use(static_cast<size_t>(d.n_blocks), false);
    for (const auto& table : d.tables) {
      for (const int32_t id : table) in_use[static_cast<size_t>(id)] = true;
    }
    // Bytes that keep two different contents were written in neither run.
    const Attended second = attend(*device, d, in_chunks(a, 7, 5, true), std::byte{0x5a});
    size_t untouched = 0;
    for (size_t i = 0; i < result.cache.size(); ++i) {
      const bool kept = result.cache[i] == kSentinel && second.cache[i] == std::byte{0x5a};
      untouched += kept;
      if (kept || in_use[i / block]) continue;
      fail(concat("block ", i / block, " belongs to nobody and was written"));
      break;
    }
    if (!same_bits(result.out, second.out, where)) fail("the former content of the cache shows: " + where);
    const size_t per_token = block / kBlockTokens;
    if (untouched != result.cache.size() - tokens * per_token) {
      fail(concat(tokens, " tokens of ", per_token, " bytes were stored and ", result.cache.size() - untouched,
                  " bytes changed"));
    }
  }
  return verdict;
}

void add_store(std::vector<Entry>& list, AttentionCase a, bool quick) {
  a.params.scale = 1 / std::sqrt(static_cast<float>(a.key_dim));
  const std::string name = "kv_store " + describe(a);
  list.push_back({Op::kKvStore, name, quick, [=](const Devices& devices) { return check_store(a, name, devices); }});
}

}  // namespace

void add_attention_cases(std::vector<Entry>& list) {
  const DataType types[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
  for (const DataType k : types) {
    for (const DataType v : types) {
      add_store(list, {.key_dim = 20, .value_dim = 12, .key_type = k, .value_type = v, .sequences = {{41, 9}, {3, 3}}},
                true);
      add(list, {.heads = 4, .key_type = k, .value_type = v, .sequences = {{45, 5}, {7, 2}}}, k == v);
      for (const int dim : {8, 33, 64, 128}) {
        add_store(list,
                  {.heads = 3,
                   .kv_heads = 3,
                   .key_dim = dim,
                   .value_dim = dim,
                   .key_type = k,
                   .value_type = v,
                   .sequences = {{70, 33}, {1, 1}, {32, 2}}},
                  false);
      }
    }
  }
  const DataType quantized[] = {DataType::kQ8_0, DataType::kQ4_0};
  for (const DataType k : {DataType::kF16, DataType::kQ8_0, DataType::kQ4_0}) {
    for (const DataType v : {DataType::kF32, DataType::kQ8_0, DataType::kQ4_0}) {
      if (k == DataType::kF16 && v == DataType::kF32) continue;
      add_store(list,
                {.heads = 4,
                 .key_dim = 64,
                 .value_dim = 32,
                 .key_type = k,
                 .value_type = v,
                 .sequences = {{41, 9}, {3, 3}, {32, 2}}},
                true);
      add(list,
          {.heads = 6,
           .key_dim = 32,
           .value_dim = 64,
           .key_type = k,
           .value_type = v,
           .sequences = {{300, 5}, {66, 33}, {1, 1}}},
          true);
    }
  }
  const auto with = [](AttentionParams p) { return p; };
  // Round the borders of the splits and of blocks, with many queries and with one.
  for (const int length : {1, 31, 32, 33, 255, 256, 257, 300, 511, 512, 513, 800}) {
    add(list, {.heads = 4, .kv_heads = 2, .sequences = {{length, 1}}}, length == 257);
    add(list, {.heads = 4, .kv_heads = 2, .sequences = {{length, std::min(length, 11)}, {20, 4}}},
        length == 256 || length == 513);
  }
  // Windows whose edge lies inside, at and past borders.
  for (const int window : {1, 2, 17, 32, 100, 255, 256, 257, 600}) {
    add(list, {.heads = 2, .kv_heads = 1, .params = with({.window = window}), .sequences = {{530, 20}}},
        window == 17 || window == 257);
    add(list, {.heads = 2, .kv_heads = 1, .params = with({.window = window}), .sequences = {{270, 9}, {5, 5}}},
        window == 2);
  }
  add(list, {.params = with({.softcap = 5}), .sequences = {{40, 6}}}, true);
  add(list, {.params = with({.softcap = 50}), .sequences = {{300, 9}}}, false);
  add(list, {.heads = 4, .kv_heads = 4, .params = with({.alibi_max_bias = 8}), .sequences = {{280, 5}}}, true);
  add(list, {.heads = 6, .kv_heads = 2, .params = with({.alibi_max_bias = 8}), .sequences = {{50, 7}, {33, 3}}}, true);
  add(list, {.heads = 4, .kv_heads = 2, .sinks = true, .sequences = {{260, 6}}}, true);
  add(list,
      {.heads = 4, .kv_heads = 2, .params = with({.window = 40}), .sinks = true, .sequences = {{300, 30}, {9, 9}}},
      false);
  add(list, {.params = with({.causal = false}), .sequences = {{37, 37}, {5, 5}}}, true);
  add(list, {.params = with({.causal = false}), .sequences = {{290, 290}}}, false);
  add(list,
      {.heads = 4, .kv_heads = 4, .params = with({.causal = false, .alibi_max_bias = 8}), .sequences = {{65, 65}}},
      false);
  add(list, {.heads = 14, .kv_heads = 2, .key_dim = 24, .value_dim = 24, .sequences = {{37, 5}, {12, 3}}}, true);
  add(list, {.heads = 4, .kv_heads = 1, .key_dim = 36, .value_dim = 20, .fused = true, .sequences = {{35, 6}, {4, 4}}},
      true);
  for (const DataType type : quantized) {
    for (const int dim : {32, 64, 96, 128}) {
      AttentionCase a{.heads = 8,
                      .key_dim = dim,
                      .value_dim = dim,
                      .key_type = type,
                      .value_type = type,
                      .sequences = {{530, 20}, {33, 3}}};
      a.fused = dim == 64;
      add(list, a, false);
      a.params.window = 100;
      a.params.softcap = 20;
      add(list, a, dim == 96);
      a.params = {.alibi_max_bias = 8};
      a.sinks = true;
      add(list, a, false);
    }
  }
  for (const int group : {1, 4, 7}) {
    for (const int dim : {8, 16, 20, 33, 48, 64, 80, 100, 128}) {
      for (const DataType type : types) {
        add(list,
            {.heads = 2 * group,
             .kv_heads = 2,
             .key_dim = dim,
             .value_dim = dim,
             .key_type = type,
             .value_type = type,
             .fused = dim == 64,
             .sequences = {{290, 5}, {66, 33}, {1, 1}}},
            false);
      }
    }
  }
  add(list, {.key_dim = 8, .value_dim = 128, .sequences = {{40, 5}}}, false);
  add(list, {.heads = 3, .kv_heads = 3, .key_dim = 192, .value_dim = 128, .sequences = {{300, 3}}}, false);
}

}  // namespace infer::test
