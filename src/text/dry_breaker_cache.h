// Caches DRY's sequence breakers as tokens. Finding them takes a pass over the whole vocabulary, so each list of
// strings is converted once and shared. The least recently used lists are evicted, except the default one. Thread-safe;
// concurrent requests for the same list wait for one build.
#pragma once

#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/text/sampler_dry.h"
#include "src/text/tokenizer.h"

namespace infer {

class DryBreakerCache {
 public:
  // The tokenizer must outlive the cache.
  explicit DryBreakerCache(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Throws what Tokenizer::encode throws for one of the strings; the next call retries.
  std::shared_ptr<const DryBreakers> get(const std::vector<std::string>& strings);
  int64_t builds() const;

  static constexpr size_t kKept = 16;  // lists besides the default one

 private:
  using Result = std::shared_future<std::shared_ptr<const DryBreakers>>;
  struct Entry {
    std::vector<std::string> strings;
    Result result;
  };
  std::shared_ptr<const DryBreakers> build(const std::vector<std::string>& strings) const;
  void evict_locked();

  const Tokenizer& tokenizer_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  int64_t builds_ = 0;
};

}  // namespace infer
