#include "src/text/jinja/word_wrap.h"

#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

using Codes = Vector<uint32_t>;

bool is_blank(uint32_t c) { return c == ' ' || (c >= 9 && c <= 13); }
bool is_word(uint32_t c) { return c == '_' || is_alphanumeric(c); }
bool is_letter(uint32_t c) { return is_word(c) && !is_decimal(c); }
bool is_word_or_punctuation(uint32_t c) {
  return is_word(c) || c == '!' || c == '"' || c == '\'' || c == '&' || c == '.' || c == ',' || c == '?';
}

struct Chunk {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

class Wrapper {
 public:
  Wrapper(Heap& heap, std::string_view line, const WrapOptions& options)
      : heap_(heap), options_(options), codes_(heap), chunks_(heap) {
    each_character(line, [&](uint32_t code, std::string_view) { codes_.push_back(code); });
    heap_.work(line.size() * 32);
  }

  // Appends the wrapped lines, separated by `line_end`.
  void wrap(std::string_view line_end, Text& out) {
    for (size_t at = 0; at < codes_.size();) {
      const size_t end = chunk_end(at);
      chunks_.push_back({at, end});
      at = end;
    }
    bool first = true;
    for (size_t i = 0; i < chunks_.size();) {
      Chunk line = next_line_of(i, first);
      if (line.size() == 0) continue;
      if (!first) out += line_end;
      first = false;
      std::string text;
      for (size_t k = line.begin; k < line.end; ++k) append_utf8(codes_[k], text);
      out += std::string_view(text);
    }
  }

 private:
  uint32_t at(size_t i) const { return i < codes_.size() ? codes_[i] : ' '; }
  size_t dashes(size_t i) const {
    size_t n = 0;
    while (i + n < codes_.size() && codes_[i + n] == '-') ++n;
    return n;
  }
  // A run of two or more dashes between words.
  bool dash_between_words(size_t i) const {
    if (i == 0 || !is_word_or_punctuation(codes_[i - 1])) return false;
    const size_t n = dashes(i);
    return n >= 2 && i + n < codes_.size() && is_word(codes_[i + n]);
  }

  size_t chunk_end(size_t begin) const {
    size_t i = begin;
    if (is_blank(codes_[i])) {
      while (i < codes_.size() && is_blank(codes_[i])) ++i;
      return i;
    }
    if (!options_.break_on_hyphens) {
      while (i < codes_.size() && !is_blank(codes_[i])) ++i;
      return i;
    }
    if (dash_between_words(i)) return i + dashes(i);
    // The shortest prefix after which the word may be broken.
    for (++i; i < codes_.size(); ++i) {
      if (is_blank(codes_[i])) return i;
      if (dash_between_words(i)) return i;
      if (codes_[i] == '-' && hyphen_breaks(i)) return i + 1;
    }
    return i;
  }

  // Whether the hyphen at `i` is between letters: two before it (or letter, hyphen, letter) and two after it (or
  // letter, hyphen, letter).
  bool hyphen_breaks(size_t i) const {
    const bool two = i >= 2 && is_letter(codes_[i - 1]) && is_letter(codes_[i - 2]);
    const bool hyphenated = i >= 3 && is_letter(codes_[i - 1]) && codes_[i - 2] == '-' && is_letter(codes_[i - 3]);
    if (!two && !hyphenated) return false;
    return is_letter(at(i + 1)) && i + 1 < codes_.size() &&
           (is_letter(at(i + 2)) || (at(i + 2) == '-' && is_letter(at(i + 3))));
  }

  bool blank(const Chunk& chunk) const { return chunk.size() == 0 || is_blank(codes_[chunk.begin]); }

  // The next line, starting at chunk `i`, which is moved past it.
  Chunk next_line_of(size_t& i, bool first) {
    const auto width = static_cast<size_t>(options_.width);
    if (!first && blank(chunks_[i])) ++i;
    if (i >= chunks_.size()) return {0, 0};
    const size_t begin = i;
    Chunk line{chunks_[i].begin, chunks_[i].begin};
    size_t last = line.begin;  // start of the line's last chunk
    while (i < chunks_.size() && line.size() + chunks_[i].size() <= width) {
      last = chunks_[i].begin;
      line.end = chunks_[i++].end;
    }
    if (i < chunks_.size() && chunks_[i].size() > width) {
      Chunk& word = chunks_[i];
      if (options_.break_long_words) {
        size_t taken = width - line.size();
        if (options_.break_on_hyphens && word.size() > taken) {
          // Break after the last hyphen that fits, unless only hyphens precede it.
          size_t hyphen = 0;
          for (size_t k = 1; k < taken; ++k) {
            if (codes_[word.begin + k] == '-') hyphen = k;
          }
          bool other = false;
          for (size_t k = 0; k < hyphen; ++k) other = other || codes_[word.begin + k] != '-';
          if (other) taken = hyphen + 1;
        }
        // There is no room for the word. In this case textwrap keeps the line's trailing white space.
        if (taken == 0) return line;
        last = word.begin;
        line.end = word.begin + taken;
        word.begin += taken;
      } else if (i == begin) {
        line.end = chunks_[i++].end;
        return line;
      }
    }
    if (line.size() > 0 && is_blank(codes_[last])) line.end = last;
    return line;
  }

  Heap& heap_;
  const WrapOptions& options_;
  Codes codes_;
  Vector<Chunk> chunks_;
};

}  // namespace

Text word_wrap(Heap& heap, std::string_view text, std::string_view line_end, const WrapOptions& options) {
  if (options.width <= 0) fail(concat("invalid width ", options.width, " (must be > 0)"));
  Text out(heap);
  bool first = true;
  each_line(text, [&](std::string_view line, std::string_view) {
    if (!first) out += line_end;
    first = false;
    heap.step();
    Wrapper(heap, line, options).wrap(line_end, out);
  });
  return out;
}

}  // namespace infer::jinja
