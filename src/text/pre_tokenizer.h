// Splits text into words before byte-level BPE merges. `tokenizer.ggml.pre` names an entry of a fixed table; an entry
// is a list of steps, each of which splits the pieces left by the previous one. Patterns are fixed and compiled once
// per PreTokenizer with PCRE2's JIT; none comes from a file or a client.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace infer {

struct PreTokenizerStep {
  enum class Kind {
    kMatches,     // every match is a piece, and so is the text between matches
    kDigitGroups  // the same, but each match is then split into groups of three characters, counted from its end
  };
  const char* pattern;  // PCRE2 syntax with Unicode properties; \s and \S mean Unicode White_Space
  Kind kind = Kind::kMatches;
};

struct PreTokenizerRule {
  std::vector<PreTokenizerStep> steps;
  bool byte_encode = true;     // false: symbols are characters; unknown ones fall back to <0xXX> tokens
  bool newline_words = false;  // a token that consists only of line feeds is used as a whole, without merging
};

// The vocabulary defaults implied by the name; the file's own keys override them.
enum PreTokenizerDefault : uint32_t {
  kIgnoreMerges = 1,  // a word that is itself a token is used as a whole, without merging
  kAddBos = 2,
  kForceBos = 4,  // overrides the file
  kNoDefaultBos = 8,
  kAddSep = 16,
  kKeepSpaces = 32,    // spaces before punctuation are not removed from text
  kEscapeBlanks = 64,  // spaces are U+2581 in the tokens
};

struct PreTokenizerEntry {
  std::string_view name;
  const PreTokenizerRule* rule;
  uint32_t defaults = 0;  // combination of PreTokenizerDefault
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
  // Words cover `text` without gaps. Patterns never see ill-formed UTF-8: each ill-formed part is a word. REQUIRES:
  // text is shorter than 2^31 bytes.
  std::vector<Word> split(std::string_view text) const;

 private:
  class Pattern;
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace infer
