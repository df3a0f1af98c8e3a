// The data of one step: which tokens, at which positions of which sequences, where their keys and values go, and which
// rows need logits or hidden states. All arrays are int32 and lie in one buffer, so that a device gets them with one
// upload; a plan depends on capacities only, never on what is in here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ggml-like/tensor.h"

namespace infer {

inline constexpr int kMaxCacheGroups = 4;

// Capacities, fixed for the life of an engine.
struct StepCapacity {
  int tokens = 0;
  int outputs = 0;
  int sequences = 0;
  int groups = 1;
  int blocks_per_sequence = 0;  // length of a row of a block table
  int logits = 0;               // outputs with logits; 0: all
};

// Owned by whoever builds the steps; kernels read it. The tokens of one sequence are consecutive rows with consecutive
// positions. A token at position p of sequence s has its keys in slot p % kBlockTokens of block
// block_table(group)[s][p / kBlockTokens].
class StepInputs {
 public:
  explicit StepInputs(const StepCapacity& capacity);
  static uint64_t bytes(const StepCapacity& capacity);  // of raw()

  void clear();  // no tokens, outputs or sequences

  const StepCapacity& capacity() const { return capacity_; }
  int n_tokens() const { return buffer_[0]; }
  int n_outputs() const { return buffer_[1]; }
  int n_sequences() const { return buffer_[2]; }
  int n_logits() const { return buffer_[3]; }
  // Rows that hold data in a tensor of the given kind; `fixed` is returned for kFixed.
  int64_t row_count(RowKind kind, int64_t fixed) const {
    switch (kind) {
      case RowKind::kTokens:
        return n_tokens();
      case RowKind::kOutputs:
        return n_outputs();
      case RowKind::kLogits:
        return n_logits();
      case RowKind::kFixed:
        break;
    }
    return fixed;
  }

  std::span<const int32_t> tokens() const { return {buffer_.data() + tokens_at_, static_cast<size_t>(n_tokens())}; }
  std::span<const int32_t> positions() const {
    return {buffer_.data() + positions_at_, static_cast<size_t>(n_tokens())};
  }
  std::span<const int32_t> sequences() const {
    return {buffer_.data() + sequences_at_, static_cast<size_t>(n_tokens())};
  }
  std::span<const int32_t> output_rows() const {
    return {buffer_.data() + outputs_at_, static_cast<size_t>(n_outputs())};
  }
  // Tokens of the sequence that are computed once this step is done (positions 0 .. length - 1).
  int sequence_length(int sequence) const { return buffer_[lengths_at_ + sequence]; }
  std::span<const int32_t> block_table(int group, int sequence) const {
    return {buffer_.data() + tables_at_ +
                (static_cast<size_t>(group) * capacity_.sequences + sequence) * capacity_.blocks_per_sequence,
            static_cast<size_t>(capacity_.blocks_per_sequence)};
  }

  // Appends a sequence with one table per group (each at most blocks_per_sequence long; missing entries become -1)
  // and returns its index. Throws Error(kInvalidArgument) when a capacity is exceeded, as does add_token.
  int add_sequence(std::span<const std::span<const int32_t>> tables, int length);
  // Appends a token and returns its row. `output` asks for its logits and hidden state, before any add_hidden_output().
  int add_token(int sequence, int32_t token, int32_t position, bool output);
  // Asks for the hidden state of a row without its logits. Throws as add_token does.
  void add_hidden_output(int row);

  // The whole buffer, for upload: n_tokens, n_outputs, n_sequences, n_logits, then the arrays and tables.
  std::span<const int32_t> raw() const { return buffer_; }
  // Where they begin in raw(), for kernels; the same for all steps of one capacity.
  size_t tokens_offset() const { return tokens_at_; }
  size_t positions_offset() const { return positions_at_; }
  size_t sequences_offset() const { return sequences_at_; }
  size_t outputs_offset() const { return outputs_at_; }
  size_t lengths_offset() const { return lengths_at_; }
  // Of the tables of a group, [sequences, blocks_per_sequence].
  size_t tables_offset(int group) const {
    return tables_at_ + static_cast<size_t>(group) * capacity_.sequences * capacity_.blocks_per_sequence;
  }

 private:
  StepCapacity capacity_;
  size_t tokens_at_, positions_at_, sequences_at_, outputs_at_, lengths_at_, tables_at_;
  std::vector<int32_t> buffer_;
};

// The bucket that n rows fall into: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ... 512; multiples of 512 above.
int bucket_size(int n);

}  // namespace infer
