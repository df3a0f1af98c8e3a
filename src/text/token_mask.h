// Restricts which tokens a sequence may sample, for example to a grammar. A mask belongs to one sequence and follows
// its generated tokens through accept() and rollback(). Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/text/vocabulary.h"

namespace infer {

// One bit per token id, lowest bit first; set: allowed. Empty: all tokens are allowed.
using AllowedTokens = std::span<const uint64_t>;

inline bool includes(AllowedTokens allowed, TokenId token) {
  const auto id = static_cast<size_t>(token);
  return allowed.empty() || (id / 64 < allowed.size() && (allowed[id / 64] >> (id % 64) & 1) != 0);
}

// What is known of the text to come: a token unless it is kNoToken, then bytes.
struct ForcedText {
  TokenId token = kNoToken;
  std::string bytes;
};

class TokenMask {
 public:
  virtual ~TokenMask() = default;

  // The tokens allowed next: [ceil(n_vocab / 64)], or empty. Valid until any other function is called.
  virtual AllowedTokens allowed() = 0;
  // Whether allowed() includes this token. For most masks faster than allowed(), since it concerns only one token.
  virtual bool allows(TokenId token) { return includes(allowed(), token); }
  // The sequence continues with `token`, which is allowed.
  virtual void accept(TokenId token) = 0;
  // Undoes the last n accepted tokens.
  virtual void rollback(int64_t n) = 0;
  // How the sequence continues as long as there is only one choice, at most `limit` bytes. Optional white space is
  // guessed, so tokens made from this are drafts that must be verified. A token may go beyond the bytes.
  virtual ForcedText forced(size_t /*limit*/) const { return {}; }
  // A mask in the same state, for another continuation of the sequence.
  virtual std::unique_ptr<TokenMask> clone() const = 0;
};

}  // namespace infer
