// From prompts to the answers of a request: checks that a prompt fits, runs the generations and sends the results in
// the endpoint's format. Called on the request's thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "src/server/answer_format.h"
#include "src/server/api.h"

namespace infer {

// Throws ApiError (400) for a text with more bytes than a context full of the longest tokens; called before tokenizing.
// `param` names the request's member that contains it.
void check_prompt_text(const ServedModel& model, std::string_view text, const char* param);

// Prepares a prompt for the engine. Throws ApiError (400) for an empty prompt, and for one that leaves no room in the
// context for the first token of its answer.
std::unique_ptr<Generation> make_generation(const Api& api, const ApiCall& call, std::vector<TokenId> prompt,
                                            const GenerationParams& params, const char* param);

// Compiles the constraint of a request's answers into a token mask; null if they are unconstrained. `chat`: they are
// chat answers. Throws ApiError (400) for a constraint that cannot be enforced.
std::shared_ptr<const TokenMask> mask_for(const ServedModel& model, const AnswerConstraint& constraint, bool chat,
                                          Answers& answers);

// The answers to one request: construct it, add the prompts, then call answer(). The constructor throws ApiError (400)
// if the model is an encoder.
struct Answering {
  Answering(Api& api, std::unique_ptr<AnswerFormat> its_format, const GenerationParams& params);

  std::unique_ptr<AnswerFormat> format;
  GenerationRun run;
  Answers answers;
  std::optional<size_t> first_difference;  // from the most similar recent prompt, if logged
};

// Starts the generations and answers the call, whole or as a stream. Throws what GenerationRun throws, unless the
// stream has begun.
void answer(Api& api, const CallPtr& call, const std::shared_ptr<Answering>& answering);

}  // namespace infer
