#include "tests/conformance/recurrent_world.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ggml-like/error.h"

namespace infer::test {
namespace {

constexpr int64_t kBefore = 5, kBehind = 3;  // values of a slot around the part that the operation uses

// Consecutive tokens of one sequence in a step.
struct Chunk {
  int sequence, first, count;
};
using Steps = std::vector<std::vector<Chunk>>;

Steps at_once(const RecurrentCase& c) {
  Steps steps(1);
  for (int s = 0; s < static_cast<int>(c.lengths.size()); ++s) steps[0].push_back({s, 0, c.lengths[s]});
  return steps;
}

// Chunks of `size`; `mixed`: those of all sequences in one step, the last sequence first.
Steps in_chunks(const RecurrentCase& c, int size, bool mixed) {
  Steps steps;
  const int longest = *std::max_element(c.lengths.begin(), c.lengths.end());
  for (int first = 0; first < longest; first += size) {
    if (mixed) steps.emplace_back();
    for (int s = static_cast<int>(c.lengths.size()) - 1; s >= 0; --s) {
      if (first >= c.lengths[s]) continue;
      if (!mixed) steps.emplace_back();
      steps.back().push_back({s, first, std::min(size, c.lengths[s] - first)});
    }
  }
  return steps;
}

int32_t slot_of(int sequence) { return 2 * sequence + 1; }

struct Outcome {
  bool supported = true;
  std::string broken;
  std::vector<std::vector<std::vector<float>>> out;  // [output][sequence][position * row]
  std::vector<std::byte> states;
};

// The inputs of a step: a leaf each, or all in one leaf with columns between them that nobody reads.
std::vector<Leaf> input_leaves(const RecurrentCase& c, const RecurrentData& d, const std::vector<Chunk>& step,
                               int bucket) {
  std::vector<Leaf> leaves;
  int64_t width = 0;
  for (const Shape& row : c.rows) width += row.elements() + 1;
  Random unused(1);
  if (c.view) leaves.push_back(float_leaf({bucket, width}, RowKind::kTokens, 0, unused));
  int64_t column = 0;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const int64_t n = c.rows[i].elements();
    if (!c.view) {
      Shape shape{bucket};
      for (int k = 0; k < c.rows[i].rank; ++k) shape.dim[shape.rank++] = c.rows[i][k];
      leaves.push_back(float_leaf(shape, RowKind::kTokens, 0, unused));
    }
    float* to = leaves.back().as<float>() + (c.view ? column : 0);
    for (const Chunk& chunk : step) {
      for (int t = 0; t < chunk.count; ++t, to += c.view ? width : n) {
        std::copy_n(d.row(c, i, static_cast<size_t>(chunk.sequence), chunk.first + t), n, to);
      }
    }
    column += n + 1;
  }
  return leaves;
}

std::vector<ValueId> input_values(Graph& g, const RecurrentCase& c, const std::vector<Weight>& w, int bucket) {
  std::vector<ValueId> in;
  int64_t column = 0;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const int64_t n = c.rows[i].elements();
    if (!c.view) {
      in.push_back(g.weight(w[i]));
      continue;
    }
    Shape shape{bucket};
    for (int k = 0; k < c.rows[i].rank; ++k) shape.dim[shape.rank++] = c.rows[i][k];
    in.push_back(g.reshape(g.view_columns(g.weight(w[0]), column, n), shape));
    column += n + 1;
  }
  return in;
}

