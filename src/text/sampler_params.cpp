#include "src/text/sampler_params.h"

#include <limits>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr size_t kMaxBreakers = 64;
constexpr size_t kMaxBreakerBytes = 40;

template <typename T>
void require(bool holds, const char* name, T value, const char* range) {
  if (!holds) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("sampling", name, range, value));
  }
}

// False for NaN as well.
bool within(float value, float low, float high) { return value >= low && value <= high; }

void require_share(const char* name, float value) { require(within(value, 0, 1), name, value, "a number from 0 to 1"); }

void require_finite(const char* name, float value) {
  require(within(value, -kLargest, kLargest), name, value, "a finite number");
}

void require_not_negative(const char* name, float value) {
  require(within(value, 0, kLargest), name, value, "a finite number of at least 0");
}

}  // namespace

void SamplingParams::validate() const {
  require_finite("temperature", temperature);
  require_not_negative("dynatemp_range", dynatemp_range);
  require_not_negative("dynatemp_exponent", dynatemp_exponent);
  require_share("top_p", top_p);
  require_share("min_p", min_p);
  require_share("typical_p", typical_p);
  require_finite("top_n_sigma", top_n_sigma);
  require_share("xtc_probability", xtc_probability);
  require_share("xtc_threshold", xtc_threshold);
  require(repeat_last_n >= -1, "repeat_last_n", repeat_last_n, "-1 or more");
  require(repeat_penalty > 0 && repeat_penalty <= kLargest, "repeat_penalty", repeat_penalty,
          "a finite number above 0");
  require_finite("presence_penalty", presence_penalty);
  require_finite("frequency_penalty", frequency_penalty);
  require_not_negative("dry_multiplier", dry_multiplier);
  require(within(dry_base, 1, kLargest), "dry_base", dry_base, "a finite number of at least 1");
  require(dry_allowed_length >= 0, "dry_allowed_length", dry_allowed_length, "0 or more");
  require(dry_penalty_last_n >= -1, "dry_penalty_last_n", dry_penalty_last_n, "-1 or more");
  require(dry_sequence_breakers.size() <= kMaxBreakers, "dry_sequence_breakers", dry_sequence_breakers.size(),
          "at most 64 strings");
  for (const std::string& text : dry_sequence_breakers) {
    require(!text.empty() && text.size() <= kMaxBreakerBytes, "dry_sequence_breakers", text.size(),
            "strings of 1 to 40 bytes");
  }
  require(mirostat == 0 || mirostat == 2, "mirostat", mirostat, "0 (off) or 2");
  require_not_negative("mirostat_tau", mirostat_tau);
  require_not_negative("mirostat_eta", mirostat_eta);
  for (const auto& [token, bias] : logit_bias) {
    require(token >= 0, "logit_bias", token, "a token id of 0 or more");
    require(bias <= kLargest, "logit_bias", bias, "a finite bias or -infinity");
  }
}

}  // namespace infer
