// The model that a server serves: its engine's thread, its chat template, and what there is to say about it.
#pragma once

#include <memory>
#include <string>

#include "src/server/engine_thread.h"
#include "src/server/requests.h"
#include "src/text/chat_answer.h"
#include "src/text/chat_template.h"

namespace infer {

struct ServedModel {
  std::string name;  // what clients see
  std::unique_ptr<EngineThread> engine;
  ChatTemplate chat_template = ChatTemplate::builtin("chatml");  // what a model without a template of its own gets
  TemplateTraits traits;                                         // of that template
  bool special_in_content = false;  // control tokens written in messages are tokens, not text
  AnswerEnd answer_end;
  std::string fingerprint, quantization;
  int64_t created = 0;  // when it was loaded, seconds since 1970

  // Tokens that a prompt and its answer may have together.
  int64_t max_tokens() const { return std::min(engine->context(), engine->cache_tokens()); }
};

// 16 hexadecimal digits that tell files apart: FNV-1a of the tensors' names, types and shapes and of the first and last
// 4096 bytes of each one's data. Reads a few megabytes at most, whatever the model's size.
std::string model_fingerprint(const GgufFile& file);

// The type in which most bytes of the weights are stored: "Q4_K".
std::string model_quantization(const GgufFile& file);

// The prompt of a conversation in the model's template, with its BOS and EOS texts; a system message becomes part of
// the first message of a user where the template has no place for it. Throws ApiError (400) when the template refuses
// the conversation.
RenderedText render_prompt(const ServedModel& model, ChatPromptRequest request);

}  // namespace infer
