// Cases of select_positions and sparse_attention. Index queries, keys and weights are small integers, so that scores
// are exact and many are equal; with quantized keys they are random, and no two are nearly equal. As in attention, each
// case runs in several compositions, all with the same results.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/attention_world.h"

namespace infer::test {
namespace {

struct SelectCase {
  int heads = 4, key_dim = 16;
  DataType type = DataType::kF16;
  SelectParams params = {};
  bool weighted = false;
  int stride = 1;                                   // of the cache
  std::vector<std::pair<int, int>> sequences = {};  // as in AttentionCase
};

struct SelectData {
  SelectCase c;
  AttentionData d;
  std::vector<std::vector<float>> weights;  // [sequence][position * heads]

  int out_row() const { return (c.params.sum_heads ? 1 : c.heads) * (c.params.count + (c.params.unfinished ? 1 : 0)); }
};

std::string describe(const SelectCase& c) {
  std::string text = concat("h=", c.heads, " dim=", c.key_dim, " ", traits(c.type).name, " count=", c.params.count);
  if (c.params.block > 1) text += concat("x", c.params.block);
  if (c.params.n_last > 0) text += concat(" last=", c.params.n_last);
  if (c.stride > 1) text += concat(" stride=", c.stride);
  if (c.params.unfinished) text += " unfinished";
  text += !c.params.sum_heads ? " per head" : c.weighted ? " weighted" : "";
  text += " seq=";
  for (const auto& [length, queries] : c.sequences) text += concat(length, ":", queries, " ");
  text.pop_back();
  return text;
}

void round_all(std::vector<std::vector<float>>& rows, float unit) {
  for (std::vector<float>& row : rows) {
    for (float& x : row) x = std::round(2 * x) * unit;
  }
}

SelectData make_data(const SelectCase& c, Random& random) {
  AttentionCase a{.heads = c.heads, .kv_heads = 1, .key_dim = c.key_dim, .value_dim = c.key_dim};
  a.key_type = a.value_type = c.type;
  a.latent = true;
  a.sequences = c.sequences;
  SelectData data{c, make_data(a, random), {}};
  data.d.cache.value_dim = 0;
  data.d.cache.use = CacheUse::kIndex;
  data.d.cache.stride = c.stride;
  for (const auto& [length, queries] : c.sequences) {
    data.weights.push_back(random.normals(static_cast<size_t>(length) * c.heads));
  }
  if (traits(c.type).block_size == 1) {
    round_all(data.d.q, 1);
    round_all(data.d.k, 1);
    round_all(data.weights, 0.25f);
  }
  return data;
}

// Like attend(), with the numbers of the selected blocks as results.
Attended select(TestDevice& device, const SelectData& data, const Composition& composition) {
  const SelectCase& c = data.c;
  const AttentionData& d = data.d;
  Attended result;
  TestCache cache(device, d.cache, d.n_blocks);
  for (const auto& [length, queries] : c.sequences) {
    result.out.emplace_back(static_cast<size_t>(length) * data.out_row(), NAN);
  }
  for (const AttentionStep& part : composition) {
    int tokens = 0;
    for (const Run& run : part.runs) tokens += run.count;
    const int bucket = tokens + 1;
    std::vector<Leaf> leaves = leaves_of(part, d, bucket);
    if (c.weighted) leaves.push_back(token_leaf(part, bucket, data.weights, c.heads, {bucket, c.heads}));
    const BuildGraph build = [&](Graph& g, const std::vector<Weight>& w) {
      g.kv_store(g.weight(w[1]), kNoValue, d.cache);
      if (!part.queries) return std::vector<ValueId>{};
      const ValueId weights = c.weighted ? g.weight(w[2]) : kNoValue;
      return std::vector{g.select_positions(g.weight(w[0]), weights, d.cache, c.params)};
    };
    const RunResult run = run_graph(device, Graph(bucket, 0), build, leaves, step_of(part, d, bucket), &cache);
    result.supported = run.supported;
    if (!run.broken.empty()) result.broken = run.broken;
    if (!run.supported) return result;
    if (!part.queries) continue;
    const int32_t* from = run.outputs[0].ints();
    for (const Run& r : part.runs) {
      const int64_t n = int64_t{r.count} * data.out_row();
      std::copy_n(from, n, result.out[r.sequence].begin() + int64_t{r.first} * data.out_row());
      from += n;
    }
  }
  return result;
}

Verdict check_select(const SelectCase& c, const std::string& name, const Devices& devices) {
  Random random = random_for(name);
  const SelectData data = make_data(c, random);
  const AttentionCase& a = data.d.a;
  const Attended reference = select(test_devices()[0], data, at_once(a));
  Verdict verdict;
  std::string where;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) { verdict.failures.push_back({device->name, what}); };
    const Composition compositions[] = {at_once(a), in_chunks(a, 37, 1, false), in_chunks(a, 1000, 3, true)};
    for (size_t i = 0; i < std::size(compositions); ++i) {
      const Attended found = select(*device, data, compositions[i]);
      if (!found.supported) break;
      if (!found.broken.empty()) fail(found.broken);
      if (!same_bits(reference.out, found.out, where)) fail(concat("composition ", i, " against ref: ", where));
      if (i > 0) continue;
      ++verdict.runs;
      if (!device->is_cpu() || verdict.fingerprint != 0) continue;
      for (const auto& o : found.out) {
        verdict.fingerprint =
            fingerprint(verdict.fingerprint, DataType::kF32, o.data(), static_cast<int64_t>(o.size()));
      }
    }
  }
  verdict.unsupported = static_cast<int>(devices.size()) - verdict.runs;
  return verdict;
}

