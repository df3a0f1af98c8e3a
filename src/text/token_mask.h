// Restricts which tokens a sequence may sample, a grammar for example. A mask belongs to one sequence and knows its
// generated tokens: accept() and rollback() keep it in step with them. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "src/text/vocabulary.h"

namespace infer {

// One bit per token id, lowest bit first; set: allowed. Empty: all tokens are.
using AllowedTokens = std::span<const uint64_t>;

class TokenMask {
 public:
  virtual ~TokenMask() = default;

  // The tokens that may come next. [ceil(n_vocab / 64)], or empty; valid until the next call of any other function.
  virtual AllowedTokens allowed() = 0;
  // The sequence continues with `token`, an allowed one.
  virtual void accept(TokenId token) = 0;
  // Takes back the last n accepted tokens.
  virtual void rollback(int64_t n) = 0;
  // A mask in the same state, for another continuation of the same tokens.
  virtual std::unique_ptr<TokenMask> clone() const = 0;
};

}  // namespace infer
