// For operations on recurrent states: the rows of a sequence in the step, and its slot. Included after common.glsl.

// As StatePush in recurrent.cpp.
struct States {
  uint positions_at, sequences_at;  // in the step's inputs
  uint table_at, table_stride;      // of the cache group: the first entry of a sequence is its slot
  uint slots_at, slot_values;       // where the operation's part of slot 0 begins
};
struct Run {
  uint first, end;  // rows
  uint state;       // where its state begins
  bool empty;       // the first row is at position 0: ignore the content of the slot
};

shared uint run_first, run_end;

bool is_of(const States s, uint row, uint sequence) { return uint(step_words[s.sequences_at + row]) == sequence; }

// All lanes of a workgroup of `lanes` must call it. A sequence without rows has first == end.
Run find_run(const States s, uint sequence, uint lanes) {
  const uint lane = gl_LocalInvocationID.x, n = n_tokens();
  if (lane == 0u) run_first = run_end = 0u;
  barrier();
  if (sequence < uint(step_words[2])) {
    for (uint row = lane; row < n; row += lanes) {
      if (!is_of(s, row, sequence)) continue;
      if (row == 0u || !is_of(s, row - 1u, sequence)) run_first = row;
      if (row + 1u == n || !is_of(s, row + 1u, sequence)) run_end = row + 1u;
    }
  }
  barrier();
  Run run;
  run.first = run_first;
  run.end = run_end;
  run.state = 0u;
  run.empty = true;
  if (run.first == run.end) return run;
  run.state = s.slots_at + uint(step_words[s.table_at + sequence * s.table_stride]) * s.slot_values;
  run.empty = step_words[s.positions_at + run.first] == 0;
  return run;
}
