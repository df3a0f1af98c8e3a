// POST /v1/completions: continues one or more prompts.
#include "src/server/answering.h"
#include "src/server/openai_formats.h"
#include "src/text/prompt_tokens.h"

namespace infer {
namespace {

void complete_prompts(Api& api, const CallPtr& call) {
  const ServedModel& model = api.model();
  const Tokenizer& tokenizer = model.engine->tokenizer();
  const CompletionRequest request = parse_completion_request(api.body_of(*call), api.request_context());
  const GenerationParams& params = request.generation;
  std::vector<std::string> echoed;
  std::vector<std::unique_ptr<Generation>> generations;
  for (const Prompt& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text) check_prompt_text(model, *text, "prompt");
    std::vector<TokenId> tokens = text ? encode_plain_prompt(tokenizer, *text) : std::get<std::vector<TokenId>>(prompt);
    if (request.echo) echoed.push_back(text ? *text : tokenizer.decode(tokens, false));
    generations.push_back(make_generation(api, *call, std::move(tokens), params, "prompt"));
    generations.back()->prompt_scores = request.echo && params.top_logprobs.has_value();
  }
  const auto answering = std::make_shared<Answering>(api, make_completion_format(std::move(echoed)), params);
  const std::shared_ptr<const TokenMask> mask = mask_for(model, request.constraint, false, answering->answers);
  for (auto& generation : generations) {
    generation->mask = mask;
    answering->run.add(std::move(generation));
  }
  answer(api, call, answering);
}

}  // namespace

Endpoint completions_endpoint() { return {.method = "POST", .path = "/v1/completions", .run = complete_prompts}; }

}  // namespace infer
