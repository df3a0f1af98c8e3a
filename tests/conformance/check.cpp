// Runs a case on the reference and on every device, and compares the results.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ggml-like/error.h"
#include "tests/conformance/case.h"

namespace infer::test {
namespace {

StepInputs make_step(const Case& c) {
  const int width = c.hidden.empty() ? 0 : static_cast<int>(c.hidden[0].size());
  StepInputs step({.tokens = c.token_bucket,
                   .outputs = c.output_bucket,
                   .sequences = 1,
                   .groups = 1,
                   .blocks_per_sequence = 1,
                   .hidden = width});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, c.tokens);
  for (int t = 0; t < c.tokens; ++t) {
    bool output = false;
    for (const int row : c.output_rows) output |= row == t;
    step.add_token(0, c.token_ids.empty() ? 0 : c.token_ids[t], c.positions.empty() ? t : c.positions[t], output);
    if (width > 0) step.set_hidden(t, c.hidden[t]);
  }
  return step;
}

RunResult run_case(TestDevice& device, const Case& c) {
  return run_graph(device, Graph(c.token_bucket, c.output_bucket), c.build, c.leaves, make_step(c));
}

// The case reduced to one row: row `row` of every tensor that has a row per token or per output.
Case alone(const Case& c, int row) {
  Case one = c;
  one.tokens = one.token_bucket = 1;
  one.output_rows = c.output_rows.empty() ? std::vector<int>{} : std::vector<int>{0};
  one.output_bucket = c.output_rows.empty() ? 0 : 1;
  if (!c.token_ids.empty()) one.token_ids = {c.token_ids[row]};
  if (!c.hidden.empty()) one.hidden = {c.hidden[row]};
  one.positions = {c.positions.empty() ? row : c.positions[row]};
  for (size_t i = 0; i < c.leaves.size(); ++i) {
    const Leaf& leaf = c.leaves[i];
    if (leaf.desc.rows == RowKind::kFixed) continue;
    Leaf& slice = one.leaves[i];
    slice.desc.shape.dim[0] = 1;
    const size_t bytes = slice.desc.bytes();
    slice.data.assign(leaf.data.begin() + row * bytes, leaf.data.begin() + (row + 1) * bytes);
  }
  return one;
}

std::string outside_bounds(const Output& reference, const Output& found, const std::vector<double>& bounds) {
  if (bounds.empty()) return first_difference(reference, found);
  for (int64_t i = 0; i < reference.elements(); ++i) {
    const float r = reference.floats()[i], f = found.floats()[i];
    const bool good = std::isnan(r) || std::isinf(r) ? (std::isnan(r) && std::isnan(f)) || r == f
                                                     : std::abs(static_cast<double>(f) - r) <= bounds[i];
    if (good) continue;
    return concat("element ", i % reference.row_elements, " of row ", i / reference.row_elements, ": ", r,
                  " expected, ", f, " found, tolerance ", bounds[i]);
  }
  return "";
}

std::string compare(const std::vector<Output>& expected, const std::vector<Output>& found, const Bounds& bounds) {
  if (expected.size() != found.size()) return "number of outputs";
  for (size_t o = 0; o < expected.size(); ++o) {
    const std::string what =
        bounds.empty() ? first_difference(expected[o], found[o]) : outside_bounds(expected[o], found[o], bounds[o]);
    if (!what.empty()) return concat("output ", o, ", ", what);
  }
  return "";
}

std::string compare_alone(TestDevice& device, const Case& c, const std::vector<Output>& batch) {
  const int rows = c.output_rows.empty() ? c.tokens : static_cast<int>(c.output_rows.size());
  // All rows of a small batch; of a large one the first, the last and some in between.
  for (int row = 0; row < rows; row += rows <= 8 || row + 1 >= rows - 1 ? 1 : std::min(rows - 1 - row, 7)) {
    const RunResult one = run_case(device, alone(c, row));
    if (!one.broken.empty()) return concat("row ", row, " alone: ", one.broken);
    for (size_t o = 0; o < batch.size(); ++o) {
      Output expected = batch[o];
      const size_t bytes = static_cast<size_t>(expected.row_elements) * 4;
      expected.rows = 1;
      expected.data.assign(batch[o].data.begin() + row * bytes, batch[o].data.begin() + (row + 1) * bytes);
      const std::string what = first_difference(expected, one.outputs[o]);
      if (!what.empty()) return concat("row ", row, " alone differs from the batch: output ", o, ", ", what);
    }
  }
  return "";
}

}  // namespace

