#include "src/engine/step_sampling.h"

#include <algorithm>
#include <cstring>

#include "ggml-like/error.h"
#include "src/engine/pooling.h"  // check_numbers

namespace infer {

StepSampler::StepSampler(ModelRunner& runner, size_t n_vocab, bool isolate_errors)
    : runner_(runner),
      n_vocab_(n_vocab),
      isolate_errors_(isolate_errors),
      scratch_(static_cast<size_t>(runner.n_threads())) {}

SampledStep StepSampler::sample(const StepPlan& plan) {
  std::vector<std::exception_ptr> failures = check_rows(plan);
  std::vector<Draw> draws = prepare(plan, failures);
  sample_draws(draws);
  if (fetch_undecided(draws)) sample_draws(draws);
  if (plan.n_outputs > 0) keep_last_row(plan.n_outputs - 1);
  return collect(plan, draws, failures);
}

void StepSampler::sample_draws(std::vector<Draw>& draws) {
  runner_.parallel_for(static_cast<int64_t>(draws.size()), [&](int64_t i, int thread) {
    Draw& draw = draws[static_cast<size_t>(i)];
    if (draw.complete) return;
    try {
      sample_tokens(draw, scratch_[static_cast<size_t>(thread)]);
    } catch (const Error&) {
      draw.failure = std::current_exception();
      draw.complete = true;
    }
  });
}

// Fetches the rows that draws still have to sample from; false: there are none.
bool StepSampler::fetch_undecided(const std::vector<Draw>& draws) {
  std::vector<int> rows;
  for (const Draw& draw : draws) {
    if (draw.complete) continue;
    const int end = draw.output + (draw.sampler ? 0 : draw.scheduled->n_drafts);
    for (int row = draw.output + static_cast<int>(draw.tokens.size()); row <= end; ++row) rows.push_back(row);
  }
  if (!rows.empty()) runner_.fetch_logits(rows);
  return !rows.empty();
}

int64_t StepSampler::n_deciding(const StepPlan& plan) const {
  int64_t most = 0;
  for (const ScheduledSequence& s : plan.sequences) {
    if (s.first_output == s.n_tokens) continue;
    if (reports(*s.sequence)) return 0;
    if (!s.samples) continue;
    const Sampler& sampler = s.sequence->sampler();
    const int64_t n = sampler.n_deciding();
    if (n == 0) return 0;
    // A mask may refuse some.
    most = std::max({most, n, sampler.has_mask() ? int64_t{kMostSelected} : 0});
  }
  return most;
}

// The error in each sequence's logits; null if they are usable.
std::vector<std::exception_ptr> StepSampler::check_rows(const StepPlan& plan) {
  std::vector<size_t> owners;  // the sequence of each row
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    owners.insert(owners.end(), static_cast<size_t>(s.n_tokens - s.first_output), i);
  }
  std::vector<std::exception_ptr> found(owners.size()), failures(plan.sequences.size());
  runner_.parallel_for(static_cast<int64_t>(owners.size()), [&](int64_t row, int) {
    try {
      const int output = static_cast<int>(row);
      if (runner_.has_logits(output)) {
        check_numbers(logits(output));
      } else {
        const float log_sum_exp = runner_.best(output).log_sum_exp;
        check_numbers({&log_sum_exp, 1});
      }
    } catch (const Error&) {
      found[static_cast<size_t>(row)] = std::current_exception();
    }
  });
  for (size_t row = 0; row < found.size(); ++row) {
    if (found[row]) failures[owners[row]] = found[row];
  }
  return failures;
}

std::vector<StepSampler::Draw> StepSampler::prepare(const StepPlan& plan,
                                                    const std::vector<std::exception_ptr>& failures) {
  std::vector<Draw> draws;
  int output = 0;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const ScheduledSequence& s = plan.sequences[i];
    if (!failures[i]) report_logits(s, output);
    if (!failures[i] && s.samples) {
      const int sampled = output + s.first_sampled_row() - s.first_output;
      draws.push_back({&s, sampled, std::nullopt, {}, false, nullptr});
      const auto n_choices = static_cast<uint32_t>(s.sequence->request().choices.size());
      for (uint32_t c = 1; c <= n_choices; ++c) {
        draws.push_back({&s, sampled, s.sequence->sampler().for_choice(c), {}, false, nullptr});
      }
    }
    output += s.n_tokens - s.first_output;
  }
  return draws;
}

