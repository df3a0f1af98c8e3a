#include "ggml-like/step_inputs.h"

#include <algorithm>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr size_t kHeader = 4;  // n_tokens, n_outputs, n_sequences, n_logits

}  // namespace

StepLayout::StepLayout(const StepCapacity& c) : capacity(c) {
  if (capacity.logits == 0) capacity.logits = capacity.outputs;
  CHECK_INTERNAL(capacity.groups >= 1 && capacity.groups <= kMaxCacheGroups);
  tokens_at = kHeader;
  positions_at = tokens_at + static_cast<size_t>(capacity.tokens);
  sequences_at = positions_at + static_cast<size_t>(capacity.tokens);
  output_rows_at = sequences_at + static_cast<size_t>(capacity.tokens);
  lengths_at = output_rows_at + static_cast<size_t>(capacity.outputs);
  tables_begin_at = lengths_at + static_cast<size_t>(capacity.sequences);
  hidden_at = tables_at(capacity.groups);
}

std::vector<StateRun> state_runs(const StepView& step, int group) {
  std::vector<StateRun> runs;
  const auto sequences = step.sequences();
  for (int t = 0; t < step.n_tokens(); ++t) {
    if (t > 0 && sequences[t] == sequences[t - 1]) {
      ++runs.back().count;
    } else {
      runs.push_back({t, 1, step.block_table(group, sequences[t])[0], step.positions()[t] == 0});
    }
  }
  return runs;
}

StepInputs::StepInputs(const StepCapacity& capacity)
    : layout_(capacity), buffer_(static_cast<size_t>(layout_.bytes()) / sizeof(int32_t), 0) {}

void StepInputs::clear() { std::fill_n(buffer_.begin(), kHeader, 0); }

int StepInputs::add_sequence(std::span<const std::span<const int32_t>> tables, int length) {
  const int sequence = n_sequences();
  CHECK_INTERNAL(static_cast<int>(tables.size()) == layout_.capacity.groups);
  if (sequence >= layout_.capacity.sequences) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("step", concat("at most ", layout_.capacity.sequences, " sequences"), "more"));
  }
  for (int group = 0; group < layout_.capacity.groups; ++group) {
    const std::span<const int32_t> table = tables[group];
    if (static_cast<int>(table.size()) > layout_.capacity.blocks_per_sequence) {
      throw Error(
          ErrorCode::kInvalidArgument,
          expected_found("step", concat("at most ", layout_.capacity.blocks_per_sequence, " blocks per sequence"),
                         table.size()));
    }
    const int row_length = layout_.capacity.blocks_per_sequence;
    const auto row = buffer_.begin() + layout_.tables_at(group) + static_cast<size_t>(sequence) * row_length;
    std::fill(std::copy(table.begin(), table.end(), row), row + row_length, -1);
  }
  buffer_[layout_.lengths_at + sequence] = length;
  buffer_[2] = sequence + 1;
  return sequence;
}

int StepInputs::add_token(int sequence, int32_t token, int32_t position, bool output) {
  const int row = n_tokens();
  CHECK_INTERNAL(sequence >= 0 && sequence < n_sequences());
  CHECK_INTERNAL(!output || n_logits() == n_outputs());
  if (row >= layout_.capacity.tokens ||
      (output && (n_outputs() >= layout_.capacity.outputs || n_logits() >= layout_.capacity.logits))) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("step",
                               concat("at most ", layout_.capacity.tokens, " tokens and ",
                                      std::min(layout_.capacity.outputs, layout_.capacity.logits), " outputs"),
                               "more"));
  }
  buffer_[layout_.tokens_at + row] = token;
  buffer_[layout_.positions_at + row] = position;
  buffer_[layout_.sequences_at + row] = sequence;
  buffer_[0] = row + 1;
  if (output) {
    buffer_[layout_.output_rows_at + n_outputs()] = row;
    ++buffer_[1];
    ++buffer_[3];
  }
  return row;
}

void StepInputs::add_hidden_output(int row) {
  CHECK_INTERNAL(row >= 0 && row < n_tokens());
  if (n_outputs() >= layout_.capacity.outputs) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("step", concat("at most ", layout_.capacity.outputs, " outputs"), "more"));
  }
  buffer_[layout_.output_rows_at + n_outputs()] = row;
  ++buffer_[1];
}

void StepInputs::set_hidden(int row, std::span<const float> hidden) {
  CHECK_INTERNAL(row >= 0 && row < n_tokens() && std::ssize(hidden) == layout_.capacity.hidden);
  std::memcpy(buffer_.data() + layout_.hidden_at + static_cast<size_t>(row) * hidden.size(), hidden.data(),
              hidden.size_bytes());
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
