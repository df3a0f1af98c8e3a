// How byte-level BPE cuts text into words before merging. `tokenizer.ggml.pre` names one entry of a fixed table; an
// entry is a list of steps, each of which cuts the pieces that the step before left. Patterns are fixed, compiled once
// per PreTokenizer with PCRE2's JIT, and none ever comes from a file or a client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace infer {

struct PreTokenizerStep {
  enum class Kind {
    kMatches,     // every match is a piece, and so is every stretch between matches
    kDigitGroups  // likewise, and each match is then cut into groups of three characters, counted from its end
  };
  const char* pattern;  // PCRE2 syntax with Unicode properties; \s and \S mean Unicode White_Space
  Kind kind = Kind::kMatches;
};

struct PreTokenizerRule {
  std::vector<PreTokenizerStep> steps;
  bool byte_encode = true;     // false: symbols are characters, unknown ones fall back to <0xXX> tokens
  bool newline_words = false;  // a word of line feeds only that is a token is not built by merging
};

// Defaults of a vocabulary that come with the name; the file's own keys override them.
enum PreTokenizerDefault : uint32_t {
  kIgnoreMerges = 1,  // a word that is a token as a whole is not built by merging
  kAddBos = 2,
  kForceBos = 4,  // whatever the file says
  kNoDefaultBos = 8,
  kAddSep = 16,
  kKeepSpaces = 32,    // text is not cleaned of spaces before punctuation
  kEscapeBlanks = 64,  // blanks are U+2581 in the tokens
};

struct PreTokenizerEntry {
  std::string_view name;
  const PreTokenizerRule* rule;
  uint32_t defaults = 0;  // of PreTokenizerDefault
};

std::span<const PreTokenizerEntry> pre_tokenizer_table();
// nullptr when the name is unknown. "" means "default".
const PreTokenizerEntry* find_pre_tokenizer(std::string_view name);

// A compiled rule. Immutable; split() may be called from any number of threads.
class PreTokenizer {
 public:
  explicit PreTokenizer(const PreTokenizerRule& rule);
  ~PreTokenizer();

  struct Word {
    uint32_t begin, end;  // bytes
  };
  // Words cover `text` without gaps. Ill-formed UTF-8 is never shown to the patterns: each ill-formed part is a word.
  // REQUIRES text shorter than 2^31 bytes.
  std::vector<Word> split(std::string_view text) const;

 private:
  class Pattern;
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace infer
