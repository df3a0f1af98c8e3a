// Cases of kv_store and paged_attention: keys and values are stored in shuffled blocks of a cache full of NaN, and the
// last tokens of every sequence attend to them. Each case runs in several compositions; on the CPU all give the same
// bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "ggml-like/error.h"
#include "tests/conformance/attention_world.h"

namespace infer::test {
namespace {

void add(std::vector<Entry>& list, AttentionCase a, bool quick) {
  a.params.scale = 1 / std::sqrt(static_cast<float>(a.key_dim)) / (a.large_rows ? kLargeRow : 1);
  const std::string name = "paged_attention " + describe(a);
  list.push_back(
      {Op::kPagedAttention, name, quick, [=](const Devices& devices) { return check_attention(a, name, devices); }});
}

// kv_store alone. With a window of one position the softmax has exactly one weight, 1, so attention returns the stored
// values unchanged. Keys are checked through scores: by attention over two positions, whose error bound is far below
// the difference that a wrong key makes. Everything outside the tokens' slots keeps its sentinel, in every block.
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
    // A byte was not written if it keeps two different initial values in two runs.
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

constexpr DataType kFloatTypes[] = {DataType::kF32, DataType::kF16, DataType::kBF16};
AttentionParams with(AttentionParams p) { return p; }

// Every key type with every value type.
void add_types(std::vector<Entry>& list) {
  for (const DataType k : kFloatTypes) {
    for (const DataType v : kFloatTypes) {
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
  // The packed types of keys with each other, as values, and with Q8_0.
  constexpr DataType kPairs[][2] = {{DataType::kQ4_1, DataType::kQ5_0},   {DataType::kQ5_0, DataType::kQ5_1},
                                    {DataType::kQ5_1, DataType::kIQ4_NL}, {DataType::kIQ4_NL, DataType::kQ4_1},
                                    {DataType::kQ8_0, DataType::kQ5_1},   {DataType::kQ4_1, DataType::kF16}};
  for (const auto& [k, v] : kPairs) {
    AttentionCase a{.heads = 4, .key_dim = 64, .value_dim = 32, .key_type = k, .value_type = v};
    a.sequences = {{41, 9}, {3, 3}, {32, 2}};
    add_store(list, a, true);
    a.heads = 6, a.key_dim = 32, a.value_dim = 64;
    a.sequences = {{300, 5}, {66, 33}, {1, 1}};
    add(list, a, true);
    a.params = {.window = 40, .softcap = 20, .alibi_max_bias = 8};
    a.sinks = true;
    a.heads = 10, a.key_dim = a.value_dim = 128;
    add(list, a, k == DataType::kQ5_1);
  }
}

void add_lengths_and_windows(std::vector<Entry>& list) {
  // Lengths around the borders of splits and blocks, with many queries and with one.
  for (const int length : {1, 31, 32, 33, 255, 256, 257, 300, 511, 512, 513, 800}) {
    add(list, {.heads = 4, .kv_heads = 2, .sequences = {{length, 1}}}, length == 257);
    add(list, {.heads = 4, .kv_heads = 2, .sequences = {{length, std::min(length, 11)}, {20, 4}}},
        length == 256 || length == 513);
  }
  // Windows whose edge is before, at and after borders.
  for (const int window : {1, 2, 17, 32, 100, 255, 256, 257, 600}) {
    add(list, {.heads = 2, .kv_heads = 1, .params = with({.window = window}), .sequences = {{530, 20}}},
        window == 17 || window == 257);
    add(list, {.heads = 2, .kv_heads = 1, .params = with({.window = window}), .sequences = {{270, 9}, {5, 5}}},
        window == 2);
  }
}

// Chunks whose edge is at and between borders; the first and the last position of a chunk are among the queries.
void add_chunks(std::vector<Entry>& list) {
  for (const int chunk : {1, 17, 32, 100, 256, 300}) {
    const AttentionParams params = with({.window = chunk, .chunked = true});
    add(list, {.heads = 4, .kv_heads = 2, .params = params, .sequences = {{530, 40}, {9, 9}}},
        chunk == 17 || chunk == 256);
    add(list, {.heads = 2, .kv_heads = 1, .params = params, .sequences = {{chunk + 1, 2}}}, chunk == 300);
  }
}

void add_variants(std::vector<Entry>& list) {
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
  add(list, {.params = with({.causal = false, .window = 12}), .sequences = {{37, 37}, {5, 5}}}, true);
  add(list, {.heads = 4, .kv_heads = 2, .params = with({.causal = false, .window = 129}), .sequences = {{610, 610}}},
      false);
  add(list,
      {.heads = 4, .kv_heads = 4, .params = with({.causal = false, .alibi_max_bias = 8}), .sequences = {{65, 65}}},
      false);
  add(list, {.heads = 14, .kv_heads = 2, .key_dim = 24, .value_dim = 24, .sequences = {{37, 5}, {12, 3}}}, true);
  add(list, {.heads = 4, .kv_heads = 1, .key_dim = 36, .value_dim = 20, .fused = true, .sequences = {{35, 6}, {4, 4}}},
      true);
}

void add_shapes(std::vector<Entry>& list) {
  for (const DataType type : kCacheTypes) {
    if (!traits(type).quantized) continue;
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
      for (const DataType type : kFloatTypes) {
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

// Runs long enough for tensor cores, and short ones between them; the queries are exact in fp16, so that only the
// weights (and what is quantized) are rounded.
void add_long_runs(std::vector<Entry>& list) {
  for (const int dim : {40, 64, 128, 256}) {
    AttentionCase a{.heads = 6, .kv_heads = 2, .key_dim = dim, .value_dim = dim};
    a.fp16_queries = true;
    a.sequences = {{150, 70}, {7, 7}, {33, 20}, {1, 1}};
    add(list, a, true);
    a.params = {.window = 50, .softcap = 20, .alibi_max_bias = 8};
    a.sinks = true;
    add(list, a, dim == 64);
  }
  AttentionCase a{.heads = 4, .kv_heads = 1, .key_dim = 96, .value_dim = 64};
  a.fp16_queries = true;
  a.sequences = {{90, 90}};
  a.params = with({.causal = false, .window = 30});
  add(list, a, true);
  a.params = with({.window = 40, .chunked = true});
  add(list, a, true);
  a.params = {};
  a.key_type = DataType::kQ8_0, a.value_type = DataType::kQ4_0;
  add(list, a, true);
  a.key_type = DataType::kQ5_1, a.value_type = DataType::kQ4_1;
  add(list, a, true);
  a.key_type = DataType::kIQ4_NL, a.value_type = DataType::kQ5_0;
  add(list, a, true);
  a.key_type = a.value_type = DataType::kBF16;
  add(list, a, true);
  a.large_rows = true;
  for (const int dim : {33, 64, 128, 256}) {
    a.key_dim = a.value_dim = dim;
    add(list, a, dim != 128);
  }
  a.large_rows = false;
  a.key_dim = 96, a.value_dim = 64;
  // So few tokens that several thread blocks share the context of those in the short run.
  a.key_type = a.value_type = DataType::kF16;
  a.sequences = {{300, 9}, {600, 2}};
  add(list, a, true);
}

// One key head of many queries, as models have it; and sizes that fill no vector.
void add_latent(std::vector<Entry>& list) {
  for (const DataType type : kCacheTypes) {
    const bool quantized = traits(type).block_size > 1;
    AttentionCase a{.heads = 16, .kv_heads = 1, .key_dim = 96, .value_dim = 64, .key_type = type, .value_type = type};
    a.latent = true;
    a.sequences = {{300, 5}, {66, 33}, {1, 1}};
    add(list, a, true);
    add_store(list, a, true);
    a.params = {.window = 40, .softcap = 20, .alibi_max_bias = 8};
    a.sinks = true;
    add(list, a, false);
    a.params = {};
    a.sinks = false;
    a.heads = 6, a.kv_heads = 2;
    a.key_dim = quantized ? 64 : 42, a.value_dim = quantized ? 32 : 20;
    a.sequences = {{530, 20}, {33, 3}};
    add(list, a, true);
    a.large_rows = true;
    if (type == DataType::kBF16) add(list, a, true);
    a.large_rows = false;
    a.heads = 33, a.kv_heads = 1, a.key_dim = 576, a.value_dim = 512;
    add(list, a, false);
    a.sequences = {{70, 12}, {9, 2}};
    if (type == DataType::kF16) add(list, a, true);
  }
}

}  // namespace

void add_attention_cases(std::vector<Entry>& list) {
  add_types(list);
  add_lengths_and_windows(list);
  add_variants(list);
  add_shapes(list);
  add_chunks(list);
  add_latent(list);
  add_long_runs(list);
}

TEST_CASE("kv_store") { run_cases(Op::kKvStore); }
TEST_CASE("paged_attention") { run_cases(Op::kPagedAttention); }

}  // namespace infer::test
