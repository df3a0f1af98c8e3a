// How many drafts pay. Learns from the steps what a row of a step costs, and from the verified drafts how many are
// accepted; chooses the drafts of the next step so that most tokens come out per second, none where none pay. Keeps an
// account of the time that drafts have saved and lost: whatever it has learned, what they may lose is bounded to about
// one hundredth of the time. Knows no clock itself. What is computed depends on it, what comes out does not. One
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace infer {

// A running mean of how many drafts are accepted.
class AcceptanceRate {
 public:
  // `usual`: what is assumed where nothing is known, and again when it is forgotten. `rate`: where to begin.
  explicit AcceptanceRate(double usual) : AcceptanceRate(usual, usual) {}
  AcceptanceRate(double usual, double rate) : usual_(usual), rate_(rate) {}
  double rate() const { return rate_; }
  // After a step: the first `accepted` of `proposed` drafts were right. Those behind the first wrong one say nothing.
  void record(int accepted, int proposed);
  // After a step without drafts: what was once learned counts less and less, so that drafts are tried again.
  void forget();

 private:
  double usual_, rate_;
};

// The time of steps without prompt tokens, by sequences and rows (tokens computed).
class StepCosts {
 public:
  // False for the first step of its size, which also prepared the plan of that size: its time says nothing.
  bool record(int sequences, int rows, double seconds);
  // Seconds of such a step: measured, or guessed from the measurements beside it; 0 before a step of one row per
  // sequence was measured.
  double expect(int sequences, int rows) const;
  // Of a step of one row per sequence, over many more steps; 0 as above. To judge by: what expect() overrates now and
  // then is chosen just then.
  double settled(int sequences) const;

 private:
  struct Mean {
    double seconds = 0, settled = 0;
    int n = 0;         // measurements, the first of which does not count
    int64_t last = 0;  // of all measurements, the number of the last one here
  };
  using Key = std::pair<int, int>;  // sequences and rows, each rounded up by bucket_size()
  static Key key(int sequences, int rows);
  bool known(const Mean& mean) const;
  const Mean* plain(int sequences) const;  // null when unknown
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
  // How many drafts of each candidate the next step verifies. It has a row for each of `sequences` besides, and at most
  // `most_rows` in all.
  std::vector<int> choose(int sequences, std::span<const Candidate> candidates, int most_rows);

  // A step without prompt tokens, in which `tokens` were generated, and the time that drafting for it took.
  void record(int sequences, int rows, int tokens, double seconds, double draft_seconds = 0);
  // A step of the draft model without prompt tokens, and one with. False as StepCosts::record().
  bool record_draft(int sequences, int rows, double seconds) { return draft_costs_.record(sequences, rows, seconds); }
  void record_draft_prompt(int tokens, double seconds);

  // How many tokens of prompts the draft model may compute before a step, so that the step comes little later.
  int32_t prompt_tokens(int sequences) const;
  // Whether it pays to let the draft model compute `lag` tokens of one of `sequences` first, for drafts of which so
  // many are accepted in the `remaining` tokens to come.
  bool pays_to_begin(int sequences, int64_t lag, int64_t remaining, double acceptance) const;

  double balance() const { return balance_; }  // seconds saved, at most a little; negative: lost

 private:
  bool may_lose(int sequences) const;
  // Seconds of a step of the draft model, and of a token of a prompt there.
  double draft_step(int sequences) const;
  double draft_prompt_token(int sequences) const;
  // Of all steps of the draft model, when candidate i gets depths[i].
  double draft_seconds(std::span<const Candidate> candidates, std::span<const int> depths) const;

  StepCosts costs_, draft_costs_;
  double draft_token_ = 0;        // seconds of a prompt's token in the draft model; 0: unknown
  double expected_drafting_ = 0;  // seconds of the draft model's steps for what choose() chose last
  double balance_ = 0;
  double seconds_ = 0;   // of all steps
  bool on_ = false;      // drafts were chosen for the last step that had candidates
  int since_plain_ = 0;  // steps with drafts since one without
};

}  // namespace infer
