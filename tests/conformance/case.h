// The list of cases: what is computed, on which data, and how far a result may be from the reference. Tolerances are
// derived from the number of roundings and the sum of the magnitudes of the terms, never tuned.
//
// Besides its result on each device, every case is checked for these rules:
//   - padding rows and inputs are not written, and nothing is read past the end of an input;
//   - the CPU gives the same bits on every level and for any number of threads;
//   - those bits are the same on every machine (fingerprints.txt);
//   - a row computed alone has the same bits as in the batch (rows_alone).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/harness.h"
#include "tests/support/quant_reference.h"

namespace infer::test {

inline constexpr double kEps = 0x1p-24;    // relative error of one rounding to F32
inline constexpr double kTiny = 0x1p-149;  // absolute error of one rounding to a denormal

// One bound per element of each output; an empty vector requires equal bytes.
using Bounds = std::vector<std::vector<double>>;

struct Case {
  Op op;
  std::string text;  // parameters, shapes and types, as printed
  int tokens = 1, token_bucket = 1;
  std::vector<int> output_rows;  // rows of the step that are outputs
  int output_bucket = 0;
  std::vector<int32_t> token_ids, positions;  // [tokens]; empty: zeros, and 0, 1, 2, ...
  std::vector<std::vector<float>> hidden;     // [tokens], of one length; empty: none
  std::vector<Leaf> leaves;
  BuildGraph build;
  std::function<Bounds(const std::vector<Output>& reference)> bounds;  // null: equal to the reference's bytes
  // The same for CUDA devices, where these round more; null: as above.
  std::function<Bounds(const std::vector<Output>& reference)> cuda_bounds;
  std::function<std::vector<float>()> formula;  // of the first output; the CPU gives the same bits
  bool rows_alone = true;
};

struct Failure {
  std::string device, what;
};

// The result of one case, with an entry per device that failed.
struct Verdict {
  std::vector<Failure> failures;
  int runs = 0, unsupported = 0;
  uint64_t fingerprint = 0;  // of the CPU's results, the same on all levels
};

using Devices = std::vector<TestDevice*>;

// A case in the list. Its data is created when it runs.
struct Entry {
  Op op;
  std::string name;  // "matmul Q4_K n=49 k=512 t=5 floats"
  bool quick;        // part of the fixed subset
  std::function<Verdict(const Devices&)> run;
};

Verdict check_case(const Case& c, const Devices& devices);

// A random stream that depends only on the case's name.
Random random_for(std::string_view name);

Leaf float_leaf(const Shape& shape, RowKind rows, int64_t rows_with_data, Random& random, float spread = 1);
Leaf weight_leaf(DataType type, const Shape& shape);
// Continues a hash over n values. All NaNs hash alike.
uint64_t fingerprint(uint64_t hash, DataType type, const void* data, int64_t n);
// "" if all bits are equal, else the first difference. NaNs count as equal to each other.
std::string first_difference(const Output& expected, const Output& found);

void add_row_cases(std::vector<Entry>& list);
void add_matmul_cases(std::vector<Entry>& list);
void add_elementwise_cases(std::vector<Entry>& list);
void add_column_cases(std::vector<Entry>& list);
void add_norm_cases(std::vector<Entry>& list);
void add_rope_cases(std::vector<Entry>& list);
void add_attention_cases(std::vector<Entry>& list);
void add_sparse_attention_cases(std::vector<Entry>& list);
void add_moe_cases(std::vector<Entry>& list);
void add_recurrent_cases(std::vector<Entry>& list);
void add_stream_cases(std::vector<Entry>& list);

const std::vector<Entry>& all_cases();
// The test of one operation: runs its cases on the selected devices (see conformance_test.cpp).
void run_cases(Op op);

// Adds a case that `make` builds; `text` is what follows the operation's name.
template <typename Make>
void add_case(std::vector<Entry>& list, Op op, const std::string& text, bool quick, Make make) {
  const std::string name = std::string(op_info(op).name) + " " + text;
  list.push_back({op, name, quick, [=](const Devices& devices) {
                    Random random = random_for(name);
                    Case c;
                    c.op = op;
                    c.text = text;
                    make(c, random);
                    return check_case(c, devices);
                  }});
}

}  // namespace infer::test
