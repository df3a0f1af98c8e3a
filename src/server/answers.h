// The answers to one request so far, collected from the events of its choices. Plain data; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/server/generation.h"

namespace infer {

struct Usage {
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
};

// A tool call, with the arguments as JSON text.
struct CallRecord {
  std::string id, name, arguments;
};

// One choice.
struct AnswerRecord {
  std::string content, reasoning;
  std::vector<CallRecord> calls;
  std::vector<TokenScore> scores;
  std::vector<TokenScore> prompt_scores;  // of a prompt's first choice, if requested
  int64_t n_tokens = 0;
  FinishReason finished = FinishReason::kNone;
  AnswerTimes times;
  DraftCounts drafts;
};

struct Answers {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
  GenerationParams params;
  const Tokenizer* tokenizer = nullptr;
  std::vector<AnswerRecord> choices;  // params.n per prompt, prompt by prompt
  Usage usage;                        // totals
  std::vector<std::string> warnings;  // parts of the request that could not be enforced

  void take(const AnswerEvent& event);
  // The first choice for the prompt that `choice` answers.
  int32_t first_choice(int32_t choice) const { return choice - choice % params.n; }
};

}  // namespace infer
