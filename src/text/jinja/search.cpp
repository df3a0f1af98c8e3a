#include "src/text/jinja/search.h"

#include <string.h>

namespace infer::jinja {

size_t find_first(Heap& heap, std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return kNotFound;
  if (part.empty()) return from;
  // memmem uses the two-way algorithm: linear time, no allocation.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  const size_t at = found ? static_cast<size_t>(static_cast<const char*>(found) - text.data()) : kNotFound;
  heap.work(((found ? at - from : text.size() - from) + part.size()) * 8);
  return at;
}

// Knuth-Morris-Pratt, from the end.
size_t find_last(Heap& heap, std::string_view text, std::string_view part) {
  const size_t n = part.size();
  if (n == 0) return text.size();
  if (n > text.size()) return kNotFound;
  heap.work((text.size() + n) * 8);
  const auto from_end = [](std::string_view s, size_t i) { return s[s.size() - 1 - i]; };
  Vector<size_t> border(n, 0, heap);
  for (size_t i = 1, k = 0; i < n; ++i) {
    while (k > 0 && from_end(part, i) != from_end(part, k)) k = border[k - 1];
    if (from_end(part, i) == from_end(part, k)) ++k;
    border[i] = k;
  }
  for (size_t i = 0, k = 0; i < text.size(); ++i) {
    while (k > 0 && from_end(text, i) != from_end(part, k)) k = border[k - 1];
    if (from_end(text, i) == from_end(part, k)) ++k;
    if (k == n) return text.size() - 1 - i;
  }
  return kNotFound;
}

}  // namespace infer::jinja
