// Chooses how many drafts to verify. Learns from past steps what a row costs and how many drafts are accepted, and
// picks the drafts that maximize tokens per second; none if none pay off. Keeps an account of the time drafts have
// saved and lost, so that even a wrong estimate costs at most about 1% of the time. Reads no clock itself. It affects
// which rows are computed, never the resulting text. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace infer {

// A running mean of the share of drafts that are accepted.
class AcceptanceRate {
 public:
  // `usual`: assumed while nothing is known, and returned to as measurements age. `rate`: the initial value.
  explicit AcceptanceRate(double usual) : AcceptanceRate(usual, usual) {}
  AcceptanceRate(double usual, double rate) : usual_(usual), rate_(rate) {}
  double rate() const { return rate_; }
  // After a step: the first `accepted` of `proposed` drafts were right. Drafts after the first wrong one do not count.
  void record(int accepted, int proposed);
  // After a step without drafts: decays towards `usual`, so that drafts are tried again.
  void forget();

 private:
  double usual_, rate_;
};

// The duration of steps without prompt tokens, by sequences and rows (tokens computed).
class StepCosts {
 public:
  // False for the first step of a size, which is not measured because it also builds that size's plan.
  bool record(int sequences, int rows, double seconds);
  // Expected seconds of such a step: measured, or interpolated from nearby sizes; 0 until a step with one row per
  // sequence has been measured.
  double expect(int sequences, int rows) const;
  // The same for one row per sequence, averaged over many more steps; 0 as above. Gains are measured against this:
  // choose() favours sizes that expect() underestimates at the moment, so expect() would be biased.
  double settled(int sequences) const;

 private:
  struct Mean {
    double seconds = 0, settled = 0;
    int n = 0;         // measurements; the first is discarded
    int64_t last = 0;  // the value of n_ at the last measurement here
  };
  using Key = std::pair<int, int>;  // sequences and rows, both rounded up by bucket_size()
  static Key key(int sequences, int rows);
  bool known(const Mean& mean) const;
  const Mean* plain(int sequences) const;  // null if unknown
  std::map<Key, Mean> means_;
  int64_t n_ = 0;  // measurements
};

class DraftDepth {
 public:
  struct Candidate {
    double acceptance = 0;  // probability that a draft is accepted if those before it are
    int available = 0;      // drafts
    bool by_model = false;  // each takes a step of the draft model
  };
  // How many drafts of each candidate the next step verifies. The step also has one row for each of `sequences`, and at
  // most `most_rows` in all.
  std::vector<int> choose(int sequences, std::span<const Candidate> candidates, int most_rows);

  // Records a step without prompt tokens that generated `tokens`, and the time spent drafting for it.
  void record(int sequences, int rows, int tokens, double seconds, double draft_seconds = 0);
  // Record a step of the draft model without prompt tokens, and one with. The first returns what StepCosts::record()
  // does.
  bool record_draft(int sequences, int rows, double seconds) { return draft_costs_.record(sequences, rows, seconds); }
  void record_draft_prompt(int tokens, double seconds);

  // How many prompt tokens the draft model may compute before a step without delaying it much.
  int32_t prompt_tokens(int sequences) const;
  // Whether it pays to let the draft model first compute the `lag` tokens that it is behind on one of `sequences`,
  // given its `acceptance` rate and the `remaining` tokens to generate.
  bool pays_to_begin(int sequences, int64_t lag, int64_t remaining, double acceptance) const;

  double balance() const { return balance_; }  // seconds saved, capped at a small amount; negative: lost

 private:
  bool may_lose(int sequences) const;
  // Seconds of a step of the draft model, and of one of its prompt tokens.
  double draft_step(int sequences) const;
  double draft_prompt_token(int sequences) const;
  // Seconds of all draft model steps if candidate i gets depths[i] drafts.
  double draft_seconds(std::span<const Candidate> candidates, std::span<const int> depths) const;

  StepCosts costs_, draft_costs_;
  double draft_token_ = 0;        // seconds per prompt token in the draft model; 0: unknown
  double expected_drafting_ = 0;  // seconds of the draft model's steps for the last choice of choose()
  double balance_ = 0;
  double seconds_ = 0;   // of all steps
  bool on_ = false;      // the last step that had candidates used drafts
  int since_plain_ = 0;  // steps with drafts since the last one without
};

}  // namespace infer
