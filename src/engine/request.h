// What a client asks of the engine: one prompt and one or more continuations. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/text/sampler_dry.h"
#include "src/text/sampler_params.h"
#include "src/text/token_mask.h"

namespace infer {

using RequestId = uint64_t;

// How the hidden states of a prompt after the final norm become one vector.
enum class Pooling : uint8_t {
  kNone,
  kMean,  // over all positions
  kLast,  // of the last position
  kCls,   // of the first
};

struct Request {
  RequestId id = 0;  // chosen by the caller, unique among those the scheduler knows
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::shared_ptr<const DryBreakers> dry_breakers;  // null: none
  std::shared_ptr<const TokenMask> mask;            // null: none; each continuation begins with a clone

  // When to stop.
  int32_t max_new_tokens = -1;            // -1: until the context is full; 0: only compute the prompt
  bool ignore_eog = false;                // go on after an end-of-generation token
  std::vector<TokenId> stop_tokens;       // further tokens that end the text
  std::vector<std::string> stop_strings;  // found by whoever turns tokens into text, who then calls finish()

  // Higher goes first, then first come, first served. Each level counts as an arrival Scheduler::kTokensPerPriority
  // tokens of work earlier, so a request is overtaken for a bounded amount of work only.
  int32_t priority = 0;
  std::string cache_salt;    // only requests with the same salt share cached prefixes
  bool reuse_prefix = true;  // false: uses no cached blocks and publishes none
  // Not 0: continues from exactly the tokens that the last request of this conversation computed, where published
  // blocks serve multiples of kBlockTokens, and retains its own for the next. One request of a conversation at a time
  // benefits.
  uint64_t conversation = 0;
  // Ids of further continuations of the prompt, unused like `id`. The prompt is computed once; then each choice becomes
  // a request of its own. The i-th, counted from 1, is the text of seed + i.
  std::vector<RequestId> choices;
  int32_t max_running = 0;  // how many of the request and its choices run at once; 0: any number
  // Logits of every prompt position from this one on; -1: of none. Such a request uses no cached blocks.
  int64_t logits_from = -1;
  bool wants_prompt_logits() const { return logits_from >= 0; }
  // Its rows go to Engine::on_logits(), and so do those of its choices, each for every sampled token. Otherwise a
  // device may keep all logits but the best. logits_from has its rows reported too.
  bool report_logits = false;
  bool reports_logits() const { return report_logits || wants_prompt_logits(); }
  // Not kNone: the request asks for a vector, and for no tokens or logits. With kMean and kCls it uses no cached
  // blocks.
  Pooling pooling = Pooling::kNone;
  bool takes_cached_blocks() const {
    return reuse_prefix && !wants_prompt_logits() && (pooling == Pooling::kNone || pooling == Pooling::kLast);
  }
};

}  // namespace infer
