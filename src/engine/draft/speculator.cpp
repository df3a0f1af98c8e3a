#include "src/engine/draft/speculator.h"

#include <algorithm>
#include <bit>

#include "ggml-like/clock.h"
#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr int64_t kIndexedTokens = 1 << 17;
// Acceptance rates assumed at first for lookup matches of 2, 4, 8, 16 and at least 32 tokens.
constexpr double kFirstRates[] = {0.4, 0.5, 0.7, 0.8, 0.9};
constexpr double kFirstRate = 0.6;         // lookup drafts of a new sequence
constexpr double kFirstDraftedRate = 0.7;  // drafts of the draft model
constexpr double kFirstForcedRate = 0.9;   // drafts of a grammar
constexpr int kMostForced = 32;            // drafts of a grammar in a step
constexpr int64_t kAnswer = 256;           // assumed length of an answer without a limit, in tokens
constexpr int64_t kCaughtUp = 64;          // a smaller lag of the draft model is always worth computing

}  // namespace

Speculator::Speculator(const SpeculationOptions& options, std::unique_ptr<DraftModel> draft, const Tokenizer& tokenizer,
                       int most_rows, std::function<void(const std::string& line)> note)
    : options_(options),
      draft_(std::move(draft)),
      note_(std::move(note)),
      most_rows_(most_rows),
      texts_(kIndexedTokens),
      forced_drafts_(tokenizer),
      drafted_(kFirstDraftedRate),
      forced_(kFirstForcedRate) {
  for (const double rate : kFirstRates) by_length_.emplace_back(rate);
}

AcceptanceRate& Speculator::rate_of_length(int match_length) {
  const int log = std::bit_width(static_cast<unsigned>(match_length)) - 1;
  return by_length_[static_cast<size_t>(std::clamp(log - 1, 0, static_cast<int>(by_length_.size()) - 1))];
}

Speculator::Followed& Speculator::follow(const Sequence& s) {
  const auto found = followed_.find(s.id());
  if (found != followed_.end()) return found->second;
  const LookupIndex::TextId text = texts_.open(s.request().cache_salt, s.request().reuse_prefix);
  const Followed first{
      text, 0, AcceptanceRate(kFirstRate), {kFirstDraftedRate, drafted_.rate()}, {kFirstForcedRate, forced_.rate()},
      {}};
  return followed_.emplace(s.id(), first).first->second;
}

void Speculator::index(Followed& followed, const Sequence& s) {
  if (!options_.lookup) return;
  texts_.append(followed.text, s.known_tokens().subspan(static_cast<size_t>(followed.n_indexed)));
  followed.n_indexed = s.known();
}

bool Speculator::may_draft(const Sequence& s, const Followed& followed, int n_sequences) const {
  if (!draft_) return false;
  const int64_t lag = draft_->lag(s);
  if (lag <= kCaughtUp || options_.fixed > 0) return true;
  const int64_t limit = s.request().max_new_tokens < 0 ? kAnswer : s.max_known() - s.known();
  return depth_.pays_to_begin(n_sequences, lag, limit, followed.drafted.rate());
}

void Speculator::end_preempted(const Scheduler& scheduler) {
  for (const Sequence* s : scheduler.waiting()) {
    if (s->preemptions() > 0) draft_->end(s->id());
  }
}

AcceptanceRate& Speculator::own_rate(Followed& followed, Source source) {
  switch (source.kind) {
    case Source::Kind::kLookup:
      return followed.looked_up;
    case Source::Kind::kGrammar:
      return followed.forced;
    case Source::Kind::kModel:
      break;
  }
  return followed.drafted;
}

AcceptanceRate& Speculator::common_rate(Source source) {
  switch (source.kind) {
    case Source::Kind::kLookup:
      return rate_of_length(source.match_length);
    case Source::Kind::kGrammar:
      return forced_;
    case Source::Kind::kModel:
      break;
  }
  return drafted_;
}

bool Speculator::find_drafts(Candidate& c, int n_sequences) {
  const int limit = c.sequence->request().max_drafts;
  std::span<const TokenId> forced;
  if (options_.jump_forward && limit > 0) {
    forced = forced_drafts_.find(*c.sequence, std::min(options_.fixed > 0 ? options_.fixed : kMostForced, limit));
  }
  c.most = std::min(options_.drafts_of_step(), limit);
  LookupIndex::Match match;
  if (options_.lookup && c.most > 0) match = texts_.find(c.followed->text, c.most);
  // Looked-up text may continue where the grammar leaves a choice.
  const bool longer =
      match.tokens.size() > forced.size() && std::equal(forced.begin(), forced.end(), match.tokens.begin());
  if (match.length > 0 && longer) {
    c.source = {Source::Kind::kLookup, match.length};
    c.tokens = std::move(match.tokens);
  } else if (!forced.empty()) {
    c.source.kind = Source::Kind::kGrammar;
    c.tokens.assign(forced.begin(), forced.end());
    c.most = static_cast<int>(forced.size());
  } else {
    return c.most > 0 && may_draft(*c.sequence, *c.followed, n_sequences);
  }
  return true;
}

