// The sampling parameters, with llama.cpp's names and defaults. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

// The stages of the sampling chain, in the default order.
enum class SamplerStage : uint8_t {
  kPenalties,
  kDry,
  kTopNSigma,
  kTopK,
  kTypical,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
};

struct SamplingParams {
  // The stages in the order in which they apply; those left out are off. Absent: all, in the default order. Mirostat 2
  // replaces them all.
  std::optional<std::vector<SamplerStage>> chain;
  std::optional<uint64_t> seed;  // absent: each sampler gets a random one

  float temperature = 0.8f;        // 0 or less: greedy, without truncation, XTC or noise
  float dynatemp_range = 0.0f;     // > 0: temperature +- range, depending on the entropy of the remaining candidates
  float dynatemp_exponent = 1.0f;  // maps entropy (0 to 1 of its maximum) into that range
  int32_t top_k = 40;              // 0 or less: off
  float top_p = 0.95f;             // 1: off
  float min_p = 0.05f;             // 0: off
  float typical_p = 1.0f;          // 1: off
  float top_n_sigma = -1.0f;       // 0 or less: off

  float xtc_probability = 0.0f;  // 0: off
  float xtc_threshold = 0.1f;    // above 0.5: off

  int32_t repeat_last_n = 64;  // window of the three penalties below, in tokens; 0: none, -1: all
  float repeat_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;

  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;  // 0: off, -1: all
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  int32_t mirostat = 0;  // 0: off, 2: version 2, which replaces all truncation
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;

  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logit; -infinity forbids the token

  bool greedy() const { return temperature <= 0.0f && dynatemp_range <= 0.0f; }
  bool has_penalties() const {
    return repeat_last_n != 0 && (repeat_penalty != 1.0f || presence_penalty != 0.0f || frequency_penalty != 0.0f);
  }
  bool has_dry() const { return dry_multiplier != 0.0f && dry_penalty_last_n != 0; }

  // Throws Error(kInvalidArgument) naming the first parameter out of range, and its range.
  void validate() const;
};

}  // namespace infer
