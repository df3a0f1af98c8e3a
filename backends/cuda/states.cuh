// For operations on recurrent states: the rows of a sequence in the step, and its slot. One block of threads has a
// sequence, or some of its channels, rows or columns, whose states no other block touches, token by token, so that
// results do not depend on how a text is split into steps.
#pragma once

#include <algorithm>

#include "backends/cuda/cuda_ops.h"
#include "backends/cuda/kernel.h"

namespace infer::cuda {

struct States {
  float* slots;  // the operation's part of slot 0
  int64_t slot_values;
  // Of the step's inputs. The first entry of a sequence's table is its slot.
  const int32_t *counts, *positions, *sequences, *table;
  int table_stride;

  __device__ int tokens() const { return counts[0]; }
  __device__ bool has_row(int row, int sequence) const { return sequences[row] == sequence; }
  // Whether the row is the first one of its sequence.
  __device__ bool is_first(int row) const { return row == 0 || !has_row(row - 1, sequences[row]); }
  __device__ bool is_last(int row) const { return row + 1 == tokens() || !has_row(row + 1, sequences[row]); }
};

inline States states_of(const Launch& launch) {
  const CacheDesc& c = *launch.cache.desc;
  const StepLayout& layout = *launch.step_layout;
  const int32_t* const step = step_address(launch);
  auto* const slots =
      reinterpret_cast<float*>(static_cast<const CudaBuffer&>(*launch.cache.buffer).data() + launch.cache.offset);
  return {slots + c.first_value,
          c.slot_values,
          step,
          step + layout.positions_at,
          step + layout.sequences_at,
          step + layout.tables_at(c.group),
          layout.capacity.blocks_per_sequence};
}

// The most sequences of a step with as many rows as x has.
inline unsigned most_sequences(const Launch& launch, const TensorRef& x) {
  return static_cast<unsigned>(std::min<int64_t>(rows_of(x), launch.step_layout->capacity.sequences));
}

struct Run {
  int first, end;  // rows
  float* state;    // the operation's part of the slot
  bool empty;      // the first row is at position 0: ignore the content of the slot
};

struct RunRoom {
  int first, end;
};
// False for a sequence that is not in the step. Every thread of the block must call it.
__device__ inline bool find_run(const States& s, int sequence, Run& run) {
  if (sequence >= s.counts[2]) return false;
  RunRoom& room = shared_memory<RunRoom>();
  if (threadIdx.x == 0) room = {0, 0};
  __syncthreads();
  const int n = s.tokens();
  for (int row = static_cast<int>(threadIdx.x); row < n; row += static_cast<int>(blockDim.x)) {
    if (!s.has_row(row, sequence)) continue;
    if (s.is_first(row)) room.first = row;
    if (s.is_last(row)) room.end = row + 1;
  }
  __syncthreads();
  run.first = room.first;
  run.end = room.end;
  if (run.first == run.end) return false;
  run.state = s.slots + s.table[static_cast<int64_t>(sequence) * s.table_stride] * s.slot_values;
  run.empty = s.positions[run.first] == 0;
  return true;
}

}  // namespace infer::cuda