std::vector<Speculator::Candidate> Speculator::find_candidates(const Scheduler& scheduler) {
  // In a step with a prompt chunk, each draft row takes the place of a prompt token: drafts would only delay both.
  const bool full = std::ssize(scheduler.running()) == scheduler.config().max_sequences;
  bool only_decodes = full || scheduler.waiting().empty();
  std::vector<Candidate> candidates;
  const int n_sequences = static_cast<int>(scheduler.running().size());
  for (const Sequence* s : scheduler.running()) {
    Followed& followed = follow(*s);
    index(followed, *s);
    only_decodes = only_decodes && s->remaining() == 1;
    if (s->remaining() != 1 || !s->wants_tokens()) continue;
    Candidate candidate{s, &followed, {}, {}};
    if (find_drafts(candidate, n_sequences)) candidates.push_back(std::move(candidate));
  }
  if (!only_decodes && options_.fixed == 0) candidates.clear();
  return candidates;
}

std::vector<int> Speculator::choose_depths(std::span<Candidate> candidates, int n_sequences) {
  std::vector<int> depths;
  std::vector<DraftDepth::Candidate> choices;
  for (const Candidate& c : candidates) {
    depths.push_back(c.most);
    const int available = static_cast<int>(c.tokens.size());
    switch (c.source.kind) {
      case Source::Kind::kModel:
        choices.push_back({c.followed->drafted.rate(), c.most, true});
        break;
      case Source::Kind::kLookup:
        choices.push_back({(c.followed->looked_up.rate() + common_rate(c.source).rate()) / 2, available});
        break;
      case Source::Kind::kGrammar:
        choices.push_back({c.followed->forced.rate(), available});
        break;
    }
  }
  return options_.fixed > 0 ? depths : depth_.choose(n_sequences, choices, most_rows_);
}

void Speculator::propose(Scheduler& scheduler) {
  draft_seconds_ = 0;
  if (draft_) end_preempted(scheduler);
  const int n_sequences = static_cast<int>(scheduler.running().size());
  std::vector<Candidate> candidates = find_candidates(scheduler);
  const std::vector<int> depths = choose_depths(candidates, n_sequences);
  std::vector<DraftModel::Wish> wishes;
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& c = candidates[i];
    c.followed->source = c.source;
    if (depths[i] == 0) {
      own_rate(*c.followed, c.source).forget();
      common_rate(c.source).forget();
    } else if (c.source.kind == Source::Kind::kModel) {
      wishes.push_back({c.sequence, depths[i]});
    } else {
      const size_t n = std::min(static_cast<size_t>(depths[i]), c.tokens.size());
      scheduler.propose(c.sequence->id(), std::span(c.tokens).first(n));
    }
  }
  if (!wishes.empty()) ask_model(wishes, scheduler, n_sequences);
}

void Speculator::ask_model(std::span<const DraftModel::Wish> wishes, Scheduler& scheduler, int n_sequences) {
  const int32_t prompt_tokens = options_.fixed > 0 ? INT32_MAX : depth_.prompt_tokens(n_sequences);
  const std::vector<std::vector<TokenId>> drafts = drafts_of_model(wishes, prompt_tokens);
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (std::ssize(drafts[i]) >= options_.least) scheduler.propose(wishes[i].sequence->id(), drafts[i]);
  }
}

std::vector<std::vector<TokenId>> Speculator::drafts_of_model(std::span<const DraftModel::Wish> wishes,
                                                              int32_t prompt_tokens) {
  double last = steady_seconds();
  const auto after_step = [&](int rows, int drafts) {
    const double seconds = steady_seconds() - std::exchange(last, steady_seconds());
    // A sequence's first draft may compute a few tokens: the one the target sampled, and an accepted draft.
    if (rows <= draft_->few_tokens() * drafts) {
      if (depth_.record_draft(drafts, rows, seconds)) draft_seconds_ += seconds;
    } else {
      depth_.record_draft_prompt(rows, seconds);
    }
  };
  try {
    return draft_->draft(wishes, options_.least_probability, prompt_tokens, after_step);
  } catch (const Error& error) {
    if (note_) note_(concat("[draft] the draft model failed and is no longer used: ", error.what()));
    draft_.reset();
    return {};
  }
}

void Speculator::learn(const StepPlan& plan, const SampledStep& sampled, double seconds) {
  int rows = 0, tokens = 0;
  bool only_decodes = true;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    const int n = static_cast<int>(sampled.tokens[i].size());
    rows += s.n_tokens;
    tokens += n;
    only_decodes = only_decodes && s.n_tokens == 1 + s.n_drafts && s.samples && n > 0;
    const auto found = followed_.find(s.sequence->id());
    if (s.n_drafts == 0 || n == 0 || found == followed_.end()) continue;
    Followed& followed = found->second;
    own_rate(followed, followed.source).record(n - 1, s.n_drafts);
    common_rate(followed.source).record(n - 1, s.n_drafts);
  }
  if (only_decodes) depth_.record(static_cast<int>(plan.sequences.size()), rows, tokens, seconds, draft_seconds_);
}

void Speculator::end(const Sequence& s) {
  if (draft_) draft_->end(s.id());
  forced_drafts_.forget(s.id());
  const auto found = followed_.find(s.id());
  if (found == followed_.end()) return;
  index(found->second, s);
  texts_.close(found->second.text);
  followed_.erase(found);
}

void Speculator::reset() {
  if (draft_) draft_->reset();
  texts_ = LookupIndex(kIndexedTokens);
  forced_drafts_.clear();
  followed_.clear();
}

}  // namespace infer