// The sequence's logits start at output row `output`.
void StepSampler::report_logits(const ScheduledSequence& s, int output) const {
  if (!reports(*s.sequence)) return;
  for (int32_t row = s.first_output; row < s.n_tokens; ++row, ++output) {
    const int64_t position = s.first_position + row;
    on_logits_(s.sequence->id(), position, logits(output));
    if (!s.samples || row != s.first_sampled_row()) continue;
    for (const RequestId choice : s.sequence->request().choices) on_logits_(choice, position, logits(output));
  }
}

// Samples from the sampled rows up to the first token that differs from its draft; for a choice, only from the first
// row. The sampler's state follows the sampled tokens, never the drafts. Stops before a row that must be fetched.
void StepSampler::sample_tokens(Draw& draw, SamplerScratch& scratch) const {
  const ScheduledSequence& s = *draw.scheduled;
  Sampler& sampler = draw.sampler ? *draw.sampler : s.sequence->sampler();
  for (auto i = static_cast<int32_t>(draw.tokens.size()); i <= s.n_drafts; ++i) {
    const int64_t position = s.first_position + s.first_sampled_row() + i;
    const int row = draw.output + i;
    const std::span<const TokenId> history = s.sequence->history(position);
    std::optional<TokenId> token;
    if (runner_.has_logits(row)) token = sampler.sample(logits(row), history, scratch);
    else token = sampler.sample(runner_.best(row), static_cast<int64_t>(history.size()), scratch);
    if (!token) return;
    sampler.accept(*token);
    draw.tokens.push_back(*token);
    if (draw.sampler || (i < s.n_drafts && s.sequence->tokens()[position + 1] != *token)) break;
  }
  draw.complete = true;
}

SampledStep StepSampler::collect(const StepPlan& plan, std::vector<Draw>& draws,
                                 std::vector<std::exception_ptr>& failures) const {
  SampledStep step;
  step.tokens.resize(plan.sequences.size());
  size_t next = 0;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const Sequence& s = *plan.sequences[i].sequence;
    const size_t begin = next;
    for (; next < draws.size() && draws[next].scheduled == &plan.sequences[i]; ++next) {
      if (draws[next].failure) failures[i] = draws[next].failure;
    }
    if (failures[i]) {
      add_failure(s, failures[i], step);
      continue;
    }
    if (begin == next) continue;
    step.tokens[i] = std::move(draws[begin].tokens);
    for (size_t d = begin + 1; d < next; ++d) {
      const auto index = static_cast<uint32_t>(d - begin);
      step.choices.push_back(
          {s.id(), index, s.request().choices[index - 1], std::move(*draws[d].sampler), draws[d].tokens[0]});
    }
  }
  return step;
}

void StepSampler::add_failure(const Sequence& s, const std::exception_ptr& failure, SampledStep& step) const {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (!isolate_errors_) throw;
    step.failures.push_back({s.id(), error.what()});
    for (const RequestId choice : s.request().choices) step.failures.push_back({choice, error.what()});
  }
}

void StepSampler::keep_last_row(int output) {
  last_row_.clear();
  const auto append = [this](auto values) {
    const size_t n = last_row_.size();
    last_row_.resize(n + values.size());
    std::memcpy(last_row_.data() + n, values.data(), values.size_bytes());
  };
  if (runner_.has_logits(output)) {
    append(logits(output));
  } else {
    append(runner_.best(output).ids);
    append(runner_.best(output).values);
  }
}

uint64_t StepSampler::last_logits_hash() const {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const uint32_t word : last_row_) {
    unsigned char bytes[sizeof(word)];
    std::memcpy(bytes, &word, sizeof(bytes));
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  }
  return hash;
}

}  // namespace infer
