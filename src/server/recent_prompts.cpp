#include "src/server/recent_prompts.h"

#include <algorithm>

namespace infer {

std::optional<size_t> RecentPrompts::add(std::span<const TokenId> prompt, const std::string& salt) {
  const std::lock_guard lock(mutex_);
  std::optional<size_t> longest;
  for (const Entry& entry : entries_) {
    if (entry.salt != salt) continue;
    const auto end = std::mismatch(prompt.begin(), prompt.end(), entry.tokens.begin(), entry.tokens.end()).first;
    longest = std::max(longest.value_or(0), static_cast<size_t>(end - prompt.begin()));
  }
  if (entries_.size() == kKept) entries_.pop_front();
  entries_.push_back({salt, {prompt.begin(), prompt.end()}});
  return longest && *longest < prompt.size() ? longest : std::nullopt;
}

}  // namespace infer
