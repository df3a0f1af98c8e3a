#include "tools/option_names.h"

#include <algorithm>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr char kOneDash = '.';  // follows the two dashes of a stored name with one dash

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> edits(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        edits[i][j] = i + j;
        continue;
      }
      edits[i][j] = std::min({edits[i - 1][j] + 1, edits[i][j - 1] + 1, edits[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits[i][j] = std::min(edits[i][j], edits[i - 2][j - 2] + 1);
    }
  }
  return edits[a.size()][b.size()];
}

}  // namespace

std::string stored_name(std::string_view typed) {
  const bool needs_mark = typed.size() > 2 && typed[0] == '-' && typed[1] != '-';
  return needs_mark ? concat("--", kOneDash, typed.substr(1)) : std::string(typed);
}

bool is_marked(std::string_view stored) {
  return stored.size() > 2 && stored.starts_with("--") && stored[2] == kOneDash;
}

std::vector<std::string> typed_names(const CLI::Option& option) {
  std::vector<std::string> one_dash, two_dashes;
  for (const std::string& letter : option.get_snames()) one_dash.push_back("-" + letter);
  for (const std::string& name : option.get_lnames()) {
    const std::string stored = "--" + name;
    if (is_marked(stored)) {
      one_dash.push_back("-" + name.substr(1));
    } else {
      two_dashes.push_back(stored);
    }
  }
  one_dash.insert(one_dash.end(), two_dashes.begin(), two_dashes.end());
  return one_dash;
}

std::string nearest_name(const std::string& typed, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // the table of edits grows with the square
  if (typed.size() > kLongest) return "";
  std::string nearest;
  // One error in four characters; more would suggest names that have nothing to do with what was typed.
  size_t fewest = std::max<size_t>(typed.size() / 4, 1) + 1;
  for (const std::string& name : known) {
    const size_t edits = edits_between(typed, name);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = name;
  }
  return nearest;
}

}  // namespace infer
