// Chooses how many prompt tokens a step may compute beside running decodes, so that the inter-token latency stays
// within its bound. Learns the cost of a prompt token, and how far steps overrun their estimate, from step times; it
// reads no clock itself. It affects only when tokens are computed, not their values. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace infer {

struct StepRecord {
  int sequences = 0;
  int prompt_tokens = 0, decode_tokens = 0;  // computed in this step
  double seconds = 0;
};

class ChunkPacer {
 public:
  // `max_seconds`: the bound that 99 of 100 steps with decodes must keep; 0: none.
  explicit ChunkPacer(double max_seconds) : max_seconds_(max_seconds) {}

  void record(const StepRecord& step);
  // Prompt tokens for the next step, which has this many decodes. At least 1 and a quarter of the decodes: that
  // lengthens a step only a little, and ensures that every prompt finishes.
  int32_t prompt_budget(int n_decodes) const;

 private:
  double overrun() const;

  const double max_seconds_;
  std::optional<double> decode_seconds_;  // of a step without prompt tokens
  std::optional<double> token_seconds_;   // added by each prompt token
  std::deque<double> overruns_;           // of recent mixed steps: actual time / estimated time
};

}  // namespace infer
