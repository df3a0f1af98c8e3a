#include "src/text/special_splitter.h"

#include <algorithm>
#include <bit>
#include <map>

#include "src/text/reasoning.h"
#include "src/text/special_tokens.h"

namespace infer {
namespace {

bool is_ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// One bit per byte of the text, set once a token covers it.
class TakenBytes {
 public:
  explicit TakenBytes(size_t n) : words_(n / 64 + 1) {}

  bool test(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void set(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) words_[i / 64] |= uint64_t{1} << (i % 64);
  }
  // The first taken byte in [begin, end), or end.
  size_t next(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; i = (i / 64 + 1) * 64) {
      const uint64_t word = words_[i / 64] >> (i % 64);
      if (word != 0) return std::min(end, i + static_cast<size_t>(std::countr_zero(word)));
    }
    return end;
  }

 private:
  std::vector<uint64_t> words_;
};

struct FoundToken {
  uint32_t begin, end;  // with the white space that belongs to the token
  TokenId token;
};

// One pass over a text.
struct Search {
  std::string_view text;
  const ByteTrie& tokens;
  const ByteTrie& harmless;  // tokens that may occur in plain ranges
  const std::vector<uint8_t>& attributes;
  std::span<const TextRange> plain;
  TakenBytes taken = TakenBytes(text.size());
  std::vector<FoundToken> found = {};

  // By position, without overlaps.
  std::vector<FoundToken> run();
  // The longest token at `at`, of at most `limit` bytes, that is allowed there.
  ByteTrie::Match longest_match(size_t at, size_t limit) const;
  void take(size_t begin, size_t end, TokenId token);
};

std::vector<FoundToken> Search::run() {
  // Candidates by length, one per position at a time: the longest token there that may still fit.
  struct Candidate {
    uint32_t begin;
    TokenId token;
  };
  std::map<size_t, std::vector<Candidate>> candidates;
  if (!tokens.empty()) {
    for (size_t at = 0; at < text.size(); ++at) {
      const ByteTrie::Match match = longest_match(at, text.size() - at);
      if (match.length > 0) candidates[match.length].push_back({static_cast<uint32_t>(at), match.value});
    }
  }
  while (!candidates.empty()) {
    const auto last = std::prev(candidates.end());
    const size_t length = last->first;
    std::vector<Candidate> batch = std::move(last->second);
    candidates.erase(last);
    std::sort(batch.begin(), batch.end(), [](const Candidate& a, const Candidate& b) { return a.begin < b.begin; });
    for (const Candidate& candidate : batch) {
      const size_t begin = candidate.begin, end = begin + length;
      if (const size_t free_end = taken.next(begin, end); free_end < end) {
        const ByteTrie::Match shorter = longest_match(begin, free_end - begin);
        if (shorter.length > 0) candidates[shorter.length].push_back({candidate.begin, shorter.value});
        continue;
      }
      take(begin, end, candidate.token);
    }
  }
  std::sort(found.begin(), found.end(), [](const FoundToken& a, const FoundToken& b) { return a.begin < b.begin; });
  return std::move(found);
}

ByteTrie::Match Search::longest_match(size_t at, size_t limit) const {
  if (plain.empty()) return tokens.longest_match(text, at, limit);
  const auto next =
      std::partition_point(plain.begin(), plain.end(), [&](const TextRange& range) { return range.end <= at; });
  const size_t room = next == plain.end() ? limit : next->begin <= at ? 0 : std::min(limit, next->begin - at);
  const ByteTrie::Match match = room > 0 ? tokens.longest_match(text, at, room) : ByteTrie::Match();
  if (room == limit) return match;
  const ByteTrie::Match other = harmless.longest_match(text, at, limit);
  return other.length > match.length ? other : match;
}

// Includes the white space on either side that the token absorbs.
void Search::take(size_t begin, size_t end, TokenId token) {
  const uint8_t attribute = attributes[static_cast<size_t>(token)];
  if (attribute & kAttrStripLeft) {
    while (begin > 0 && is_ascii_space(text[begin - 1]) && !taken.test(begin - 1)) --begin;
  }
  if (attribute & kAttrStripRight) {
    while (end < text.size() && is_ascii_space(text[end]) && !taken.test(end)) ++end;
  }
  taken.set(begin, end);
  found.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), token});
}

}  // namespace

SpecialSplitter::SpecialSplitter(const Vocabulary& vocabulary, const std::vector<uint8_t>& attributes)
    : attributes_(attributes) {
  ByteTrie::Entries all, user_defined, harmless;
  const auto is_reasoning_tag = [](std::string_view text) {
    return std::any_of(reasoning_tags().begin(), reasoning_tags().end(),
                       [&](const ReasoningTags& tags) { return text == tags.open || text == tags.close; });
  };
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const uint8_t attribute = attributes[id];
    const auto entry = std::pair<std::string_view, int32_t>(vocabulary.tokens[id].text, static_cast<int32_t>(id));
    if (attribute & (kAttrControl | kAttrUnknown | kAttrUserDefined)) all.push_back(entry);
    const bool hidden = attribute & (kAttrControl | kAttrUnknown);
    if (attribute & kAttrUserDefined && !hidden) {
      user_defined.push_back(entry);
      if (vocabulary.tokens[id].type != TokenType::kControl) harmless.push_back(entry);
    } else if (hidden && is_reasoning_tag(entry.first)) {
      harmless.push_back(entry);
    }
  }
  all_ = ByteTrie(std::move(all));
  user_defined_ = ByteTrie(std::move(user_defined));
  harmless_ = ByteTrie(std::move(harmless));
}

std::vector<SpecialSplitter::Part> SpecialSplitter::split(std::string_view text, bool parse_special,
                                                          std::span<const TextRange> plain) const {
  const std::span<const TextRange> limited = parse_special ? plain : std::span<const TextRange>();
  Search search{text, parse_special ? all_ : user_defined_, harmless_, attributes_, limited};
  std::vector<Part> parts;
  uint32_t done = 0;
  for (const FoundToken& token : search.run()) {
    if (token.begin > done) parts.push_back({done, token.begin, kNoToken});
    parts.push_back({token.begin, token.begin, token.token});
    done = token.end;
  }
  if (done < text.size()) parts.push_back({done, static_cast<uint32_t>(text.size()), kNoToken});
  return parts;
}

}  // namespace infer
