// A tensor's description: element type, shape, and whether its rows count the tokens or the outputs of a step. Plain
// values without memory; TensorRef (backend.h) adds the location of the data.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "ggml-like/data_type.h"

namespace infer {

// Up to four dimensions, slowest first: {n_tokens, n_head, head_dim}.
struct Shape {
  static constexpr int kMaxRank = 4;
  int rank = 0;
  int64_t dim[kMaxRank] = {1, 1, 1, 1};

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);  // REQUIRES: at most four
  int64_t operator[](int i) const { return dim[i]; }
  int64_t last() const { return dim[rank - 1]; }
  int64_t elements() const;
  int64_t row_elements() const;  // of one index of the first dimension
  bool operator==(const Shape& other) const;
  std::string to_string() const;  // "[512, 32, 64]"
};

// What the first dimension counts. A plan is made for a bucket of tokens and of outputs: the descriptor's first
// dimension is the bucket's size, and StepInputs gives the number of rows in use.
// kLogits: the output rows that need logits, which come first; the others need only the hidden state.
enum class RowKind : uint8_t { kFixed, kTokens, kOutputs, kLogits };

struct TensorDesc {
  DataType type = DataType::kF32;
  Shape shape;
  RowKind rows = RowKind::kFixed;
  // Elements between indices of the first dimension; more than row_elements() in a view.
  int64_t row_stride = 0;

  size_t bytes() const;  // of a contiguous tensor
  bool contiguous() const { return row_stride == shape.row_elements(); }
};

// A contiguous descriptor.
TensorDesc make_desc(DataType type, const Shape& shape, RowKind rows = RowKind::kFixed);

inline constexpr int kBlockTokens = 32;      // tokens per block of the paged KV cache, everywhere
inline constexpr int kAttentionSplit = 256;  // positions after which attention closes a partial softmax

// What reads a cache.
enum class CacheUse : uint8_t {
  kAttention,        // paged_attention; for states, every operation except ngram_embed
  kSparseAttention,  // sparse_attention
  kIndex,            // select_positions: keys that only decide what sparse attention sees
  kTokenIds,         // ngram_embed: a state apart from that of the layer's other operations, in host memory
};

// What one layer caches in one cache group: keys and values in blocks, laid out as the backend likes, or a recurrent
// state in slots of F32 values, in the order given in op.h.
struct CacheDesc {
  int layer = 0;
  int group = 0;  // index of the model's cache group, which selects the block table
  int n_kv_head = 0;
  int key_dim = 0;    // values of one head's key
  int value_dim = 0;  // values of one head's value
  DataType key_type = DataType::kF16;
  DataType value_type = DataType::kF16;
  // A position's value is the first value_dim values of its key: nothing else is stored, and value_type is unused.
  bool latent = false;
  // A layer may have index keys, which are latent, beside its keys and values: in the same blocks of the same group,
  // but in memory of their own.
  CacheUse use = CacheUse::kAttention;
  // Positions per entry of a latent cache: entry e belongs to positions [e * stride, (e + 1) * stride) and is stored by
  // the last of them. Divides kBlockTokens, or is a multiple of it.
  int stride = 1;

  // Of a recurrent state, which has none of the above:
  int64_t slot_values = 0;  // in a slot; 0: keys and values
  int64_t first_value = 0;  // of the part of the slot that an operation uses

  int stored_value_dim() const { return latent ? 0 : value_dim; }
  int entries_per_block() const { return stride < kBlockTokens ? kBlockTokens / stride : 1; }
  // The number of entries that a token sees: those complete at its position.
  int visible_entries(int position) const { return (position + 1) / stride; }
  // Where an entry is in its block, and the position whose block that is.
  int slot_of(int entry) const { return entry % entries_per_block(); }
  int position_of(int entry) const { return (entry + 1) * stride - 1; }
};

}  // namespace infer
