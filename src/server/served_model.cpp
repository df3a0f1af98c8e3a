#include "src/server/served_model.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "src/server/api_error.h"
#include "src/server/json_fields.h"

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

std::string text_of(const Json& content) { return content.is_string() ? content.get<std::string>() : std::string(); }

// System messages at the beginning go before the first message of a user.
void move_system_text(Json& messages) {
  std::string text;
  while (!messages.empty() && messages.front()["role"] == "system") {
    text += text_of(messages.front()["content"]) + "\n\n";
    messages.erase(0);
  }
  for (Json& message : messages) {
    if (message["role"] != "user") continue;
    message["content"] = text + text_of(message["content"]);
    return;
  }
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

std::string render_prompt(const ServedModel& model, Conversation conversation) {
  if (!model.chat_template) {
    throw ApiError(400, "invalid_request_error",
                   "[chat] a model with a chat template (or --chat-template), found one without; /v1/completions "
                   "takes plain text",
                   "no_chat_template", "messages");
  }
  const Tokenizer& tokenizer = model.engine->tokenizer();
  conversation.bos_token = bos_text(tokenizer);
  conversation.eos_token = eos_text(tokenizer);
  if (!model.traits.system_role) move_system_text(conversation.messages);
  try {
    return model.chat_template->render(conversation);
  } catch (const TemplateError& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "template_error", "messages");
  } catch (const Error& error) {
    throw ApiError(400, "invalid_request_error", error.what(), "", "messages");
  }
}

}  // namespace infer
