#include "ggml-like/profile.h"

#include <algorithm>

namespace infer {
namespace {

// The work of a matmul: `pairs` rows of activations times a weight matrix of n by k.
void count_product(ProfileLine& line, const TensorDesc& weight, int64_t pairs) {
  const int64_t experts = weight.shape.rank == 3 ? weight.shape[0] : 1;
  const double matrix = static_cast<double>(line.n) * static_cast<double>(line.k);
  line.operations += 2 * matrix * static_cast<double>(pairs);
  line.bytes += static_cast<double>(weight.bytes()) / static_cast<double>(experts) *
                static_cast<double>(std::min(experts, pairs));
}

// Every token reads the positions up to its own; the tokens of a sequence share those reads.
void count_attention(ProfileLine& line, const Node& node, const TensorDesc& query, const StepView& step) {
  const CacheDesc& c = node.cache;
  const auto bytes_of = [](DataType type, int dim) {
    return static_cast<double>(dim) / traits(type).block_size * static_cast<double>(traits(type).type_size);
  };
  const int window = std::get<AttentionParams>(node.params).window;
  const auto seen = [&](int64_t positions) { return window > 0 ? std::min<int64_t>(positions, window) : positions; };
  const double per_position = bytes_of(c.key_type, c.key_dim) + bytes_of(c.value_type, c.stored_value_dim());
  for (int s = 0; s < step.n_sequences(); ++s) {
    line.bytes += per_position * c.n_kv_head * static_cast<double>(seen(step.sequence_length(s)));
  }
  for (int t = 0; t < step.n_tokens(); ++t) {
    line.operations += 2.0 * static_cast<double>(query.shape[1]) * (c.key_dim + c.value_dim) *
                       static_cast<double>(seen(step.positions()[t] + 1));
  }
}

}  // namespace

void Profile::add(const Graph& graph, const Node& node, const StepView& step, double seconds) {
  const bool product = node.op == Op::kMatMul || node.op == Op::kMatMulExperts;
  const ValueId first = node.inputs.empty() || node.inputs[0] == kNoValue ? node.outputs[0] : node.inputs[0];
  const TensorDesc& x = graph.value(first).desc;
  const TensorDesc& typed = product ? graph.value(node.inputs[1]).desc : x;
  const int rank = typed.shape.rank;
  const int64_t n = product ? typed.shape[rank - 2] : 0, k = product ? typed.shape[rank - 1] : 0;
  ProfileLine& line = lines_[{node.op, typed.type, n, k}];
  line.op = node.op;
  line.type = typed.type;
  line.n = n;
  line.k = k;
  line.quantized = product && traits(typed.type).activation != ActivationFormat::kF32;
  const TensorDesc& counted = node.outputs.empty() ? x : graph.value(node.outputs[0]).desc;
  const int64_t rows = step.row_count(counted.rows, counted.shape[0]);
  ++line.calls;
  line.rows += rows;
  line.seconds += seconds;
  if (product && rows > 0) {
    count_product(line, typed, node.op == Op::kMatMul ? rows : rows * counted.shape[1]);
  } else if (node.op == Op::kPagedAttention) {
    count_attention(line, node, x, step);
  }
}

void Profile::add_copies(int64_t values, int64_t bytes, double seconds) {
  copies_.calls += values;
  copies_.bytes += bytes;
  copies_.seconds += seconds;
}

void Profile::add(const Profile& other) {
  copies_.calls += other.copies_.calls;
  copies_.bytes += other.copies_.bytes;
  copies_.seconds += other.copies_.seconds;
  for (const auto& [key, more] : other.lines_) {
    const auto [at, added] = lines_.try_emplace(key, more);
    if (added) continue;
    ProfileLine& line = at->second;
    line.calls += more.calls;
    line.rows += more.rows;
    line.seconds += more.seconds;
    line.operations += more.operations;
    line.bytes += more.bytes;
  }
}

std::vector<ProfileLine> Profile::lines() const {
  std::vector<ProfileLine> lines;
  for (const auto& [key, line] : lines_) lines.push_back(line);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const ProfileLine& a, const ProfileLine& b) { return a.seconds > b.seconds; });
  return lines;
}

double Profile::seconds() const {
  double sum = 0;
  for (const auto& [key, line] : lines_) sum += line.seconds;
  return sum;
}

}  // namespace infer
