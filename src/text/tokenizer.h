// Text to token ids and back, for one vocabulary. Owns the vocabulary. Immutable after construction: every method is
// const and may be called from any number of threads.
//
// Any bytes may be encoded. Ill-formed UTF-8 never throws: byte-level vocabularies keep the bytes, the others use byte
// or unknown tokens or leave them out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/rendered_text.h"
#include "src/text/vocabulary.h"

namespace infer {

class Tokenizer {
 public:
  // Throws Error(kUnsupported) for a pre-tokenizer it does not know and Error(kInvalidFile) for a vocabulary that is
  // inconsistent: empty, with duplicate tokens, with special ids out of range.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // `add_special`: put begin, end and separator tokens where the vocabulary asks for them. `parse_special`: control
  // tokens written in the text are recognised, except in the `plain` ranges (ascending, apart from each other);
  // user-defined tokens always are. Without control tokens in them the ranges change nothing.
  // Throws Error(kInvalidArgument) for texts of 1 GiB or more, Error(kUnsupported) for a character that the
  // vocabulary cannot express at all.
  std::vector<TokenId> encode(std::string_view text, bool add_special, bool parse_special,
                              std::span<const TextRange> plain = {}) const;

  // The bytes a token stands for, not always whole characters; valid as long as the tokenizer. Control and unknown
  // tokens are "" unless `show_special`. REQUIRES 0 <= token < n_tokens().
  std::string_view piece(TokenId token, bool show_special) const;
  // The pieces one after the other; ids out of range throw Error(kInvalidArgument).
  std::string decode(std::span<const TokenId> tokens, bool show_special) const;

  TokenId n_tokens() const;
  size_t max_piece_bytes() const;             // of the longest piece
  TokenId find(std::string_view text) const;  // by the text as stored; kNoToken when there is none
  bool is_eog(TokenId token) const;           // ends generation
  bool is_control(TokenId token) const;       // control or unknown: hidden from plain text
  const std::vector<TokenId>& eog() const;    // ascending
  // With the ids that were recognised by their texts filled in.
  const Vocabulary& vocabulary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace infer
