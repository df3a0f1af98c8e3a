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

// What is known of the text to come: first a token, if there is one, then bytes.
struct ForcedText {
  TokenId token = kNoToken;
  std::string bytes;
};

class TokenMask {
 public:
  virtual ~TokenMask() = default;

  // The tokens allowed next: [ceil(n_vocab / 64)], or empty. Valid until any other function is called.
  virtual AllowedTokens allowed() = 0;
  // Whether allowed() has this token. For most masks faster than allowed(), as it concerns one token.
  virtual bool allows(TokenId token) {
    const AllowedTokens all = allowed();
    const auto id = static_cast<size_t>(token);
    return all.empty() || (id / 64 < all.size() && (all[id / 64] >> (id % 64) & 1) != 0);
  }
  // The sequence continues with `token`, which is allowed.
  virtual void accept(TokenId token) = 0;
  // Takes back the last n accepted tokens.
  virtual void rollback(int64_t n) = 0;
  // How the sequence goes on if there is only one way, at most `limit` bytes. White space that is optional is guessed,
  // so tokens made of this are drafts: they must be verified. Tokens that spell the bytes may also spell more.
  virtual ForcedText forced(size_t /*limit*/) const { return {}; }
  // A mask in the same state, for another continuation of the sequence.
  virtual std::unique_ptr<TokenMask> clone() const = 0;
};

}  // namespace infer
