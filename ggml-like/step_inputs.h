// The data of one step: which tokens, at which positions of which sequences, where their keys and values go, and which
// rows need logits or hidden states; for prediction layers, also the hidden state that comes with each token. All
// arrays are in one buffer of int32, so a device needs one upload; a plan depends only on the capacities, never on the
// contents.
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
  int blocks_per_sequence = 0;  // length of a block table's row
  int logits = 0;               // outputs with logits; 0: all
  int hidden = 0;               // F32 values that come with each token; 0: none
  bool operator==(const StepCapacity&) const = default;
};

// The offsets of a step's arrays in its buffer, in int32 from the start: n_tokens, n_outputs, n_sequences, n_logits,
// then the arrays below in this order. Derived from the capacities only, so kernels may compile it in.
struct StepLayout {
  explicit StepLayout(const StepCapacity& capacity);

  StepCapacity capacity;   // with `logits` resolved: 0 no longer means "all"
  size_t tokens_at;        // [tokens]
  size_t positions_at;     // [tokens]
  size_t sequences_at;     // [tokens]: index of each token's sequence
  size_t output_rows_at;   // [outputs]
  size_t lengths_at;       // [sequences]
  size_t tables_begin_at;  // [groups, sequences, blocks_per_sequence]
  size_t hidden_at;        // [tokens, hidden], F32

  size_t tables_at(int group) const {
    return tables_begin_at + static_cast<size_t>(group) * capacity.sequences * capacity.blocks_per_sequence;
  }
  uint64_t bytes() const {
    return sizeof(int32_t) * (hidden_at + static_cast<size_t>(capacity.tokens) * capacity.hidden);
  }
  bool operator==(const StepLayout&) const = default;
};

// Reads a step in host-addressable memory. Copies nothing; layout and memory must outlive it.
//
// Every sequence has at least one token; its tokens are consecutive rows with consecutive positions. A token at
// position p of sequence s has its keys in slot p % kBlockTokens of block block_table(group, s)[p / kBlockTokens]. In a
// group of recurrent states, the table has one entry, the slot that holds the sequence's state before and after the
// step.
class StepView {
 public:
  StepView() = default;  // an empty view
  StepView(const StepLayout& layout, const int32_t* data) : layout_(&layout), data_(data) {}

  int n_tokens() const { return data_[0]; }
  int n_outputs() const { return data_[1]; }
  int n_sequences() const { return data_[2]; }
  int n_logits() const { return data_[3]; }
  // Rows in use in a tensor of the given kind; returns `fixed` for kFixed.
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
  std::span<const int32_t> tokens() const { return array(layout_->tokens_at, n_tokens()); }
  std::span<const int32_t> positions() const { return array(layout_->positions_at, n_tokens()); }
  std::span<const int32_t> sequences() const { return array(layout_->sequences_at, n_tokens()); }
  std::span<const int32_t> output_rows() const { return array(layout_->output_rows_at, n_outputs()); }
  // The bits of the hidden state that comes with the token, [hidden].
  std::span<const int32_t> hidden_bits(int token) const {
    const int width = layout_->capacity.hidden;
    return array(layout_->hidden_at + static_cast<size_t>(token) * width, width);
  }
  // Tokens of the sequence that have been computed after this step (positions 0 .. length - 1).
  int sequence_length(int sequence) const { return data_[layout_->lengths_at + static_cast<size_t>(sequence)]; }
  std::span<const int32_t> block_table(int group, int sequence) const {
    const int length = layout_->capacity.blocks_per_sequence;
    return array(layout_->tables_at(group) + static_cast<size_t>(sequence) * length, length);
  }

 private:
  std::span<const int32_t> array(size_t at, int n) const { return {data_ + at, static_cast<size_t>(n)}; }

  const StepLayout* layout_ = nullptr;
  const int32_t* data_ = nullptr;
};

// The rows of one sequence in a step, for operations on recurrent states.
struct StateRun {
  int first, count;  // rows
  int32_t slot;
  bool empty;  // the first row is at position 0: ignore the content of the slot
};
std::vector<StateRun> state_runs(const StepView& step, int group);

// Builds steps of one capacity, one after another.
class StepInputs {
 public:
  explicit StepInputs(const StepCapacity& capacity);

  void clear();  // no tokens, outputs or sequences

  const StepLayout& layout() const { return layout_; }
  const StepCapacity& capacity() const { return layout_.capacity; }
  StepView view() const { return {layout_, buffer_.data()}; }
  int n_tokens() const { return view().n_tokens(); }
  int n_outputs() const { return view().n_outputs(); }
  int n_sequences() const { return view().n_sequences(); }
  int n_logits() const { return view().n_logits(); }

  // Appends a sequence with one table per group (at most blocks_per_sequence long each; missing entries become -1) and
  // returns its index. Throws Error(kInvalidArgument) if a capacity is exceeded, as does add_token.
  int add_sequence(std::span<const std::span<const int32_t>> tables, int length);
  // Appends a token and returns its row. `output` requests its logits and hidden state, before any add_hidden_output().
  int add_token(int sequence, int32_t token, int32_t position, bool output);
  // Requests the hidden state of a row without its logits. Throws as add_token does.
  void add_hidden_output(int row);
  // The hidden state that comes with a token, [capacity().hidden].
  void set_hidden(int row, std::span<const float> hidden);

  // The part of the buffer that a device needs: its first bytes, at most layout().bytes().
  std::span<const int32_t> raw() const {
    return {buffer_.data(), layout_.hidden_at + static_cast<size_t>(n_tokens()) * layout_.capacity.hidden};
  }

 private:
  StepLayout layout_;
  std::vector<int32_t> buffer_;
};

// The bucket for n rows: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, ... 512; multiples of 512 above.
int bucket_size(int n);

}  // namespace infer
