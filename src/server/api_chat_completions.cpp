// POST /v1/chat/completions: the answer to a conversation.
#include <utility>

#include "src/server/answering.h"
#include "src/server/openai_formats.h"
#include "src/text/prompt_tokens.h"
#include "src/text/reasoning_budget.h"

namespace infer {
namespace {

// Adds the parts that depend on the model and on the prompt.
AnswerConstraint complete(const ServedModel& model, AnswerConstraint constraint, const std::string& prompt) {
  using Mode = CallConstraint::Mode;
  if (!model.chat_format->calls.writes_calls()) {
    if (constraint.calls.mode == Mode::kRequired) {
      throw ApiError(400, "invalid_request_error",
                     "The model's chat template writes no tool calls, so none can be required. Use \"auto\", or a "
                     "template that does with --chat-template.",
                     "unsupported_template", "tool_choice");
    }
    constraint.calls.mode = Mode::kFree;
  }
  if (!constraint.free()) {
    constraint.reasoning = reasoning_start(prompt, model.chat_template.source(), model.chat_format->calls);
  }
  return constraint;
}

void complete_chat(Api& api, const CallPtr& call) {
  const ServedModel& model = api.model();
  ChatRequest request = parse_chat_request(api.body_of(*call), api.request_context());
  const GenerationParams& params = request.generation;
  const RenderedText prompt = render_prompt(model, request.prompt);
  check_prompt_text(model, prompt.text, "messages");
  auto generation =
      make_generation(api, *call, encode_rendered_prompt(model.engine->tokenizer(), prompt), params, "messages");
  const auto answering = std::make_shared<Answering>(api, make_chat_completion_format(), params);
  Answers& answers = answering->answers;
  generation->rules =
      chat_rules(params.stop, params.stop_tokens,
                 {model.chat_format, prompt.text, ToolSet(request.prompt.conversation.tools), answers.id});
  generation->mask =
      limit_reasoning(mask_for(model, complete(model, std::move(request.constraint), prompt.text), true, answers),
                      reasoning_start(prompt.text, model.chat_template.source(), model.chat_format->calls),
                      api.options().reasoning_budget, model.engine->tokenizer(), model.chat_format);
  answering->run.add(std::move(generation));
  answer(api, call, answering);
}

}  // namespace

Endpoint chat_completions_endpoint() {
  return {.method = "POST", .path = "/v1/chat/completions", .run = complete_chat};
}

}  // namespace infer