std::string first_difference(const Output& expected, const Output& found) {
  if (expected.rows != found.rows || expected.row_elements != found.row_elements) return "another shape";
  for (int64_t i = 0; i < expected.elements(); ++i) {
    if (expected.ints()[i] == found.ints()[i]) continue;
    const float e = expected.floats()[i], f = found.floats()[i];
    if (expected.type == DataType::kF32 && std::isnan(e) && std::isnan(f)) continue;
    const std::string where =
        concat("element ", i % expected.row_elements, " of row ", i / expected.row_elements, ": ");
    if (expected.type == DataType::kI32)
      return concat(where, expected.ints()[i], " expected, ", found.ints()[i], " found");
    return concat(where, e, " expected exactly, ", f, " found (", std::hex, expected.ints()[i], ", ", found.ints()[i],
                  ")");
  }
  return "";
}

uint64_t fingerprint(uint64_t hash, DataType type, const void* data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(data) + 4 * i, 4);
    if (type == DataType::kF32 && std::isnan(std::bit_cast<float>(bits))) bits = 0x7fc00000u;
    hash = (hash ^ bits) * 0x100000001b3u;
    hash ^= hash >> 29;
  }
  return hash;
}

Random random_for(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Random(hash);
}

Leaf weight_leaf(DataType type, const Shape& shape) {
  Leaf leaf{make_desc(type, shape), {}};
  leaf.data.resize(leaf.desc.bytes());
  return leaf;
}

Leaf float_leaf(const Shape& shape, RowKind rows, int64_t rows_with_data, Random& random, float spread) {
  Leaf leaf{make_desc(DataType::kF32, shape, rows), {}};
  leaf.data.resize(leaf.desc.bytes());
  std::fill_n(leaf.as<float>(), shape.elements(), std::bit_cast<float>(kPaddingBits));
  const int64_t n = (rows == RowKind::kFixed ? shape[0] : rows_with_data) * shape.row_elements();
  for (int64_t i = 0; i < n; ++i) leaf.as<float>()[i] = spread * random.normal();
  return leaf;
}

Verdict check_case(const Case& c, const Devices& devices) {
  Verdict verdict;
  const RunResult reference = run_case(test_devices()[0], c);
  if (!reference.supported || !reference.broken.empty()) {
    verdict.failures.push_back({"ref", reference.supported ? reference.broken : "not supported"});
    return verdict;
  }
  const Bounds bounds = c.bounds ? c.bounds(reference.outputs) : Bounds{};
  const Bounds cuda_bounds = c.cuda_bounds ? c.cuda_bounds(reference.outputs) : bounds;
  std::vector<Output> first_cpu;
  std::string first_cpu_name;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) { verdict.failures.push_back({device->name, what}); };
    RunResult result = run_case(*device, c);
    if (!result.supported) {
      ++verdict.unsupported;
      continue;
    }
    ++verdict.runs;
    if (!result.broken.empty()) fail(result.broken);
    if (device->name == "ref") {
      const std::string what = compare(reference.outputs, result.outputs, {});
      if (!what.empty()) fail("a second run differs: " + what);
      continue;
    }
    const bool is_cuda = device->name.starts_with("cuda");
    const std::string off = compare(reference.outputs, result.outputs, is_cuda ? cuda_bounds : bounds);
    if (!off.empty()) fail("against ref: " + off);
    if (!device->is_cpu()) continue;
    if (c.formula) {
      Output expected = result.outputs[0];
      const std::vector<float> values = c.formula();
      CHECK_INTERNAL(values.size() * 4 == expected.data.size());
      std::memcpy(expected.data.data(), values.data(), expected.data.size());
      const std::string what = first_difference(expected, result.outputs[0]);
      if (!what.empty()) fail("against the formula: " + what);
    }
    if (c.rows_alone && device->threads == 1) {
      const std::string what = compare_alone(*device, c, result.outputs);
      if (!what.empty()) fail(what);
    }
    if (first_cpu.empty()) {
      for (const Output& o : result.outputs) {
        verdict.fingerprint = fingerprint(verdict.fingerprint, o.type, o.data.data(), o.elements());
      }
      first_cpu = std::move(result.outputs);
      first_cpu_name = device->name;
    } else {
      const std::string what = compare(first_cpu, result.outputs, {});
      if (!what.empty()) fail(concat("against ", first_cpu_name, ": ", what));
    }
  }
  return verdict;
}

const std::vector<Entry>& all_cases() {
  static const std::vector<Entry> list = [] {
    std::vector<Entry> all;
    add_row_cases(all);
    add_matmul_cases(all);
    add_column_cases(all);
    add_norm_cases(all);
    add_elementwise_cases(all);
    add_rope_cases(all);
    add_attention_cases(all);
    add_moe_cases(all);
    add_recurrent_cases(all);
    add_sparse_attention_cases(all);
    add_stream_cases(all);
    return all;
  }();
  return list;
}

}  // namespace infer::test
