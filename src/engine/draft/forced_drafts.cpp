#include "src/engine/draft/forced_drafts.h"

#include <algorithm>
#include <string>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr size_t kMostBytes = 128;  // looked ahead

}  // namespace

std::span<const TokenId> ForcedDrafts::find(const Sequence& s, int most) {
  Found& found = found_[s.id()];
  if (!goes_on(found, s)) {
    found.at = s.known();
    found.tokens.clear();
    const ForcedText forced = s.sampler().forced(kMostBytes);
    if (forced.token != kNoToken) found.tokens.push_back(forced.token);
    const std::vector<TokenId> spelled = spell(forced.bytes);
    found.tokens.insert(found.tokens.end(), spelled.begin(), spelled.end());
  }
  return std::span<const TokenId>(found.tokens).first(std::min(found.tokens.size(), static_cast<size_t>(most)));
}

bool ForcedDrafts::goes_on(Found& found, const Sequence& s) {
  const int64_t n_new = s.known() - found.at;
  if (n_new < 0 || n_new >= std::ssize(found.tokens)) return false;
  const std::span<const TokenId> written = s.known_tokens().last(static_cast<size_t>(n_new));
  if (!std::equal(written.begin(), written.end(), found.tokens.begin())) return false;
  found.tokens.erase(found.tokens.begin(), found.tokens.begin() + n_new);
  found.at = s.known();
  return true;
}

std::vector<TokenId> ForcedDrafts::spell(std::string_view text) const {
  if (text.empty()) return {};
  try {
    std::vector<TokenId> tokens = tokenizer_.encode(text, false, false);
    if (tokenizer_.decode(tokens, false) == text) return tokens;
    // Some vocabularies put a space before a text, but none within one.
    const std::string line = concat("\n", text);
    tokens = tokenizer_.encode(line, false, false);
    for (size_t n = 1; n < tokens.size(); ++n) {
      if (tokenizer_.decode(std::span(tokens).subspan(n), false) != text) continue;
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
      return tokens;
    }
  } catch (const Error&) {
    // A character that the vocabulary cannot express.
  }
  return {};
}

}  // namespace infer
