// Converts text to token ids and back, for one vocabulary, which it owns. Immutable after construction: every method is
// const and may be called from any number of threads.
//
// Any bytes can be encoded. Ill-formed UTF-8 never throws: byte-level vocabularies keep the bytes; the others use byte
// or unknown tokens, or drop them.
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
  // Throws Error(kUnsupported) for an unknown pre-tokenizer, and Error(kInvalidFile) for an inconsistent vocabulary:
  // empty, with duplicate tokens, or with special ids out of range.
  explicit Tokenizer(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // `add_special`: add begin, end and separator tokens where the vocabulary asks for them. `parse_special`:
  // recognise control tokens in the text, except in the `plain` ranges (ascending, with gaps between).
  // User-defined tokens are always recognised. Ranges without control tokens have no effect. Throws
  // Error(kInvalidArgument) for texts of 1 GiB or more, and Error(kUnsupported) for a character that the
  // vocabulary cannot express.
  std::vector<TokenId> encode(std::string_view text, bool add_special, bool parse_special,
                              std::span<const TextRange> plain = {}) const;

  // The bytes a token stands for, not always whole characters; valid as long as the tokenizer. "" for control and
  // unknown tokens unless `show_special`. REQUIRES: 0 <= token < n_tokens().
  std::string_view piece(TokenId token, bool show_special) const;
  // The concatenated pieces; throws Error(kInvalidArgument) for ids out of range.
  std::string decode(std::span<const TokenId> tokens, bool show_special) const;

  TokenId n_tokens() const;
  size_t max_piece_bytes() const;             // of the longest piece
  TokenId find(std::string_view text) const;  // by the text as stored; kNoToken if there is none
  bool is_eog(TokenId token) const;           // ends generation
  bool is_control(TokenId token) const;       // control or unknown: hidden from plain text
  const std::vector<TokenId>& eog() const;    // ascending
  // Includes the ids that were recognised by their texts.
  const Vocabulary& vocabulary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace infer
