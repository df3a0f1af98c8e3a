#include "src/text/jinja/html.h"

#include "src/text/jinja/search.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

// The text without anything between `open` and `close`, delimiters included. An `open` without a `close` is kept.
Text without(std::string_view text, std::string_view open, std::string_view close, Heap& heap) {
  Text out(heap);
  size_t at = 0;
  for (;;) {
    heap.step();
    const size_t begin = find_first(heap, text, open, at);
    const size_t end = begin == kNotFound ? kNotFound : find_first(heap, text, close, begin);
    if (end == kNotFound) break;
    out += text.substr(at, begin - at);
    at = end + close.size();
  }
  out += text.substr(at);
  return out;
}

// Decodes the entity whose name begins after `&`: its character and length, or nullopt for an unknown entity.
std::optional<std::pair<uint32_t, size_t>> entity(std::string_view text) {
  struct Row {
    std::string_view name;
    uint32_t code;
  };
  constexpr Row kRows[] = {{"amp;", '&'},      {"lt;", '<'},     {"gt;", '>'},        {"quot;", '"'},
                           {"apos;", '\''},    {"nbsp;", 0xA0},  {"laquo;", 0xAB},    {"raquo;", 0xBB},
                           {"copy;", 0xA9},    {"reg;", 0xAE},   {"hellip;", 0x2026}, {"mdash;", 0x2014},
                           {"ndash;", 0x2013}, {"euro;", 0x20AC}};
  for (const Row& row : kRows) {
    if (text.starts_with(row.name)) return std::pair(row.code, row.name.size());
  }
  if (!text.starts_with('#')) return std::nullopt;
  const bool hex = text.size() > 1 && (text[1] | 0x20) == 'x';
  uint32_t code = 0;
  size_t i = hex ? 2 : 1;
  const size_t first = i;
  for (; i < text.size() && i < first + 8; ++i) {
    const char c = text[i], lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') code = code * (hex ? 16 : 10) + static_cast<uint32_t>(c - '0');
    else if (hex && lower >= 'a' && lower <= 'f') code = code * 16 + static_cast<uint32_t>(lower - 'a' + 10);
    else break;
  }
  if (i == first || i >= text.size() || text[i] != ';') return std::nullopt;
  return std::pair(code, i + 1);
}

}  // namespace

void append_escaped(std::string_view text, Text& out) {
  out.get_allocator().heap().scan(text.size() / 2);
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
}

void append_escaped(const Value& string, Text& out) {
  const size_t begin = out.size();
  append_escaped(string.text(), out);
  if (has_caller_text(string)) out.mark_from(begin);
}

void append_without_tags(std::string_view text, Text& out) {
  Heap& heap = out.get_allocator().heap();
  const Text bare = without(without(text, "<!--", "-->", heap), "<", ">", heap);
  const std::string_view trimmed = strip(bare, Side::kBoth);
  for (size_t at = 0, length = 0; at < trimmed.size(); at += length) {
    if (is_space(code_at(trimmed, at, length))) {
      if (out.empty() || out.back() != ' ') out += ' ';
      continue;
    }
    if (trimmed[at] == '&') {
      if (const auto found = entity(trimmed.substr(at + 1))) {
        std::string character;
        append_utf8(found->first, character);
        out += std::string_view(character);
        length = found->second + 1;
        continue;
      }
    }
    out += trimmed.substr(at, length);
  }
}

}  // namespace infer::jinja
