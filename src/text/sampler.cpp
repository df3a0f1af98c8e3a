#include "src/text/sampler.h"

#include <algorithm>
#include <limits>
#include <random>
#include <unordered_map>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/ieee_math.h"
#include "src/text/sampler_chain.h"
#include "src/text/sampler_noise.h"

namespace infer {
namespace {

[[noreturn]] void fail_without_tokens() {
  throw Error(ErrorCode::kInvalidArgument,
              expected_found("sampling", "a token that can follow", "every token forbidden"));
}

// Copies the logits; those of tokens that are not allowed become -infinity.
void copy_allowed(std::span<const float> logits, AllowedTokens allowed, std::vector<float>& out) {
  if (allowed.empty()) {
    out.assign(logits.begin(), logits.end());
    return;
  }
  out.resize(logits.size());
  for (size_t begin = 0; begin < logits.size(); begin += 64) {
    const size_t n = std::min<size_t>(64, logits.size() - begin);
    const uint64_t word = allowed[begin / 64];
    if (word == 0) {
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(begin), n, -kInfinity);
    } else {
      for (size_t i = 0; i < n; ++i) out[begin + i] = word >> i & 1 ? logits[begin + i] : -kInfinity;
    }
  }
}

}  // namespace

uint64_t random_seed() {
  std::random_device source;
  return (uint64_t{source()} << 32) | source();
}

Sampler::Sampler(const SamplingParams& params, size_t n_vocab, std::shared_ptr<const DryBreakers> breakers,
                 std::unique_ptr<TokenMask> mask)
    : params_(std::make_shared<const SamplingParams>(with_stages_off(params))),
      breakers_(breakers ? std::move(breakers) : std::make_shared<const DryBreakers>()),
      own_(std::move(mask)),
      n_vocab_(n_vocab),
      seed_(params.seed ? *params.seed : random_seed()),
      mu_(2.0 * params.mirostat_tau) {
  params.validate();
  if (n_vocab == 0 || n_vocab > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("sampling", "a vocabulary of 1 to 2^31 - 1 tokens", n_vocab));
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (static_cast<size_t>(token) >= n_vocab) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("sampling", "logit_bias", concat("a token id below ", n_vocab), token));
    }
  }
}

Sampler Sampler::for_choice(uint32_t index) const {
  Sampler other = *this;
  other.mu_ = 2.0 * params_->mirostat_tau;
  other.sampled_ = kNoToken;
  other.seed_ = seed_ + index;
  return other;
}

Sampler Sampler::with_vocabulary(size_t n_vocab) const {
  Sampler other = *this;
  other.n_vocab_ = n_vocab;
  return other;
}

std::span<const TokenId> Sampler::penalized(std::span<const TokenId> history) const {
  if (params_->repeat_last_n < 0) return history;
  return history.last(std::min<size_t>(history.size(), static_cast<size_t>(params_->repeat_last_n)));
}

float Sampler::penalize(float logit, int32_t count) const {
  const SamplingParams& p = *params_;
  logit = logit <= 0 ? logit * p.repeat_penalty : logit / p.repeat_penalty;
  return logit - (static_cast<float>(count) * p.frequency_penalty + p.presence_penalty);
}

void Sampler::apply_penalties(std::span<float> logits, std::span<const TokenId> history,
                              std::vector<int32_t>& counts) const {
  history = penalized(history);
  counts.resize(n_vocab_, 0);
  for (const TokenId token : history) {
    if (static_cast<size_t>(token) < n_vocab_) ++counts[token];
  }
  for (const TokenId token : history) {
    if (static_cast<size_t>(token) >= n_vocab_ || counts[token] == 0) continue;
    logits[token] = penalize(logits[token], counts[token]);
    counts[token] = 0;
  }
}

