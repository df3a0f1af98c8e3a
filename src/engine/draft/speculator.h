// Proposes drafts for the sequences of a step: the text that a grammar forces, or else from prompt lookup, or else from
// a draft model; as many as pay off. Learns from how many are accepted. Sits between the engine and its scheduler:
// propose(), the step, then learn(). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/engine/draft/draft_depth.h"
#include "src/engine/draft/draft_model.h"
#include "src/engine/draft/forced_drafts.h"
#include "src/engine/draft/lookup_index.h"
#include "src/engine/draft/speculation_options.h"
#include "src/engine/scheduler.h"
#include "src/engine/step_sampling.h"

namespace infer {

class Speculator {
 public:
  // `draft` may be null. `most_rows`: the most rows of all sequences in a step, drafts included. `note`, which may be
  // null, gets a line if the draft model fails, after which it is no longer used. The tokenizer outlives this.
  Speculator(const SpeculationOptions& options, std::unique_ptr<DraftModel> draft, const Tokenizer& tokenizer,
             int most_rows, std::function<void(const std::string& line)> note);

  // Before Scheduler::schedule(): gives the scheduler the drafts to verify.
  void propose(Scheduler& scheduler);
  // After Scheduler::commit(); `seconds`: of the whole step.
  void learn(const StepPlan& plan, const SampledStep& sampled, double seconds);
  // Whether it needs the hidden states of all rows of a step, passed to see() before learn().
  bool wants_hidden() const { return draft_ && draft_->predicts(); }
  void see(const StepPlan& plan, const ModelRunner& target, std::span<const int> outputs) {
    draft_->see(plan, target, outputs);
  }
  // The sequence has ended or will not be seen again. Lookup for other sequences may still find its text.
  void end(const Sequence& s);
  void reset();

  const SpeculationOptions& options() const { return options_; }
  const DraftModel* draft() const { return draft_.get(); }

 private:
  // Where drafts come from.
  struct Source {
    enum class Kind { kModel, kLookup, kGrammar } kind = Kind::kModel;
    int match_length = 0;  // of kLookup
  };
  struct Followed {
    LookupIndex::TextId text = 0;
    int64_t n_indexed = 0;  // known tokens in the index
    AcceptanceRate looked_up, drafted, forced;
    Source source;  // of the last drafts proposed
  };
  // A sequence that may get drafts in this step.
  struct Candidate {
    const Sequence* sequence;
    Followed* followed;
    Source source;
    std::vector<TokenId> tokens;  // empty for kModel
    int most = 0;                 // drafts
  };
  Followed& follow(const Sequence& s);
  void index(Followed& followed, const Sequence& s);
  AcceptanceRate& rate_of_length(int match_length);
  // The acceptance rates of a source: for the sequence, and over all sequences.
  AcceptanceRate& own_rate(Followed& followed, Source source);
  AcceptanceRate& common_rate(Source source);
  std::vector<Candidate> find_candidates(const Scheduler& scheduler);
  // False if the sequence gets no drafts.
  bool find_drafts(Candidate& candidate, int n_sequences);
  std::vector<int> choose_depths(std::span<Candidate> candidates, int n_sequences);
  void ask_model(std::span<const DraftModel::Wish> wishes, Scheduler& scheduler, int n_sequences);
  // Frees the draft model's blocks of sequences that the target has preempted.
  void end_preempted(const Scheduler& scheduler);
  // Whether the draft model has caught up with the sequence, or is worth letting catch up.
  bool may_draft(const Sequence& s, const Followed& followed, int n_sequences) const;
  std::vector<std::vector<TokenId>> drafts_of_model(std::span<const DraftModel::Wish> wishes, int32_t prompt_tokens);

  const SpeculationOptions options_;
  std::unique_ptr<DraftModel> draft_;
  const std::function<void(const std::string& line)> note_;
  const int most_rows_;
  LookupIndex texts_;
  ForcedDrafts forced_drafts_;
  DraftDepth depth_;
  std::vector<AcceptanceRate> by_length_;
  AcceptanceRate drafted_, forced_;  // over all sequences
  double draft_seconds_ = 0;         // spent on this step's drafts, excluding prompts
  std::unordered_map<RequestId, Followed> followed_;
};

}  // namespace infer