Outcome run(TestDevice& device, const RecurrentCase& c, const RecurrentData& d, const Steps& steps) {
  const int n_sequences = static_cast<int>(c.lengths.size());
  CacheDesc desc;
  desc.slot_values = kBefore + c.state_values + kBehind;
  desc.first_value = kBefore;
  if (c.op == Op::kNgramEmbed) desc.use = CacheUse::kTokenIds;
  TestCache cache(device, desc, 2 * n_sequences + 1);
  Outcome outcome;
  for (const std::vector<Chunk>& chunks : steps) {
    int tokens = 0;
    for (const Chunk& chunk : chunks) tokens += chunk.count;
    const int bucket = tokens + 1;
    StepInputs step({bucket, 0, n_sequences, 1, 1});
    for (const Chunk& chunk : chunks) {
      const std::vector<int32_t> table{slot_of(chunk.sequence)};
      const std::span<const int32_t> tables[] = {table};
      const int s = step.add_sequence(tables, chunk.first + chunk.count);
      for (int t = chunk.first; t < chunk.first + chunk.count; ++t) {
        step.add_token(s, c.ids.empty() ? 0 : c.ids[static_cast<size_t>(chunk.sequence)][static_cast<size_t>(t)], t,
                       false);
      }
    }
    std::vector<Leaf> leaves = input_leaves(c, d, chunks, bucket);
    const size_t n_inputs = leaves.size();
    leaves.insert(leaves.end(), c.weights.begin(), c.weights.end());
    const BuildGraph build = [&](Graph& g, const std::vector<Weight>& w) {
      return c.build(g, input_values(g, c, w, bucket), std::span(w).subspan(n_inputs), desc);
    };
    const RunResult result = run_graph(device, Graph(bucket, 0), build, leaves, step, &cache);
    outcome.supported = result.supported;
    if (!result.broken.empty()) outcome.broken = result.broken;
    if (!result.supported) return outcome;
    outcome.out.resize(result.outputs.size());
    for (size_t o = 0; o < result.outputs.size(); ++o) {
      const int64_t row = result.outputs[o].row_elements;
      const float* from = result.outputs[o].floats();
      outcome.out[o].resize(c.lengths.size());
      for (const Chunk& chunk : chunks) {
        std::vector<float>& to = outcome.out[o][static_cast<size_t>(chunk.sequence)];
        to.resize(static_cast<size_t>(c.lengths[chunk.sequence] * row), NAN);
        std::copy_n(from, chunk.count * row, to.begin() + chunk.first * row);
        from += chunk.count * row;
      }
    }
  }
  outcome.states = cache.download(device);
  return outcome;
}

// "" if only the parts of slots that the operation uses have been written.
std::string written_elsewhere(const RecurrentCase& c, const std::vector<std::byte>& states) {
  const int64_t slot = kBefore + c.state_values + kBehind;
  for (size_t i = 0; i < states.size(); ++i) {
    const int64_t value = static_cast<int64_t>(i / sizeof(float)), at = value % slot;
    const bool used = value / slot % 2 == 1 && at >= kBefore && at < kBefore + c.state_values;
    if (!used && states[i] != kSentinel) return concat("value ", at, " of slot ", value / slot, " was written");
  }
  return "";
}

std::string first_difference(const Outcome& a, const Outcome& b) {
  for (size_t o = 0; o < a.out.size(); ++o) {
    for (size_t s = 0; s < a.out[o].size(); ++s) {
      const std::vector<float>&x = a.out[o][s], &y = b.out[o][s];
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::memcmp(&x[i], &y[i], sizeof(float)) == 0) continue;
        return concat("output ", o, ", sequence ", s, ", element ", i, ": ", x[i], " and ", y[i]);
      }
    }
  }
  return a.states == b.states ? "" : "the states";
}

std::string outside(const Outcome& reference, const Outcome& found, const RecurrentBounds& bounds) {
  for (size_t o = 0; o < reference.out.size(); ++o) {
    for (size_t s = 0; s < reference.out[o].size(); ++s) {
      for (size_t i = 0; i < reference.out[o][s].size(); ++i) {
        const double expected = reference.out[o][s][i], value = found.out[o][s][i], bound = bounds[o][s][i];
        if (std::abs(value - expected) <= bound) continue;
        return concat("output ", o, ", sequence ", s, ", element ", i, ": ", expected, " expected, ", value,
                      " found, tolerance ", bound);
      }
    }
  }
  return "";
}

}  // namespace

Verdict check_recurrent(const RecurrentCase& c, const RecurrentData& d, const RecurrentBounds& bounds,
                        const Devices& devices) {
  Verdict verdict;
  const Outcome reference = run(test_devices()[0], c, d, at_once(c));
  Outcome first_cpu;
  for (TestDevice* device : devices) {
    const auto fail = [&](const std::string& what) {
      if (!what.empty()) verdict.failures.push_back({device->name, what});
    };
    const Outcome all = run(*device, c, d, at_once(c));
    if (!all.supported) {
      ++verdict.unsupported;
      continue;
    }
    ++verdict.runs;
    fail(all.broken);
    fail(outside(reference, all, bounds));
    fail(written_elsewhere(c, all.states));
    if (device->is_cpu() && first_cpu.out.empty()) {
      first_cpu = all;
      for (const auto& output : all.out) {
        for (const auto& o : output) {
          verdict.fingerprint =
              fingerprint(verdict.fingerprint, DataType::kF32, o.data(), static_cast<int64_t>(o.size()));
        }
      }
    }
    if (device->is_cpu()) fail(first_difference(first_cpu, all));
    for (const Steps& steps : {in_chunks(c, 1, false), in_chunks(c, 3, true), in_chunks(c, 7, false)}) {
      const Outcome other = run(*device, c, d, steps);
      fail(other.broken);
      const std::string what = first_difference(all, other);
      if (!what.empty()) fail(concat("at once and in ", steps.size(), " steps: ", what));
    }
  }
  return verdict;
}

}  // namespace infer::test