std::span<const float> Sampler::adjust(std::span<const float> logits, std::span<const TokenId> history,
                                       SamplerScratch& scratch, AllowedTokens allowed) const {
  const SamplingParams& p = *params_;
  const bool in_order = !p.chain;  // otherwise the chain applies the penalties
  const bool penalizes = in_order && (p.has_penalties() || p.has_dry());
  if (allowed.empty() && p.logit_bias.empty() && !penalizes) return logits;
  copy_allowed(logits, allowed, scratch.logits);
  const std::span<float> adjusted = scratch.logits;
  for (const auto& [token, bias] : p.logit_bias) {
    if (static_cast<size_t>(token) < n_vocab_) adjusted[token] += bias;
  }
  if (!penalizes) return adjusted;
  if (p.has_penalties()) apply_penalties(adjusted, history, scratch.counts);
  for (const DryPenalty& dry : dry_penalties(p, *breakers_, history)) {
    if (static_cast<size_t>(dry.token) < n_vocab_) adjusted[dry.token] -= dry.penalty;
  }
  return adjusted;
}

void Sampler::apply_xtc(Candidates& c, int64_t position) const {
  const float p = params_->xtc_probability;
  if (p > 0 && noise_uniform(noise_bits(seed_, position, NoiseStream::kXtc, 0)) <= p) {
    exclude_top_choices(c, params_->xtc_threshold);
  }
}

double Sampler::temperature_of(const Candidates& c) const {
  const SamplingParams& p = *params_;
  if (p.dynatemp_range <= 0) return p.temperature;
  return dynamic_temperature(c, p.temperature, p.dynatemp_range, p.dynatemp_exponent);
}

TokenId Sampler::choose(int64_t position, SamplerScratch& scratch) const {
  const SamplingParams& p = *params_;
  Candidates& c = scratch.candidates;
  keep_typical(c, p.typical_p, scratch.work);
  keep_top_p(c, p.top_p, scratch.work);
  keep_min_p(c, p.min_p);
  apply_xtc(c, position);
  const double temperature = temperature_of(c);
  if (temperature <= 0) return std::min_element(c.items.begin(), c.items.end(), better)->id;
  return gumbel_argmax(c, temperature, seed_, position).id;
}

TokenId Sampler::sample_mirostat(std::span<const float> logits, int64_t position, Candidates& c) {
  const double temperature = params_->temperature;
  select_top(logits, -kInfinity, 0, c);
  keep_surprise_up_to(c, temperature, mu_);
  const Candidate chosen = gumbel_argmax(c, temperature, seed_, position);
  const double log_p = (chosen.logit - best_logit(c)) / temperature - log_sum_exp_above_best(c, temperature);
  surprise_ = -log_p * ieee_detail::kLog2E;
  return chosen.id;
}

void Sampler::apply_stage(SamplerStage stage, std::span<const TokenId> history, SamplerScratch& scratch) const {
  const SamplingParams& p = *params_;
  Candidates& c = scratch.candidates;
  const auto position = static_cast<int64_t>(history.size());
  switch (stage) {
    case SamplerStage::kPenalties:
      if (p.has_penalties()) {
        std::unordered_map<TokenId, int32_t> counts;
        for (const TokenId token : penalized(history)) ++counts[token];
        for (Candidate& item : c.items) {
          if (const auto found = counts.find(item.id); found != counts.end()) {
            item.logit = penalize(item.logit, found->second);
          }
        }
      }
      break;
    case SamplerStage::kDry:
      for (const DryPenalty& dry : dry_penalties(p, *breakers_, history)) {
        for (Candidate& item : c.items) {
          if (item.id == dry.token) item.logit -= dry.penalty;
        }
      }
      break;
    case SamplerStage::kTopNSigma:
      keep_top_n_sigma(c, p.top_n_sigma);
      break;
    case SamplerStage::kTopK:
      keep_top_k(c, p.top_k);
      break;
    case SamplerStage::kTypical:
      keep_typical(c, p.typical_p, scratch.work);
      break;
    case SamplerStage::kTopP:
      keep_top_p(c, p.top_p, scratch.work);
      break;
    case SamplerStage::kMinP:
      keep_min_p(c, p.min_p);
      break;
    case SamplerStage::kXtc:
      apply_xtc(c, position);
      break;
    case SamplerStage::kTemperature:
      divide_by_temperature(c, temperature_of(c));
      break;
  }
}

TokenId Sampler::sample_chain(std::span<const float> logits, std::span<const TokenId> history,
                              SamplerScratch& scratch) const {
  Candidates& c = scratch.candidates;
  select_top(logits, -kInfinity, 0, c);
  for (const SamplerStage stage : *params_->chain) apply_stage(stage, history, scratch);
  return gumbel_argmax(c, 1, seed_, static_cast<int64_t>(history.size())).id;
}

