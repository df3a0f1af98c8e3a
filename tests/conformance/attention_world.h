// What the cases of kv_store and paged_attention share: their data, and running them on a device in several
// compositions (all at once, token by token, in mixed chunks of several sequences).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/case.h"

namespace infer::test {

// The types of keys and values that all devices store.
inline constexpr DataType kCacheTypes[] = {DataType::kF32,  DataType::kF16,  DataType::kBF16,
                                           DataType::kQ8_0, DataType::kQ4_0, DataType::kQ4_1,
                                           DataType::kQ5_0, DataType::kQ5_1, DataType::kIQ4_NL};

struct AttentionCase {
  int heads = 2, kv_heads = 2, key_dim = 16, value_dim = 16;
  DataType key_type = DataType::kF16, value_type = DataType::kF16;
  AttentionParams params = {};
  bool sinks = false, fused = false;                // fused: q, k and v are columns of one tensor
  bool latent = false;                              // values are the first value_dim values of keys
  std::vector<std::pair<int, int>> sequences = {};  // length, and the number of last tokens that have queries
  int count = 0, block = 1;                         // sparse: blocks that a token selects, positions of a block
  bool per_head = false;                            // sparse: every KV head selects its own
  bool whole = false;                               // sparse_attention without a selection
  int stride = 1;                                   // of the cache
  bool fp16_queries = false;                        // queries that fp16 holds exactly
  bool large_rows = false;                          // every fifth key and value is beyond fp16

  bool sparse() const { return count > 0 || whole; }
  int selections() const { return per_head ? kv_heads : 1; }
};

inline constexpr float kLargeRow = 0x1p18f;  // what a large row is multiplied by

std::string describe(const AttentionCase& a);

// Consecutive tokens of one sequence in a step.
struct Run {
  int sequence, first, count;
};
struct AttentionStep {
  std::vector<Run> runs;
  bool queries = true;  // false: only keys and values are stored
};
using Composition = std::vector<AttentionStep>;

struct AttentionData {
  AttentionCase a;
  CacheDesc cache;
  int64_t n_blocks = 0;
  std::vector<std::vector<int32_t>> tables;  // per sequence
  std::vector<std::vector<float>> q, k, v;   // [sequence][position * row]
  std::vector<float> sinks;
  std::vector<std::vector<int32_t>> blocks;  // [sequence][position * selections * count], -1 at the end of a row

  int q_row() const { return a.heads * a.key_dim; }
  int k_row() const { return a.kv_heads * a.key_dim; }
  int v_row() const { return a.kv_heads * a.value_dim; }
  int value_row() const { return a.heads * a.value_dim; }
  int out_row() const { return value_row() + (a.sparse() ? a.heads : 0); }  // with the log-sum-exp
};

AttentionData make_data(const AttentionCase& a, Random& random);

// A step's inputs, and its rows of queries, keys and values, in this order, then blocks and sinks, if there are some.
StepInputs step_of(const AttentionStep& part, const AttentionData& d, int bucket);
std::vector<Leaf> leaves_of(const AttentionStep& part, const AttentionData& d, int bucket);
// The rows of a step's tokens, then padding. `from`: [sequence][position * row].
Leaf token_leaf(const AttentionStep& step, int bucket, const std::vector<std::vector<float>>& from, int row,
                const Shape& shape);

// All prefixes in one step, then all queries in one step.
Composition at_once(const AttentionCase& a);
// Prefixes in chunks of `store_chunk`, then queries in chunks of `chunk`; sequences alternate, in reverse order.
Composition in_chunks(const AttentionCase& a, int store_chunk, int chunk, bool mixed);

struct Attended {
  bool supported = true;
  std::string broken;
  std::vector<std::vector<float>> out;  // [sequence][position * out_row()], NaN where there is no query
  std::vector<std::byte> cache;
};

Attended attend(TestDevice& device, const AttentionData& d, const Composition& composition, std::byte fill = kSentinel);

// Values after being stored in a cache of this type.
std::vector<float> stored(DataType type, const std::vector<float>& x);

double norm(const float* x, int n);

// What a device rounds beyond F32, relative to scores and to weights.
struct Rounded {
  double scores = 0, weights = 0;
};

// One error bound for every output of a case. The difference of a score and the maximum is off by key_dim + 6 roundings
// of |q| |k|, plus the errors of softcap (tanh, 4e-7) and ALiBi. The relative error of a weight is twice that, plus
// 2e-7 for exp and the roundings of the sums over the visible positions and of the merges. All weights are positive, so
// outputs are off by that fraction of the largest |v|.
double attention_bound(const AttentionData& d, const Rounded& rounded = {});

// Describes the first difference; "" if there is none.
bool same_bits(const std::vector<std::vector<float>>& x, const std::vector<std::vector<float>>& y, std::string& where);

// Runs a case on each device, in several compositions, against ref and against itself.
Verdict check_attention(const AttentionCase& a, const std::string& name, const Devices& devices);

}  // namespace infer::test
