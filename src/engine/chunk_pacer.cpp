#include "src/engine/chunk_pacer.h"

#include <algorithm>

namespace infer {
namespace {

constexpr double kWeight = 0.25;    // of a new measurement in a mean
constexpr double kMargin = 0.85;    // of the time that is planned for, since steps vary
constexpr int32_t kFirstChunk = 8;  // before anything is known
constexpr int32_t kNoLimit = INT32_MAX;

}  // namespace

void ChunkPacer::record(const StepRecord& step) {
  if (step.prompt_tokens == 0) {
    decode_seconds_ = decode_seconds_ ? *decode_seconds_ + kWeight * (step.seconds - *decode_seconds_) : step.seconds;
    return;
  }
  const double decode = step.decode_tokens > 0 ? decode_seconds_.value_or(0) : 0;
  const double token = std::max(0.0, step.seconds - decode) / step.prompt_tokens;
  // A rise counts at once, a fall little by little: too long a step is what has to be avoided.
  token_seconds_ = token_seconds_ ? std::max(token, *token_seconds_ + kWeight * (token - *token_seconds_)) : token;
}

int32_t ChunkPacer::prompt_budget(int n_decodes) const {
  if (max_seconds_ <= 0 || n_decodes == 0) return kNoLimit;
  const int32_t least = std::max(1, n_decodes / 4);
  if (!token_seconds_) return std::max(least, kFirstChunk);
  const double left = max_seconds_ * kMargin - decode_seconds_.value_or(0);
  if (left <= 0) return least;
  const double tokens = left / std::max(*token_seconds_, 1e-9);
  return tokens >= kNoLimit ? kNoLimit : std::max(least, static_cast<int32_t>(tokens));
}

}  // namespace infer
