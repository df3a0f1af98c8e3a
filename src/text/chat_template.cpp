#include "src/text/chat_template.h"

#include <string.h>

#include <algorithm>

#include "ggml-like/message.h"
#include "src/text/builtin_templates.h"
#include "src/text/jinja/template.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

template <typename Subject, typename Found>
[[noreturn]] void fail(const Subject& subject, const char* expected, const Found& found) {
  throw Error(ErrorCode::kInvalidArgument, expected_found("conversation", subject, expected, found));
}

bool is_python_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F); }

std::string_view without_leading_space(std::string_view text) {
  while (!text.empty() && is_python_space(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty() && is_python_space(text.back())) text.remove_suffix(1);
  return text;
}

void check_conversation(const Conversation& conversation) {
  if (!conversation.messages.is_array()) {
    fail("messages", "an array", conversation.messages.type_name());
  }
  size_t number = 0;
  for (const ordered_json& message : conversation.messages) {
    if (!message.is_object()) fail(concat("message ", number), "an object", message.type_name());
    ++number;
  }
  if (!conversation.variables.is_null() && !conversation.variables.is_object()) {
    fail("variables", "an object", conversation.variables.type_name());
  }
}

// The text that the prompt must end with: that of the last message, or of its last part that contains text.
std::string text_to_continue(const ordered_json& messages) {
  if (messages.empty()) fail("continue_final_message", "a message to continue", "none");
  const auto content = messages.back().find("content");
  if (content != messages.back().end()) {
    if (content->is_string()) return content->get<std::string>();
    if (content->is_array()) {
      for (auto part = content->rbegin(); part != content->rend(); ++part) {
        if (part->is_object() && part->contains("text") && (*part)["text"].is_string()) {
          return (*part)["text"].get<std::string>();
        }
      }
    }
  }
  fail("continue_final_message", "a last message with text", "one without");
}

// Offset of the last occurrence of `part`, or npos. std::string::rfind is quadratic and takes minutes for megabytes of
// repetitions; memmem is linear but searches forwards, so it gets both strings reversed.
size_t find_last(std::string_view text, std::string_view part) {
  const std::string backwards(text.rbegin(), text.rend()), wanted(part.rbegin(), part.rend());
  const void* found = memmem(backwards.data(), backwards.size(), wanted.data(), wanted.size());
  if (!found) return std::string::npos;
  return text.size() - part.size() - static_cast<size_t>(static_cast<const char*>(found) - backwards.data());
}

// Cuts the prompt after the last message's text. Trailing white space is kept only if the template kept it.
void cut_after(RenderedText& rendered, std::string_view message) {
  std::string& prompt = rendered.text;
  const std::string_view from_start = without_leading_space(message), bare = without_trailing_space(from_start);
  const size_t at = find_last(prompt, bare);
  if (at == std::string::npos) {
    throw TemplateError(TemplateError::Kind::kRuntime, 0, "",
                        "continue_final_message is set, but the final message does not appear in the rendered chat");
  }
  const bool kept = std::string_view(prompt).substr(at, from_start.size()) == message;
  prompt.resize(at + (kept ? from_start.size() : bare.size()));
  std::vector<TextRange>& ranges = rendered.from_caller;
  while (!ranges.empty() && ranges.back().begin >= prompt.size()) ranges.pop_back();
  if (!ranges.empty()) ranges.back().end = std::min(ranges.back().end, prompt.size());
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const jinja::Template> parsed)
    : template_(std::move(parsed)), clock_(jinja::local_time) {}

ChatTemplate ChatTemplate::parse(std::string source) {
  return ChatTemplate(std::make_shared<const jinja::Template>(std::move(source)));
}

ChatTemplate ChatTemplate::builtin(std::string_view name) {
  for (const BuiltinTemplate& entry : builtin_templates()) {
    if (entry.name == name) return parse(concat(builtin_template_head(), entry.body));
  }
  std::string names;
  for (const std::string_view other : builtin_names()) names += (names.empty() ? "" : ", ") + std::string(other);
  throw Error(
      ErrorCode::kInvalidArgument,
      concat("There is no chat template ", name, " (neither a file nor built in). Name a file or one of ", names, "."));
}

const std::vector<std::string_view>& ChatTemplate::builtin_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const BuiltinTemplate& entry : builtin_templates()) all.push_back(entry.name);
    std::sort(all.begin(), all.end());
    return all;
  }();
  return names;
}

bool ChatTemplate::is_builtin(std::string_view name) {
  return std::binary_search(builtin_names().begin(), builtin_names().end(), name);
}

std::string ChatTemplate::render(const Conversation& conversation) const { return render_marked(conversation).text; }

RenderedText ChatTemplate::render_marked(const Conversation& conversation) const {
  check_conversation(conversation);
  std::string message;
  if (conversation.continue_final_message) message = text_to_continue(conversation.messages);
  ordered_json variables = {
      {"messages", conversation.messages},
      {"tools", conversation.tools},
      {"documents", conversation.documents},
      {"add_generation_prompt", conversation.add_generation_prompt && !conversation.continue_final_message},
  };
  const ordered_json own = {{"bos_token", conversation.bos_token}, {"eos_token", conversation.eos_token}};
  if (conversation.variables.is_object()) {
    for (const auto& [name, value] : conversation.variables.items()) variables[name] = value;
  }
  RenderedText prompt = template_->render_marked(variables, own, clock_);
  if (conversation.continue_final_message) cut_after(prompt, message);
  return prompt;
}

std::string ChatTemplate::render_variables(const ordered_json& variables) const {
  if (!variables.is_object()) fail("variables", "an object", variables.type_name());
  return template_->render(variables, clock_);
}

ChatTemplate ChatTemplate::with_clock(Clock clock) const {
  ChatTemplate copy = *this;
  copy.clock_ = std::move(clock);
  return copy;
}

const std::string& ChatTemplate::source() const { return template_->source(); }

}  // namespace infer
