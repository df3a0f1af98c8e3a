// Samples the tokens of a step: for every sequence from its sampled rows, and for every choice its first token.
// Sampling runs in parallel on the CPU's threads; each sequence has its own sampler, so the order does not matter.
// One thread calls it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/model_runner.h"
#include "src/engine/scheduler.h"

namespace infer {

struct SampledStep {
  std::vector<std::vector<TokenId>> tokens;  // per sequence of the plan, see Scheduler::commit()
  std::vector<Choice> choices;
  struct Failure {
    RequestId id;
    std::string error;
  };
  std::vector<Failure> failures;  // failed sequences, each followed by its choices; they have no tokens
};

class StepSampler {
 public:
  // With isolate_errors, a sequence whose next token cannot be sampled becomes a failure of the step; otherwise
  // sample() throws. Only the first n_vocab logits of each row count. The runner outlives this.
  StepSampler(ModelRunner& runner, size_t n_vocab, bool isolate_errors);

  // Called before sampling for every row of logits of a request that reports them; `position` is that of the row's
  // token. The row that a request's choices start from is reported once for each. The logits are valid until the next
  // step.
  using LogitsCallback = std::function<void(RequestId id, int64_t position, std::span<const float> logits)>;
  void on_logits(LogitsCallback callback) { on_logits_ = std::move(callback); }

  // How many of the best logits of each row suffice to sample this plan; 0: all are needed. Where a mask leaves too few
  // of them, sample() fetches the row.
  int64_t n_deciding(const StepPlan& plan) const;
  // REQUIRES: the runner has just computed the plan, with at least that many logits.
  SampledStep sample(const StepPlan& plan);
  // FNV-1a of the bits of the last row of logits, or of the best of them if the device returned only those: identical
  // runs give identical hashes.
  uint64_t last_logits_hash() const;

 private:
  // The state of sampling for one sequence, or for one of its choices.
  struct Draw {
    const ScheduledSequence* scheduled = nullptr;
    int output = 0;                  // row of logits for the first sampled position
    std::optional<Sampler> sampler;  // for a choice; unset: the sequence's own
    std::vector<TokenId> tokens;
    bool complete = false;  // nothing is left to sample
    std::exception_ptr failure;
  };
  std::vector<std::exception_ptr> check_rows(const StepPlan& plan);
  std::vector<Draw> prepare(const StepPlan& plan, const std::vector<std::exception_ptr>& failures);
  bool reports(const Sequence& s) const { return on_logits_ && s.request().reports_logits(); }
  void report_logits(const ScheduledSequence& s, int output) const;
  void sample_draws(std::vector<Draw>& draws);
  void sample_tokens(Draw& draw, SamplerScratch& scratch) const;
  bool fetch_undecided(const std::vector<Draw>& draws);
  std::span<const float> logits(int output) const { return runner_.logits(output).first(n_vocab_); }
  void keep_last_row(int output);
  SampledStep collect(const StepPlan& plan, std::vector<Draw>& draws, std::vector<std::exception_ptr>& failures) const;
  void add_failure(const Sequence& s, const std::exception_ptr& failure, SampledStep& step) const;

  ModelRunner& runner_;
  const size_t n_vocab_;
  const bool isolate_errors_;
  std::vector<SamplerScratch> scratch_;  // one per thread
  LogitsCallback on_logits_;
  std::vector<uint32_t> last_row_;  // the bits that last_logits_hash() hashes
};

}  // namespace infer
