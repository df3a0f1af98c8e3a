#include "src/server/served_model.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "src/server/api_error.h"
#include "src/server/conversation.h"
#include "src/server/json_fields.h"
#include "src/server/json_object.h"

namespace infer {
namespace {

class Fnv1a {
 public:
  void add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3ull;
  }
  std::string text() const {
    char digits[20];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash_));
    return digits;
  }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

bool has_role(const Json& message, std::string_view role) {
  const auto found = message.find("role");
  return found != message.end() && found->is_string() && found->get_ref<const std::string&>() == role;
}

// Moves leading system messages into the first user message.
void move_system_text(Json& messages) {
  std::string text;
  while (!messages.empty() && has_role(messages.front(), "system")) {
    text += text_of_content(messages.front()["content"]) + "\n\n";
    messages.erase(0);
  }
  if (text.empty()) return;
  for (Json& message : messages) {
    if (!has_role(message, "user")) continue;
    Json& content = message["content"];
    if (content.is_string()) content = text + content.get<std::string>();
    else content.insert(content.begin(), json_object("type", "text", "text", text));
    return;
  }
}

// Renders a conversation whose last message is the beginning of the answer. If the template alters that text, appends
// it after the header of an answer instead.
RenderedText render_begun_answer(const ChatTemplate& chat_template, Conversation conversation) {
  const std::string begun = text_of_content(conversation.messages.back()["content"]);
  if (!begun.empty()) {
    conversation.continue_final_message = true;
    try {
      return chat_template.render_marked(conversation);
    } catch (const TemplateError& error) {
      if (error.kind() == TemplateError::Kind::kBudget) throw;
    }
  }
  conversation.continue_final_message = false;
  conversation.messages.erase(conversation.messages.end() - 1);
  RenderedText prompt = chat_template.render_marked(conversation);
  if (begun.empty()) return prompt;
  prompt.from_caller.push_back({prompt.text.size(), prompt.text.size() + begun.size()});
  prompt.text += begun;
  return prompt;
}

}  // namespace

std::string model_fingerprint(const GgufFile& file) {
  constexpr size_t kSample = 4096;
  Fnv1a hash;
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string line =
        tensor.name + " " + std::string(traits(tensor.type).name) + " " + tensor.shape_string() + "\n";
    hash.add(line.data(), line.size());
    const size_t n = std::min<size_t>(kSample, tensor.n_bytes);
    if (tensor.data) {
      hash.add(tensor.data, n);
      hash.add(tensor.data + tensor.n_bytes - n, n);
    }
  }
  return hash.text();
}

std::string model_quantization(const GgufFile& file) {
  std::map<std::string, uint64_t> bytes;
  for (const GgufTensor& tensor : file.tensors()) bytes[std::string(traits(tensor.type).name)] += tensor.n_bytes;
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : most->first;
}

RenderedText render_prompt(const ServedModel& model, ChatPromptRequest request) {
  Conversation& conversation = request.conversation;
  const Tokenizer& tokenizer = model.engine->tokenizer();
  conversation.bos_token = bos_text(tokenizer);
  conversation.eos_token = eos_text(tokenizer);
  set_default_variables(conversation, model.traits);
  if (!model.traits.system_role) move_system_text(conversation.messages);
  fit_to_template(conversation, model.traits);
  try {
    RenderedText prompt = request.continue_answer ? render_begun_answer(model.chat_template, conversation)
                                                  : model.chat_template.render_marked(conversation);
    if (model.special_in_content) prompt.from_caller.clear();
    return prompt;
  } catch (const TemplateError& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "template_error", "messages");
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "", "messages");
  }
}

}  // namespace infer
