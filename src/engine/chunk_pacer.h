// How many prompt tokens a step may compute beside sequences that are being written, so that no reader waits longer for
// the next token than asked. Learns from the steps' times what a prompt token costs and how far steps overrun what was
// expected of them; knows no clock itself. What is computed does not depend on it, only when. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace infer {

struct StepRecord {
  int sequences = 0;
  int prompt_tokens = 0, decode_tokens = 0;  // computed
  double seconds = 0;
};

class ChunkPacer {
 public:
  // `max_seconds`: of a step in which anyone is waiting for a token, in 99 of 100; 0: any.
  explicit ChunkPacer(double max_seconds) : max_seconds_(max_seconds) {}

  void record(const StepRecord& step);
  // Prompt tokens of the next step, which has this many decodes. Never none: a quarter of the decodes, and at least 1,
  // make a step little longer and let every prompt come to its end.
  int32_t prompt_budget(int n_decodes) const;

 private:
  double overrun() const;

  const double max_seconds_;
  std::optional<double> decode_seconds_;  // of a step without prompt tokens
  std::optional<double> token_seconds_;   // that each prompt token adds
  std::deque<double> overruns_;           // of the last steps with both: time taken / time expected
};

}  // namespace infer
