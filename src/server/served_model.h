// The model being served: its engine thread, its chat template, and its description.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/server/engine_thread.h"
#include "src/server/requests.h"
#include "src/text/answer_grammar_cache.h"
#include "src/text/chat_answer.h"
#include "src/text/chat_template.h"

namespace infer {

struct ServedModel {
  std::string name;                  // what clients see
  std::vector<std::string> aliases;  // other names for it
  std::unique_ptr<EngineThread> engine;
  ChatTemplate chat_template = ChatTemplate::builtin("chatml");  // the default for models without a template
  TemplateTraits traits;                                         // of that template
  std::unique_ptr<AnswerGrammarCache> grammars;
  bool special_in_content = false;  // control tokens spelled out in messages are tokens, not text
  std::shared_ptr<const ChatFormat> chat_format = std::make_shared<const ChatFormat>();  // of that template
  std::string fingerprint, quantization;
  int64_t created = 0;  // when it was loaded, seconds since 1970

  // Limit on a prompt and its answer together.
  int64_t max_tokens() const { return std::min(engine->context(), engine->cache_tokens()); }
};

// 16 hexadecimal digits that distinguish files: FNV-1a of the tensors' names, types and shapes and of the first and
// last 4096 bytes of each one's data. Reads a few megabytes at most, whatever the model's size.
std::string model_fingerprint(const GgufFile& file);

// The type that stores most bytes of the weights: "Q4_K".
std::string model_quantization(const GgufFile& file);

// Renders a conversation with the model's template, including its BOS and EOS texts. If the template has no place for a
// system message, the text is prepended to the first user message. Throws ApiError (400) if the template rejects the
// conversation.
RenderedText render_prompt(const ServedModel& model, ChatPromptRequest request);

}  // namespace infer
