#include "ggml-like/step_inputs.h"

#include <algorithm>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr size_t kHeader = 4;  // n_tokens, n_outputs, n_sequences, n_logits

}  // namespace

uint64_t StepInputs::bytes(const StepCapacity& c) {
  const uint64_t table = static_cast<uint64_t>(c.groups) * c.sequences * c.blocks_per_sequence;
  return sizeof(int32_t) * (kHeader + 3 * static_cast<uint64_t>(c.tokens) + c.outputs + c.sequences + table);
}

StepInputs::StepInputs(const StepCapacity& capacity) : capacity_(capacity) {
  if (capacity_.logits == 0) capacity_.logits = capacity_.outputs;
  CHECK_INTERNAL(capacity.groups >= 1 && capacity.groups <= kMaxCacheGroups);
  tokens_at_ = kHeader;
  positions_at_ = tokens_at_ + capacity.tokens;
  sequences_at_ = positions_at_ + capacity.tokens;
  outputs_at_ = sequences_at_ + capacity.tokens;
  lengths_at_ = outputs_at_ + capacity.outputs;
  tables_at_ = lengths_at_ + capacity.sequences;
  const size_t tables = static_cast<size_t>(capacity.groups) * capacity.sequences * capacity.blocks_per_sequence;
  buffer_.assign(tables_at_ + tables, 0);
}

void StepInputs::clear() { std::fill_n(buffer_.begin(), kHeader, 0); }

int StepInputs::add_sequence(std::span<const std::span<const int32_t>> tables, int length) {
  const int sequence = n_sequences();
  CHECK_INTERNAL(static_cast<int>(tables.size()) == capacity_.groups);
  if (sequence >= capacity_.sequences) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[step] at most ", capacity_.sequences, " sequences in a step, one more was added"));
  }
  for (int group = 0; group < capacity_.groups; ++group) {
    const std::span<const int32_t> table = tables[group];
    if (static_cast<int>(table.size()) > capacity_.blocks_per_sequence) {
      throw Error(ErrorCode::kInvalidArgument, concat("[step] at most ", capacity_.blocks_per_sequence,
                                                      " blocks per sequence, table has ", table.size()));
    }
    const auto row = buffer_.begin() + tables_at_ +
                     (static_cast<size_t>(group) * capacity_.sequences + sequence) * capacity_.blocks_per_sequence;
    std::fill(std::copy(table.begin(), table.end(), row), row + capacity_.blocks_per_sequence, -1);
  }
  buffer_[lengths_at_ + sequence] = length;
  buffer_[2] = sequence + 1;
  return sequence;
}

int StepInputs::add_token(int sequence, int32_t token, int32_t position, bool output) {
  const int row = n_tokens();
  CHECK_INTERNAL(sequence >= 0 && sequence < n_sequences());
  CHECK_INTERNAL(!output || n_logits() == n_outputs());
  if (row >= capacity_.tokens || (output && (n_outputs() >= capacity_.outputs || n_logits() >= capacity_.logits))) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[step] at most ", capacity_.tokens, " tokens and ",
                       std::min(capacity_.outputs, capacity_.logits), " outputs in a step, one more was added"));
  }
  buffer_[tokens_at_ + row] = token;
  buffer_[positions_at_ + row] = position;
  buffer_[sequences_at_ + row] = sequence;
  buffer_[0] = row + 1;
  if (output) {
    buffer_[outputs_at_ + n_outputs()] = row;
    ++buffer_[1];
    ++buffer_[3];
  }
  return row;
}

void StepInputs::add_hidden_output(int row) {
  CHECK_INTERNAL(row >= 0 && row < n_tokens());
  if (n_outputs() >= capacity_.outputs) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[step] at most ", capacity_.outputs, " outputs in a step, one more was added"));
  }
  buffer_[outputs_at_ + n_outputs()] = row;
  ++buffer_[1];
}

int bucket_size(int n) {
  if (n <= 3) return n;
  if (n > 512) return (n + 511) / 512 * 512;
  int power = 4;
  while (power < n) power *= 2;
  const int middle = power / 4 * 3;  // 6, 12, 24, ...
  return n <= middle && middle > 3 ? middle : power;
}

}  // namespace infer
