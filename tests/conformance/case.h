// The list of cases: what is computed, on which data, and how far a result may be from the reference. A tolerance is
// derived from the number of roundings and the sum of the magnitudes of the terms, never tuned.
//
// Rules that every case is checked for, besides its result on each device:
//   - padding rows are not written, inputs are not written, nothing is read past the end of an input;
//   - the CPU gives the same bits at every level and for any number of threads;
//   - those bits are the same on every machine (fingerprints.txt);
//   - a row alone gives the bits it has in the batch (rows_alone).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/harness.h"
#include "tests/support/quant_reference.h"

namespace infer::test {

inline constexpr double kEps = 0x1p-24;    // of one rounding to F32, relative
inline constexpr double kTiny = 0x1p-149;  // of one rounding to a denormal

// One bound per element of each output; an empty vector asks for equal bytes.
using Bounds = std::vector<std::vector<double>>;

struct Case {
  Op op;
  std::string text;  // parameters, shapes and types, as printed
  int tokens = 1, token_bucket = 1;
  std::vector<int> output_rows;  // rows of the step that are outputs
  int output_bucket = 0;
  std::vector<int32_t> token_ids, positions;  // [tokens]; empty: zeros, and 0, 1, 2, ...
  std::vector<Leaf> leaves;
  BuildGraph build;
  std::function<Bounds(const std::vector<Output>& reference)> bounds;  // null: all outputs equal the reference's bytes
  std::function<std::vector<float>()> formula;  // of the first output; the CPU equals it bit for bit
  bool rows_alone = true;
};

struct Failure {
  std::string device, what;
};

// What became of one case: a line per device that failed.
struct Verdict {
  std::vector<Failure> failures;
  int runs = 0, unsupported = 0;
  uint64_t fingerprint = 0;  // of what the CPU computed; all its levels agree
};

using Devices = std::vector<TestDevice*>;

// A case of the list, made when it runs.
struct Entry {
  Op op;
  std::string name;  // "matmul Q4_K n=49 k=512 t=5 floats"
  bool quick;        // part of the fixed subset
  std::function<Verdict(const Devices&)> run;
};

Verdict check_case(const Case& c, const Devices& devices);

// A random stream that depends on the case's name only.
Random random_for(std::string_view name);

Leaf float_leaf(const Shape& shape, RowKind rows, int64_t rows_with_data, Random& random, float spread = 1);
Leaf weight_leaf(DataType type, const Shape& shape);
// Continues a hash over values; all NaNs count as one, and rows as they come.
uint64_t fingerprint(uint64_t hash, DataType type, const void* data, int64_t n);
// "" when all bits are equal, floats that are NaN counting as equal to each other; else what differs first.
std::string first_difference(const Output& expected, const Output& found);

void add_row_cases(std::vector<Entry>& list);
void add_matmul_cases(std::vector<Entry>& list);
void add_elementwise_cases(std::vector<Entry>& list);
void add_norm_cases(std::vector<Entry>& list);
void add_rope_cases(std::vector<Entry>& list);
void add_attention_cases(std::vector<Entry>& list);
void add_moe_cases(std::vector<Entry>& list);

const std::vector<Entry>& all_cases();
// The test of one operation: its cases on the devices that are wanted (see conformance_test.cpp).
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
