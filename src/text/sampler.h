// Chooses the next token of one sequence from its logits. The chain is llama.cpp's: grammar mask, logit bias,
// penalties, DRY, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature; then argmax(log p + Gumbel noise), where
// the noise is a function of (seed, position, token). The same seed gives the same text in any batch.
// A Sampler belongs to one sequence, is small, and is copied for a fork or a draft. Its only state is mirostat's mu.
// Not thread-safe; different samplers may run at once, each with its own scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/text/sampler_dry.h"
#include "src/text/sampler_params.h"
#include "src/text/sampler_stages.h"

namespace infer {

// Tokens that a grammar allows, one bit per token id, lowest bit first; empty: all tokens.
using TokenMask = std::span<const uint64_t>;

// Memory that samplers of one thread share; its contents mean nothing between calls.
struct SamplerScratch {
  std::vector<float> logits;    // [n_vocab]
  std::vector<int32_t> counts;  // [n_vocab], all zero between calls
  Candidates candidates;
  std::vector<RankedCandidate> work;
};

class Sampler {
 public:
  // Throws Error(kInvalidArgument) when params.validate() does or a biased token is not in the vocabulary.
  // `breakers` may be null: no sequence breakers.
  Sampler(const SamplingParams& params, size_t n_vocab, std::shared_ptr<const DryBreakers> breakers = nullptr);

  // The token at position history.size(). `logits`: [n_vocab]; `history`: all tokens of the sequence so far, prompt
  // included. Depends on nothing else but `allowed` and mirostat's mu, and calling it again gives the same token.
  // Throws Error(kInvalidArgument) on NaN or +inf logits and when no token is possible.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history, SamplerScratch& scratch,
                 TokenMask allowed = {});

  // Says that the token last sampled became part of the sequence: mirostat learns from it.
  void accept(TokenId token);

  // The same parameters with seed() + index and a fresh state, for one of several answers to a prompt: each is the
  // text of a request with that seed.
  Sampler for_choice(uint32_t index) const;

  const SamplingParams& params() const { return *params_; }
  uint64_t seed() const { return seed_; }
  double mirostat_mu() const { return mu_; }  // in bits

 private:
  // The logits after mask, bias, penalties and DRY: `logits` itself when none applies, else in scratch.
  std::span<const float> adjust(std::span<const float> logits, std::span<const TokenId> history,
                                SamplerScratch& scratch, TokenMask allowed) const;
  void apply_penalties(std::span<float> logits, std::span<const TokenId> history, std::vector<int32_t>& counts) const;
  void truncate(std::span<const float> logits, int64_t position, SamplerScratch& scratch) const;
  TokenId sample_mirostat(std::span<const float> logits, int64_t position, Candidates& candidates);

  std::shared_ptr<const SamplingParams> params_;
  std::shared_ptr<const DryBreakers> breakers_;
  size_t n_vocab_;
  uint64_t seed_;
  double mu_;  // mirostat: the largest surprise allowed, in bits
  TokenId sampled_ = kNoToken;
  double surprise_ = 0;  // of sampled_, in bits
};

// A seed from the operating system's random source.
uint64_t random_seed();

}  // namespace infer