void add_select(std::vector<Entry>& list, const SelectCase& c, bool quick) {
  const std::string name = "select_positions " + describe(c);
  list.push_back(
      {Op::kSelectPositions, name, quick, [=](const Devices& devices) { return check_select(c, name, devices); }});
}

void add_selections(std::vector<Entry>& list) {
  for (const DataType type : kCacheTypes) {
    add_select(list,
               {.heads = 5,
                .key_dim = 32,
                .type = type,
                .params = {.count = 12},
                .weighted = true,
                .sequences = {{70, 40}, {13, 13}, {1, 1}}},
               true);
    add_select(list,
               {.heads = 3, .key_dim = 64, .type = type, .params = {.count = 33, .n_last = 2}, .sequences = {{300, 9}}},
               true);
    add_select(list,
               {.heads = 2,
                .key_dim = 96,
                .type = type,
                .params = {.count = 3, .block = 8, .n_last = 1, .sum_heads = false},
                .sequences = {{90, 30}, {9, 9}}},
               true);
  }
  add_select(list, {.heads = 64, .key_dim = 128, .params = {.count = 200}, .weighted = true, .sequences = {{1100, 2}}},
             false);
  add_select(list,
             {.heads = 4,
              .key_dim = 128,
              .params = {.count = 4, .block = 128, .sum_heads = false},
              .sequences = {{2100, 3}, {130, 2}}},
             false);
  for (const int stride : {4, 32, 128}) {
    add_select(list,
               {.heads = 3, .key_dim = 32, .params = {.count = 3}, .stride = stride, .sequences = {{520, 9}, {40, 40}}},
               true);
    add_select(list,
               {.heads = 3,
                .key_dim = 32,
                .params = {.count = 3, .unfinished = true},
                .stride = stride,
                .sequences = {{520, 9}, {40, 40}}},
               true);
  }
  add_select(list, {.heads = 1, .key_dim = 7, .params = {.count = 1}, .sequences = {{64, 64}}}, true);
  add_select(list, {.heads = 9, .key_dim = 20, .params = {.count = 5, .block = 3}, .sequences = {{64, 64}}}, true);
}

void add_sparse(std::vector<Entry>& list, AttentionCase a, bool quick) {
  a.params.scale = 1 / std::sqrt(static_cast<float>(a.key_dim));
  const std::string name = "sparse_attention " + describe(a);
  list.push_back(
      {Op::kSparseAttention, name, quick, [=](const Devices& devices) { return check_attention(a, name, devices); }});
}

