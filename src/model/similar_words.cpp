#include "src/model/similar_words.h"

#include <algorithm>
#include <numeric>

namespace infer {
namespace {

// The Levenshtein distance, one row of the table at a time.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] != b[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string_view> similar_words(std::string_view word, std::span<const std::string_view> known) {
  constexpr size_t kMost = 5, kMostChanges = 3, kLongest = 256;
  struct Match {
    std::string_view word;
    size_t distance;
  };
  std::vector<Match> matches;
  for (const std::string_view other : known) {
    if (word.size() > kLongest) break;
    const size_t changes = distance(word, other);
    if (changes <= kMostChanges && 2 * changes < std::max(word.size(), other.size()))
      matches.push_back({other, changes});
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.distance < b.distance; });
  std::vector<std::string_view> words;
  for (size_t i = 0; i < std::min(kMost, matches.size()); ++i) words.push_back(matches[i].word);
  return words;
}

}  // namespace infer
