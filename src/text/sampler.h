// Samples the next token of one sequence from its logits. The chain is llama.cpp's: token mask, logit bias, penalties,
// DRY, top-n-sigma, top-k, typical, top-p, min-p, XTC, temperature, or these stages in the order of params.chain; then
// argmax(log p + Gumbel noise), where the noise is a function of (seed, position, token). The same seed gives the same
// text in any batch. A Sampler belongs to one sequence and is copied for a fork. Its state is mirostat's mu and the
// mask's state. Not thread-safe; different samplers may run at once, each with its own scratch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "src/text/best_logits.h"
#include "src/text/sampler_dry.h"
#include "src/text/sampler_params.h"
#include "src/text/sampler_stages.h"
#include "src/text/token_mask.h"

namespace infer {

// Working memory shared by the samplers of one thread; nothing in it is kept between calls.
struct SamplerScratch {
  std::vector<float> logits;    // [n_vocab]
  std::vector<int32_t> counts;  // [n_vocab], all zero between calls
  Candidates candidates;
  std::vector<RankedCandidate> work;
};

class Sampler {
 public:
  // Throws Error(kInvalidArgument) if params.validate() does or a biased token is not in the vocabulary.
  // `breakers` may be null: no sequence breakers. `mask` may be null: all tokens are allowed.
  Sampler(const SamplingParams& params, size_t n_vocab, std::shared_ptr<const DryBreakers> breakers = nullptr,
          std::unique_ptr<TokenMask> mask = nullptr);

  // The token at position history.size(). `logits`: [n_vocab]; `history`: all tokens of the sequence so far, prompt
  // included. A pure function of these and the state: calling it again gives the same token. Throws
  // Error(kInvalidArgument) on NaN or +inf logits, and if no token is possible.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history, SamplerScratch& scratch);

  // How many of the best logits determine the sampled token, or of the best allowed ones if there is a mask; 0: all
  // of them, or the history, may matter.
  int64_t n_deciding() const;
  bool has_mask() const { return own_.mask != nullptr; }
  // The token that the whole row would give; none if the mask leaves too few of `best` to tell. REQUIRES:
  // n_deciding() > 0, and `best` has at least that many logits.
  std::optional<TokenId> sample(const BestLogits& best, int64_t position, SamplerScratch& scratch);

  // Updates the state: the last sampled token is now part of the sequence.
  void accept(TokenId token);

  // How many of the tokens, in sequence, the mask allows from here. Does not change the state.
  size_t count_allowed(std::span<const TokenId> tokens);

  // What the mask knows of the text to come, see TokenMask::forced().
  ForcedText forced(size_t limit) const { return own_.mask ? own_.mask->forced(limit) : ForcedText(); }

  // The same parameters with seed() + index, for one of several answers to a prompt: each equals the answer to a
  // request with that seed. REQUIRES: nothing has been accepted yet.
  Sampler for_choice(uint32_t index) const;

  // A copy for rows of n_vocab logits: those of a draft model, whose vocabulary may differ by unused tokens at the end.
  Sampler with_vocabulary(size_t n_vocab) const;

  const SamplingParams& params() const { return *params_; }
  uint64_t seed() const { return seed_; }
  double mirostat_mu() const { return mu_; }  // in bits

 private:
  // Makes a sampler copyable: each copy has its own mask.
  struct OwnMask {
    explicit OwnMask(std::unique_ptr<TokenMask> m) : mask(std::move(m)) {}
    OwnMask(const OwnMask& other) : mask(other.mask ? other.mask->clone() : nullptr) {}
    OwnMask(OwnMask&&) = default;
    OwnMask& operator=(OwnMask other) {
      mask = std::move(other.mask);
      return *this;
    }
    std::unique_ptr<TokenMask> mask;
  };

  // What the mask allows. Throws Error(kInvalidArgument) if it or a row of n_logits is of another vocabulary.
  AllowedTokens allowed(size_t n_logits) const;
  // The logits after mask, bias, penalties and DRY: `logits` itself if none applies, otherwise in scratch.
  std::span<const float> adjust(std::span<const float> logits, std::span<const TokenId> history,
                                SamplerScratch& scratch, AllowedTokens allowed) const;
  std::span<const TokenId> penalized(std::span<const TokenId> history) const;  // the tokens in the penalties' window
  void apply_penalties(std::span<float> logits, std::span<const TokenId> history, std::vector<int32_t>& counts) const;
  float penalize(float logit, int32_t count) const;
  void apply_xtc(Candidates& candidates, int64_t position) const;
  double temperature_of(const Candidates& candidates) const;  // 0 or less: the best candidate
  // The stages after the selection of the best logits.
  TokenId choose(int64_t position, SamplerScratch& scratch) const;
  TokenId sample_mirostat(std::span<const float> logits, int64_t position, Candidates& candidates);
  // The stages in the order of params.chain. `logits`: after mask and bias.
  TokenId sample_chain(std::span<const float> logits, std::span<const TokenId> history, SamplerScratch& scratch) const;
  void apply_stage(SamplerStage stage, std::span<const TokenId> history, SamplerScratch& scratch) const;

  std::shared_ptr<const SamplingParams> params_;
  std::shared_ptr<const DryBreakers> breakers_;
  OwnMask own_;
  size_t n_vocab_;
  uint64_t seed_;
  double mu_;  // mirostat: the largest allowed surprise, in bits
  TokenId sampled_ = kNoToken;
  double surprise_ = 0;  // of sampled_, in bits
};

// A seed from the operating system's random source.
uint64_t random_seed();

}  // namespace infer
