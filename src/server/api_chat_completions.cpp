// POST /v1/chat/completions: the answer to a conversation.
#include "src/server/answering.h"
#include "src/server/openai_formats.h"
#include "src/text/prompt_tokens.h"

namespace infer {
namespace {

void run(Api& api, const CallPtr& call) {
  const ServedModel& model = api.model();
  const ChatRequest request = parse_chat_request(api.body_of(*call), api.request_context());
  const GenerationParams& params = request.generation;
  const RenderedText prompt = render_prompt(model, request.prompt);
  check_prompt_text(model, prompt.text, "messages");
  auto generation =
      make_generation(api, *call, encode_rendered_prompt(model.engine->tokenizer(), prompt), params, "messages");
  generation->rules = chat_rules(params.stop, params.stop_tokens, model.answer_end, prompt.text);
  const auto answering = std::make_shared<Answering>(api, make_chat_completion_format(), params);
  answering->run.add(std::move(generation));
  answer(api, call, answering);
}

}  // namespace

Endpoint chat_completions_endpoint() { return {.method = "POST", .path = "/v1/chat/completions", .run = run}; }

}  // namespace infer