AllowedTokens Sampler::allowed(size_t n_logits) const {
  const AllowedTokens allowed = own_.mask ? own_.mask->allowed() : AllowedTokens();
  if (n_logits != n_vocab_ || (!allowed.empty() && allowed.size() < (n_vocab_ + 63) / 64)) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("sampling", concat(n_vocab_, " logits and mask bits"),
                                                            concat(n_logits, " and ", allowed.size() * 64)));
  }
  return allowed;
}

TokenId Sampler::sample(std::span<const float> logits, std::span<const TokenId> history, SamplerScratch& scratch) {
  const SamplingParams& p = *params_;
  surprise_ = 0;
  if (own_.mask && p.greedy() && !p.chain && logits.size() == n_vocab_) {
    // Tries the best token without the mask first: if it is allowed, it is also the best of the allowed ones.
    const TokenId best = find_best(adjust(logits, history, scratch, {}));
    if (best != kNoToken && own_.mask->allows(best)) return sampled_ = best;
  }
  const int64_t position = static_cast<int64_t>(history.size());
  const std::span<const float> adjusted = adjust(logits, history, scratch, allowed(logits.size()));
  const TokenId best = find_best(adjusted);
  if (best == kNoToken) fail_without_tokens();
  if (p.mirostat == 2 && p.temperature > 0) return sampled_ = sample_mirostat(adjusted, position, scratch.candidates);
  if (p.chain) return sampled_ = sample_chain(adjusted, history, scratch);
  if (p.greedy()) return sampled_ = best;
  const float floor = p.top_n_sigma > 0 ? top_n_sigma_floor(adjusted, p.top_n_sigma) : -kInfinity;
  select_top(adjusted, floor, p.top_k, scratch.candidates);
  return sampled_ = choose(position, scratch);
}

int64_t Sampler::n_deciding() const {
  const SamplingParams& p = *params_;
  if (p.chain || !p.logit_bias.empty() || p.has_penalties() || p.has_dry()) return 0;
  if (p.greedy()) return 1;
  if ((p.mirostat == 2 && p.temperature > 0) || p.top_n_sigma > 0) return 0;
  // A top_k of the vocabulary size or more makes select_top() keep the order of the vocabulary.
  return p.top_k > 0 && static_cast<size_t>(p.top_k) < n_vocab_ ? p.top_k : 0;
}

std::optional<TokenId> Sampler::sample(const BestLogits& best, int64_t position, SamplerScratch& scratch) {
  const auto n = static_cast<size_t>(n_deciding());
  CHECK_INTERNAL(n > 0 && n <= best.ids.size());
  surprise_ = 0;
  if (own_.mask && params_->greedy() && best.values[0] > -kInfinity && own_.mask->allows(best.ids[0])) {
    return sampled_ = best.ids[0];
  }
  const AllowedTokens allowed = this->allowed(n_vocab_);
  Candidates& c = scratch.candidates;
  c.items.clear();
  c.best_first = true;
  size_t seen = 0;
  for (; seen < best.ids.size() && c.items.size() < n && best.values[seen] > -kInfinity; ++seen) {
    const TokenId id = best.ids[seen];
    if (static_cast<size_t>(id) < n_vocab_ && includes(allowed, id)) c.items.push_back({id, best.values[seen]});
  }
  if (c.items.size() < n && seen == best.ids.size()) return std::nullopt;
  if (c.items.empty()) fail_without_tokens();
  return sampled_ = params_->greedy() ? c.items.front().id : choose(position, scratch);
}

void Sampler::accept(TokenId token) {
  if (params_->mirostat == 2 && token == sampled_) mu_ -= params_->mirostat_eta * (surprise_ - params_->mirostat_tau);
  sampled_ = kNoToken;
  if (own_.mask) own_.mask->accept(token);
}

size_t Sampler::count_allowed(std::span<const TokenId> tokens) {
  if (!own_.mask) return tokens.size();
  size_t n = 0;
  for (; n < tokens.size(); ++n) {
    if (!own_.mask->allows(tokens[n])) break;
    own_.mask->accept(tokens[n]);
  }
  own_.mask->rollback(static_cast<int64_t>(n));
  return n;
}

}  // namespace infer
