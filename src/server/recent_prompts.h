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
  // Of the prompts added so far with this salt, how far the one that agrees longest does: the position of the first
  // token that differs. nullopt when there is none, or when the whole prompt agrees. Then adds the prompt, in place of
  // the oldest when there are many.
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
