#include "src/text/sampler_dry.h"

#include <algorithm>
#include <set>

#include "src/text/ieee_math.h"

namespace infer {
namespace {

constexpr size_t kMaxTail = 20;
constexpr double kLogLargestFloat = 88.7228391;  // caps the exponent, as in llama.cpp

// lengths[k]: how many tokens at the end of `text` repeat the tokens that end k positions earlier (the Z-function of
// the reversed text). Linear time.
std::vector<int32_t> suffix_repeats(std::span<const TokenId> text) {
  const size_t n = text.size();
  auto from_end = [&](size_t i) { return text[n - 1 - i]; };
  std::vector<int32_t> lengths(n, 0);
  size_t left = 0, right = 0;  // the match that reaches furthest: [left, right) equals [0, right - left)
  for (size_t k = 1; k < n; ++k) {
    size_t length = k < right ? std::min<size_t>(lengths[k - left], right - k) : 0;
    while (k + length < n && from_end(length) == from_end(k + length)) ++length;
    lengths[k] = static_cast<int32_t>(length);
    if (k + length > right) {
      left = k;
      right = k + length;
    }
  }
  return lengths;
}

}  // namespace

DryBreakers::DryBreakers(std::span<const std::vector<TokenId>> sequences) {
  for (const auto& sequence : sequences) {
    if (sequence.empty()) continue;
    tails_[sequence[0]].emplace_back(sequence.begin() + 1, sequence.end());
    ++count_;
  }
}

bool DryBreakers::is_single_token(TokenId token) const {
  const auto found = tails_.find(token);
  if (found == tails_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [](const auto& tail) { return tail.empty(); });
}

size_t DryBreakers::tokens_since_last(std::span<const TokenId> text) const {
  for (size_t back = 0; back < text.size(); ++back) {
    const auto found = tails_.find(text[text.size() - 1 - back]);
    if (found == tails_.end()) continue;
    const auto after = text.last(back);
    size_t longest = 0;
    bool matched = false;
    for (const auto& tail : found->second) {
      if (tail.size() > back || !std::equal(tail.begin(), tail.end(), after.begin())) continue;
      longest = std::max(longest, tail.size());
      matched = true;
    }
    if (matched) return back - longest;
  }
  return text.size();
}

std::vector<std::vector<TokenId>> dry_breaker_sequences(
    std::span<const std::string> strings, size_t n_vocab, const std::function<std::string(TokenId)>& piece,
    const std::function<std::vector<TokenId>(const std::string&)>& encode) {
  std::vector<std::vector<TokenId>> sequences;
  std::set<std::vector<TokenId>> seen;
  auto add = [&](std::vector<TokenId> sequence) {
    if (seen.insert(sequence).second) sequences.push_back(std::move(sequence));
  };
  // Each remainder is encoded once, instead of once per token that could precede it.
  std::map<std::string, std::vector<TokenId>> encoded;
  auto tail_of = [&](const std::string& rest) -> const std::vector<TokenId>& {
    const auto [entry, fresh] = encoded.try_emplace(rest);
    if (fresh) {
      entry->second = encode(rest);
      if (entry->second.size() > kMaxTail) entry->second.resize(kMaxTail);
    }
    return entry->second;
  };
  for (size_t id = 0; id < n_vocab; ++id) {
    const TokenId token = static_cast<TokenId>(id);
    const std::string text = piece(token);
    for (const std::string& breaker : strings) {
      if (breaker.empty()) continue;
      if (text.find(breaker) != std::string::npos) {
        add({token});
        continue;
      }
      // The token ends with the first `n` bytes of the breaker, so the rest must follow.
      for (size_t n = std::min(text.size(), breaker.size() - 1); n > 0; --n) {
        if (text.compare(text.size() - n, n, breaker, 0, n) != 0) continue;
        std::vector<TokenId> sequence = {token};
        const auto& tail = tail_of(breaker.substr(n));
        sequence.insert(sequence.end(), tail.begin(), tail.end());
        add(std::move(sequence));
      }
    }
  }
  return sequences;
}

std::vector<DryPenalty> dry_penalties(const SamplingParams& params, const DryBreakers& breakers,
                                      std::span<const TokenId> history) {
  std::vector<DryPenalty> penalties;
  if (!params.has_dry()) return penalties;
  const size_t window = params.dry_penalty_last_n < 0
                            ? history.size()
                            : std::min<size_t>(history.size(), static_cast<size_t>(params.dry_penalty_last_n));
  const auto text = history.last(window);
  const int64_t allowed = params.dry_allowed_length;
  if (static_cast<int64_t>(text.size()) <= allowed) return penalties;
  const int64_t limit = static_cast<int64_t>(breakers.tokens_since_last(text));
  if (limit < allowed) return penalties;

  const std::vector<int32_t> repeats = suffix_repeats(text);
  std::map<TokenId, int64_t> longest;  // token that would continue a repetition -> length of that repetition
  for (size_t k = 1; k < text.size(); ++k) {
    const int64_t length = std::min<int64_t>(repeats[k], limit);
    if (length < allowed) continue;
    int64_t& known = longest.try_emplace(text[text.size() - k], -1).first->second;
    known = std::max(known, length);
  }
  const int64_t max_exponent =
      params.dry_base > 1.000001f ? static_cast<int64_t>(kLogLargestFloat / ieee_log(params.dry_base)) : 0;
  for (const auto& [token, length] : longest) {
    if (breakers.is_single_token(token)) continue;
    int64_t exponent = length - allowed;
    if (max_exponent > 0) exponent = std::min(exponent, max_exponent);
    // The product cannot overflow a double: with a base near the largest float, max_exponent is 1; with a base of 1,
    // the power is 1.
    const double penalty = static_cast<double>(params.dry_multiplier) * ieee_power(params.dry_base, exponent);
    penalties.push_back({token, static_cast<float>(std::min(penalty, 3.0e38))});
  }
  return penalties;
}

}  // namespace infer
