#include "src/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdlib>
#include <string>

#include "ggml-like/error.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

// PCRE2's \s includes U+180E, which Unicode removed from White_Space.
constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr uint32_t kMatchLimit = 100'000'000;
constexpr size_t kJitStackBytes = 1 << 20;

std::string expand_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's' && in_class) out.append(kWhiteSpace);
      else if (next == 's') out.append("[").append(kWhiteSpace).append("]");
      else if (next == 'S' && !in_class) out.append("[^").append(kWhiteSpace).append("]");
      else out.append({c, next});
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

struct MatchData {
  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack = nullptr;

  MatchData() : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
    if (!data || !context) {
      release();
      throw Error(ErrorCode::kOutOfMemory, "[tokenizer] no memory for pattern matching");
    }
    pcre2_set_match_limit(context, kMatchLimit);
  }
  ~MatchData() { release(); }
  MatchData(const MatchData&) = delete;
  MatchData& operator=(const MatchData&) = delete;

  // Returns true if a stack larger than the default 32 KB is now in place.
  bool enlarge_stack() {
    if (stack) return false;
    stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
    if (!stack) return false;
    pcre2_jit_stack_assign(context, nullptr, stack);
    return true;
  }

 private:
  void release() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

}  // namespace

class PreTokenizer::Pattern {
 public:
  explicit Pattern(const PreTokenizerStep& step) : kind_(step.kind) {
    const std::string pattern = expand_white_space(step.pattern);
    int code = 0;
    PCRE2_SIZE offset = 0;
    code_ = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &code,
                          &offset, nullptr);
    CHECK_INTERNAL(code_ != nullptr);              // the patterns are part of the program
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);  // without a JIT the interpreter gives the same matches
  }
  ~Pattern() { pcre2_code_free(code_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // Splits text[word.begin, word.end), which is valid UTF-8, and appends the pieces.
  void cut(std::string_view text, Word word, MatchData& match, std::vector<Word>& out) const {
    const std::string_view subject = text.substr(word.begin, word.end - word.begin);
    size_t done = 0, from = 0;
    while (from < subject.size()) {
      const auto [begin, end] = find(subject, from, match);
      if (begin == std::string_view::npos) break;
      if (begin == end) {  // an empty match splits nothing
        from = end + decode_utf8(subject, end).length;
        continue;
      }
      if (begin > done) out.push_back(word_at(word, done, begin));
      if (kind_ == PreTokenizerStep::Kind::kDigitGroups) cut_groups(subject, word, begin, end, out);
      else out.push_back(word_at(word, begin, end));
      done = from = end;
    }
    if (done < subject.size()) out.push_back(word_at(word, done, subject.size()));
  }

 private:
  static Word word_at(Word base, size_t begin, size_t end) {
    return {base.begin + static_cast<uint32_t>(begin), base.begin + static_cast<uint32_t>(end)};
  }

  static void cut_groups(std::string_view subject, Word base, size_t begin, size_t end, std::vector<Word>& out) {
    size_t left = 0;  // characters
    for (size_t at = begin; at < end; at += decode_utf8(subject, at).length) ++left;
    size_t group = begin;
    for (size_t at = begin; at < end;) {
      at += decode_utf8(subject, at).length;
      if (--left % 3 == 0) {
        out.push_back(word_at(base, group, at));
        group = at;
      }
    }
  }

  std::pair<size_t, size_t> find(std::string_view subject, size_t from, MatchData& match) const {
    const auto* data = reinterpret_cast<PCRE2_SPTR>(subject.data());
    uint32_t options = PCRE2_NO_UTF_CHECK;
    for (;;) {
      const int rc = pcre2_match(code_, data, subject.size(), from, options, match.data, match.context);
      if (rc == PCRE2_ERROR_NOMATCH) return {std::string_view::npos, 0};
      if (rc >= 0) {
        const PCRE2_SIZE* found = pcre2_get_ovector_pointer(match.data);
        return {found[0], found[1]};
      }
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT && match.enlarge_stack()) continue;
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !(options & PCRE2_NO_JIT)) {
        options |= PCRE2_NO_JIT;
        continue;
      }
      throw Error(ErrorCode::kInvalidArgument,
                  concat("[tokenizer] text is too complex for the pre-tokenizer pattern (PCRE2 error ", rc, ")"));
    }
  }

  pcre2_code* code_;
  PreTokenizerStep::Kind kind_;
};

PreTokenizer::PreTokenizer(const PreTokenizerRule& rule) {
  for (const PreTokenizerStep& step : rule.steps) patterns_.push_back(std::make_unique<Pattern>(step));
}

PreTokenizer::~PreTokenizer() = default;

std::vector<PreTokenizer::Word> PreTokenizer::split(std::string_view text) const {
  MatchData match;
  std::vector<Word> words, pieces, next;
  const auto split_valid = [&](size_t begin, size_t end) {
    if (begin == end) return;
    pieces.assign(1, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
    for (const auto& pattern : patterns_) {
      next.clear();
      for (const Word& piece : pieces) pattern->cut(text, piece, match, next);
      pieces.swap(next);
    }
    words.insert(words.end(), pieces.begin(), pieces.end());
  };
  size_t valid_from = 0, at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid) {
      split_valid(valid_from, at);
      words.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + c.length)});
      valid_from = at + c.length;
    }
    at += c.length;
  }
  split_valid(valid_from, text.size());
  return words;
}

}  // namespace infer
