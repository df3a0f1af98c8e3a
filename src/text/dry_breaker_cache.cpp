#include "src/text/dry_breaker_cache.h"

#include <algorithm>

namespace infer {

std::shared_ptr<const DryBreakers> DryBreakerCache::build(const std::vector<std::string>& strings) const {
  const auto sequences = dry_breaker_sequences(
      strings, static_cast<size_t>(tokenizer_.n_tokens()),
      [&](TokenId token) { return std::string(tokenizer_.piece(token, true)); },
      [&](const std::string& text) { return tokenizer_.encode(text, false, false); });
  return std::make_shared<const DryBreakers>(sequences);
}

void DryBreakerCache::evict_locked() {
  static const std::vector<std::string> kDefault = SamplingParams().dry_sequence_breakers;
  const auto is_default = [](const Entry& entry) { return entry.strings == kDefault; };
  const size_t most = kKept + static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), is_default));
  if (entries_.size() <= most) return;
  auto last = std::prev(entries_.end());
  if (is_default(*last)) --last;
  entries_.erase(last);
}

std::shared_ptr<const DryBreakers> DryBreakerCache::get(const std::vector<std::string>& strings) {
  std::promise<std::shared_ptr<const DryBreakers>> promise;
  {
    std::unique_lock lock(mutex_);
    const auto known =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.strings == strings; });
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
      const Result result = known->result;
      lock.unlock();
      return result.get();
    }
    entries_.push_front({strings, promise.get_future().share()});
    ++builds_;
    evict_locked();
  }
  try {
    const std::shared_ptr<const DryBreakers> breakers = build(strings);
    promise.set_value(breakers);
    return breakers;
  } catch (...) {
    promise.set_exception(std::current_exception());
    const std::lock_guard lock(mutex_);
    entries_.remove_if([&](const Entry& entry) { return entry.strings == strings; });
    throw;
  }
}

int64_t DryBreakerCache::builds() const {
  const std::lock_guard lock(mutex_);
  return builds_;
}

}  // namespace infer
