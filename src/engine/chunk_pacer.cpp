#include "src/engine/chunk_pacer.h"

#include <algorithm>

namespace infer {
namespace {

constexpr double kWeight = 0.25;  // of a new measurement in the moving average
constexpr double kRiseWeight = 0.5;
constexpr int32_t kFirstChunk = 8;  // before the first measurement
constexpr int32_t kNoLimit = INT32_MAX;

// The allowance for overruns: the second largest of the last hundred, since 1 step in 100 may exceed the bound. Capped,
// because a machine whose every hundredth step takes twice as long should not run at half its speed.
constexpr size_t kOverruns = 100;
constexpr double kLeastOverrun = 1.4, kFirstOverrun = 1.5, kMostOverrun = 1.6;

}  // namespace

double ChunkPacer::overrun() const {
  if (overruns_.size() < kOverruns) return kFirstOverrun;
  double longest = 0, second = 0;
  for (const double x : overruns_) {
    second = std::max(second, std::min(x, longest));
    longest = std::max(longest, x);
  }
  return std::clamp(second, kLeastOverrun, kMostOverrun);
}

void ChunkPacer::record(const StepRecord& step) {
  if (step.prompt_tokens == 0) {
    decode_seconds_ = decode_seconds_ ? *decode_seconds_ + kWeight * (step.seconds - *decode_seconds_) : step.seconds;
    return;
  }
  const double decode = step.decode_tokens > 0 ? decode_seconds_.value_or(0) : 0;
  if (step.decode_tokens > 0 && token_seconds_) {
    overruns_.push_back(step.seconds / std::max(decode + *token_seconds_ * step.prompt_tokens, 1e-9));
    if (overruns_.size() > kOverruns) overruns_.pop_front();
  }
  const double token = std::max(0.0, step.seconds - decode) / step.prompt_tokens;
  // A rise gets more weight than a fall, because overlong steps are what must be avoided.
  if (!token_seconds_) token_seconds_ = token;
  else *token_seconds_ += (token > *token_seconds_ ? kRiseWeight : kWeight) * (token - *token_seconds_);
}

int32_t ChunkPacer::prompt_budget(int n_decodes) const {
  if (max_seconds_ <= 0 || n_decodes == 0) return kNoLimit;
  const int32_t least = std::max(1, n_decodes / 4);
  if (!token_seconds_) return std::max(least, kFirstChunk);
  const double left = max_seconds_ / overrun() - decode_seconds_.value_or(0);
  if (left <= 0) return least;
  const double tokens = left / std::max(*token_seconds_, 1e-9);
  return tokens >= kNoLimit ? kNoLimit : std::max(least, static_cast<int32_t>(tokens));
}

}  // namespace infer