void add_sparse_cases(std::vector<Entry>& list) {
  for (const DataType type : kCacheTypes) {
    AttentionCase a{.heads = 6, .key_dim = 64, .value_dim = 32, .key_type = type, .value_type = type};
    a.sequences = {{300, 5}, {66, 33}, {1, 1}};
    a.count = 12;
    add_sparse(list, a, true);
    a.count = 3, a.block = 8, a.per_head = true;
    add_sparse(list, a, true);
    a.count = 4, a.block = 32;
    add_sparse(list, a, true);
    a = {.heads = 16, .kv_heads = 1, .key_dim = 96, .value_dim = 64, .key_type = type, .value_type = type};
    a.latent = true;
    a.sequences = {{530, 20}, {33, 3}};
    a.count = 40;
    add_sparse(list, a, true);
    a.heads = 33, a.key_dim = 576, a.value_dim = 512, a.count = 300;
    add_sparse(list, a, false);
  }
  AttentionCase a{.heads = 8, .kv_heads = 2, .key_dim = 20, .value_dim = 12, .sequences = {{2000, 3}, {129, 2}}};
  a.count = 5, a.block = 128, a.per_head = true;
  add_sparse(list, a, true);
  a.count = 700, a.block = 1, a.per_head = false;
  add_sparse(list, a, false);
  a.sequences = {{300, 20}, {9, 9}};
  a.count = 7, a.sinks = true;
  add_sparse(list, a, true);
  a.count = 0, a.whole = true;
  add_sparse(list, a, true);
  a.params.window = 12;
  add_sparse(list, a, true);
  for (const int stride : {4, 128}) {
    a = {.heads = 6, .kv_heads = 1, .key_dim = 40, .value_dim = 40, .latent = true, .sequences = {{600, 30}, {40, 40}}};
    a.stride = stride, a.whole = true;
    add_sparse(list, a, true);
    a.count = 3, a.whole = false;
    add_sparse(list, a, true);
    // Few tokens, which share a context among workgroups on a GPU. Those of the second sequence see at most 10 entries,
    // or nothing.
    a.sequences = {{600, 3}, {41, 2}};
    a.sinks = true;
    add_sparse(list, a, true);
    a.count = 0, a.whole = true;
    add_sparse(list, a, true);
  }
}

// The results of attention without the log-sum-exp of each head.
std::vector<std::vector<float>> values_of(const Attended& attended, const AttentionData& d) {
  std::vector<std::vector<float>> values;
  for (const std::vector<float>& out : attended.out) {
    values.emplace_back();
    for (size_t at = 0; at < out.size(); at += d.out_row()) {
      values.back().insert(values.back().end(), out.begin() + at, out.begin() + at + d.value_row());
    }
  }
  return values;
}

}  // namespace

void add_sparse_attention_cases(std::vector<Entry>& list) {
  add_selections(list);
  add_sparse_cases(list);
}

TEST_CASE("select_positions") { run_cases(Op::kSelectPositions); }
TEST_CASE("sparse_attention") { run_cases(Op::kSparseAttention); }

// Whether a token attends to the cache itself or to copies of what it selected.
TEST_CASE("the same positions give the same bits, selected one by one, in blocks or as the whole context") {
  AttentionCase a{.heads = 6, .key_dim = 32, .value_dim = 32, .sequences = {{200, 200}, {45, 45}}};
  a.params.scale = 0.2f;
  Random random = random_for("the same positions");
  AttentionData all = make_data(a, random), blocks = all, single = all, every = all;
  blocks.a.count = 3, blocks.a.block = 32;
  single.a.count = 96;
  every.a.count = 200;
  for (AttentionData* d : {&blocks, &single, &every}) d->cache.use = CacheUse::kSparseAttention;
  for (const auto& [length, queries] : a.sequences) {
    for (AttentionData* d : {&blocks, &single, &every}) d->blocks.emplace_back();
    for (int p = 0; p < length; ++p) {
      std::vector<int32_t> chosen, positions, first;
      for (int b = p / 32; b >= 0 && chosen.size() < 3; b -= 2) chosen.insert(chosen.begin(), b);
      for (const int32_t b : chosen) {
        for (int i = 32 * b; i < std::min(32 * (b + 1), p + 1); ++i) positions.push_back(i);
      }
      for (int i = 0; i <= p; ++i) first.push_back(i);
      const auto append = [&](AttentionData& d, std::vector<int32_t> row) {
        row.resize(static_cast<size_t>(d.a.count), -1);
        d.blocks.back().insert(d.blocks.back().end(), row.begin(), row.end());
      };
      append(blocks, chosen);
      append(single, positions);
      append(every, first);
    }
  }
  for (TestDevice& device : test_devices()) {
    if (!device.is_cpu()) continue;
    CAPTURE(device.name);
    std::string where;
    const Attended by_block = attend(device, blocks, at_once(a)), by_position = attend(device, single, at_once(a));
    CHECK_MESSAGE(same_bits(by_block.out, by_position.out, where), where);
    const Attended dense = attend(device, all, at_once(a)), complete = attend(device, every, at_once(a));
    CHECK_MESSAGE(same_bits(dense.out, values_of(complete, every), where), where);
    CHECK_FALSE(same_bits(dense.out, values_of(by_block, blocks), where));
  }
}

}  // namespace infer::test
