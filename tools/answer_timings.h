// What an answer cost, as lines for the user.
#pragma once

#include <cstdint>
#include <string>

namespace infer {

struct AnswerTimings {
  int64_t prompt_tokens = 0;    // the whole prompt
  int64_t cached_tokens = 0;    // of these, taken from the cache
  int64_t computed_tokens = 0;  // of prompts; more than prompt - cached after turns were dropped within the answer
  int64_t generated_tokens = 0;
  int64_t decode_tokens = 0;  // generated in steps that computed no prompt
  double prompt_seconds = 0, decode_seconds = 0;
};

// "prompt 34 tokens, 612/s · answer 128 tokens, 67/s"; names the prompt's cached tokens if there are any.
std::string short_summary(const AnswerTimings& timings);
// The same with every count.
std::string full_summary(const AnswerTimings& timings);

}  // namespace infer
