// A client's request to the engine: one prompt and one or more continuations. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/model/pooling.h"
#include "src/text/sampler_dry.h"
#include "src/text/sampler_params.h"
#include "src/text/token_mask.h"

namespace infer {

using RequestId = uint64_t;

struct Request {
  RequestId id = 0;  // chosen by the caller, unique among those the scheduler knows
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::shared_ptr<const DryBreakers> dry_breakers;  // null: none
  std::shared_ptr<const TokenMask> mask;            // null: none; each continuation starts with a clone

  // When to stop.
  int32_t max_new_tokens = -1;            // -1: until the context is full; 0: only compute the prompt
  bool ignore_eog = false;                // continue after an end-of-generation token
  std::vector<TokenId> stop_tokens;       // further tokens that end the text
  std::vector<std::string> stop_strings;  // detected by the code that turns tokens into text, which then calls finish()

  // Higher runs first; equal priorities are first come, first served. Each level counts as arriving kTokensPerPriority
  // tokens of work earlier (see Scheduler), so the work that can overtake a request is bounded.
  int32_t priority = 0;
  std::string cache_salt;    // only requests with the same salt share cached prefixes
  bool reuse_prefix = true;  // false: neither uses nor publishes cached blocks
  // If not 0, continues from exactly the tokens that the conversation's last request computed (published blocks alone
  // cover multiples of kBlockTokens), and retains its own for the next. Only one request of a conversation can reuse
  // them at a time.
  uint64_t conversation = 0;
  // Ids of further continuations of the prompt; unique like `id`. The prompt is computed once; then each choice becomes
  // a request of its own. The i-th, counted from 1, samples with seed + i.
  std::vector<RequestId> choices;
  // The most drafts to verify in a step, if the engine speculates; 0: none. Does not affect the answer.
  int32_t max_drafts = INT32_MAX;
  int32_t max_running = 0;  // how many of the request and its choices may run at once; 0: all
  // Compute the logits of every prompt position from this one on; -1: none. Such a request uses no cached blocks.
  int64_t logits_from = -1;
  bool wants_prompt_logits() const { return logits_from >= 0; }
  // Report the logits of every token sampled for this request and its choices to Engine::on_logits(). Without it a
  // device may return only the best logits. logits_from implies it.
  bool report_logits = false;
  bool reports_logits() const { return report_logits || wants_prompt_logits(); }
  // Unless kNone, the result is a vector, without tokens or logits. With kMean and kCls the request uses no cached
  // blocks. The engine replaces kRank by the pooling of the model's classifier, and sets `classify`.
  Pooling pooling = Pooling::kNone;
  bool classify = false;  // the result is the classifier's scores of the pooled vector
  bool takes_cached_blocks() const {
    return reuse_prefix && !wants_prompt_logits() && (pooling == Pooling::kNone || pooling == Pooling::kLast);
  }
};

}  // namespace infer
