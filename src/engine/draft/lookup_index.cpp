#include "src/engine/draft/lookup_index.h"

#include <algorithm>
#include <functional>

#include "ggml-like/error.h"

namespace infer {
namespace {

// The length of the longest common suffix.
int agreement(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t most = std::min({a.size(), b.size(), static_cast<size_t>(LookupIndex::kMostCompared)});
  size_t n = 0;
  while (n < most && a[a.size() - 1 - n] == b[b.size() - 1 - n]) ++n;
  return static_cast<int>(n);
}

}  // namespace

LookupIndex::TextId LookupIndex::open(std::string salt, bool shared) {
  texts_[++last_] = {std::move(salt), shared, {}, {}};
  return last_;
}

// The hash of the n-gram that ends at token `at`, limited to texts that may find each other.
uint64_t LookupIndex::key(TextId id, const Text& text, size_t at) {
  uint64_t hash = text.shared ? std::hash<std::string>()(text.salt) : id * 0x9e3779b97f4a7c15ull;
  for (size_t i = at + 1 - kGram; i <= at; ++i) {
    hash = (hash ^ static_cast<uint32_t>(text.tokens[i])) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  return hash;
}

const LookupIndex::Text* LookupIndex::find_text(const Place& place) const {
  const auto found = texts_.find(place.text);
  return found == texts_.end() ? nullptr : &found->second;
}

void LookupIndex::append(TextId id, std::span<const TokenId> tokens) {
  Text& text = texts_.at(id);
  for (const TokenId token : tokens) {
    const size_t at = text.tokens.size();
    text.tokens.push_back(token);
    text.earlier.emplace_back();
    if (at + 1 < kGram) continue;
    Place& latest = latest_[key(id, text, at)];
    text.earlier.back() = latest;
    latest = {id, at};
  }
  n_tokens_ += static_cast<int64_t>(tokens.size());
  while (n_tokens_ > max_tokens_ && !closed_.empty()) {
    const TextId oldest = closed_.front();
    closed_.pop_front();
    forget(oldest);
  }
}

void LookupIndex::close(TextId id) {
  if (texts_.at(id).shared) {
    closed_.push_back(id);
  } else {
    forget(id);
  }
}

void LookupIndex::forget(TextId id) {
  const Text& text = texts_.at(id);
  for (size_t at = kGram - 1; at < text.tokens.size(); ++at) {
    const auto found = latest_.find(key(id, text, at));
    if (found != latest_.end() && found->second.text == id) latest_.erase(found);
  }
  n_tokens_ -= static_cast<int64_t>(text.tokens.size());
  texts_.erase(id);
}

LookupIndex::Match LookupIndex::find(TextId id, int most) const {
  const Text& text = texts_.at(id);
  if (most <= 0 || text.tokens.size() < kGram) return {};
  // The text's last n-gram is also the latest occurrence, so start from the one before.
  Place place = text.earlier.back(), best;
  int longest = kGram - 1;
  for (int i = 0; i < kMostPlaces && longest < kMostCompared; ++i) {
    const Text* other = find_text(place);
    if (!other) break;
    const bool visible = place.text == id || (text.shared && other->shared && other->salt == text.salt);
    const int n = agreement(text.tokens, std::span(other->tokens).first(place.at + 1));
    if (visible && n > longest && place.at + 1 < other->tokens.size()) {
      longest = n;
      best = place;
    }
    place = other->earlier[place.at];
  }
  const Text* source = find_text(best);
  if (!source) return {};
  Match match{longest, {}};
  // Continues past the end of this text with the tokens just found.
  for (size_t at = best.at + 1; static_cast<int>(match.tokens.size()) < most; ++at) {
    const size_t n = source->tokens.size();
    if (at >= n && best.text != id) break;
    match.tokens.push_back(at < n ? source->tokens[at] : match.tokens[at - n]);
  }
  return match;
}

}  // namespace infer
