// The most recent prompts, to explain why a request found little in the prefix cache. Any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/text/vocabulary.h"

namespace infer {

class RecentPrompts {
 public:
  // Compares the prompt with those added so far under this salt. Returns the position at which the most similar one
  // first differs; nullopt if there is none, or if the whole prompt matches. Then adds the prompt, replacing the oldest
  // if there are too many.
  std::optional<size_t> add(std::span<const TokenId> prompt, const std::string& salt);

 private:
  static constexpr size_t kKept = 32;
  struct Entry {
    std::string salt;
    std::vector<TokenId> tokens;
  };
  std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace infer
