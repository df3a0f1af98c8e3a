// Drafts from a grammar ("jump-forward"): the tokens that most likely spell the text that the grammar forces. They
// are verified like all drafts, so the text does not depend on them. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/engine/sequence.h"
#include "src/text/tokenizer.h"

namespace infer {

class ForcedDrafts {
 public:
  // The tokenizer outlives this.
  explicit ForcedDrafts(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // At most `most` tokens that may follow the known ones; empty if the grammar leaves a choice. Valid until the next
  // call. REQUIRES: the sampler has accepted all known tokens.
  std::span<const TokenId> find(const Sequence& s, int most);
  void forget(RequestId id) { found_.erase(id); }
  void clear() { found_.clear(); }

 private:
  struct Found {
    int64_t at = 0;  // the number of known tokens that `tokens` follow
    std::vector<TokenId> tokens;
  };
  // Whether the sequence has continued as predicted, but not to the end; drops the tokens that are known by now.
  static bool goes_on(Found& found, const Sequence& s);
  std::vector<TokenId> spell(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::unordered_map<RequestId, Found> found_;
};

}  // namespace infer
