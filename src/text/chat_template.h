// Chat templates: render a conversation into the text of a prompt, as Hugging Face's apply_chat_template does. A
// ChatTemplate holds one parsed template (see src/text/jinja). It is immutable, cheap to copy (copies share the parsed
// form) and may render on any number of threads at once.
//
// Templates and conversations are untrusted input: parsing and rendering have budgets (time, memory, output, depth) and
// fail with an Error when one is exceeded.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/ordered_json.h"
#include "src/text/rendered_text.h"
#include "src/text/template_error.h"

namespace infer {

namespace jinja {
class Template;
}

// The input of a prompt. JSON objects keep the order of their keys.
struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // [{"role": ..., "content": ...}, ...]
  nlohmann::ordered_json tools;                                       // array of tools, null: none
  nlohmann::ordered_json documents;                                   // array of documents, null: none
  bool add_generation_prompt = true;                                  // end with the header of an assistant message
  // The last message is incomplete: the prompt ends with its text, so that the model continues it. Overrides
  // add_generation_prompt.
  bool continue_final_message = false;
  std::string bos_token, eos_token;
  // Object with further variables (enable_thinking, ...), which override the members above. null: none.
  nlohmann::ordered_json variables;
};

// The forms of message content that a template renders.
struct ContentForms {
  bool text = false;   // a string
  bool parts = false;  // a list of {"type": "text", "text": ...}; all parts are rendered
};

// What a template supports, found by rendering small conversations.
struct TemplateTraits {
  bool system_role = false;                    // a system message's text appears in the prompt
  bool tools = false;                          // so do the available tools
  bool tool_calls = false;                     // so do the calls in an assistant message
  bool tool_results = false;                   // so do messages with role "tool"
  ContentForms system, user, assistant, tool;  // by the message's role
  // Arguments given as an object are shown correctly. Most templates want an object; some want JSON text, which most
  // others would quote a second time.
  bool object_arguments = false;
  bool string_arguments = false;  // arguments given as a string are shown, possibly quoted
  bool needs_call_ids = false;    // calls without an id are rejected
  bool needs_short_ids = false;   // so are ids other than nine letters and digits (Mistral's templates)
  bool enable_thinking = false;   // the variable enable_thinking changes the prompt
  bool starts_with_bos = false;   // the prompt begins with bos_token, so the tokenizer must not add another
};

class ChatTemplate {
 public:
  // The time source of strftime_now. Called during render(), perhaps on several threads at once.
  using Clock = std::function<std::tm()>;

  // Throws TemplateError (kSyntax, kBudget).
  static ChatTemplate parse(std::string source);
  // One of the built-in templates; throws Error(kInvalidArgument) with the list of names for any other name.
  static ChatTemplate builtin(std::string_view name);
  static const std::vector<std::string_view>& builtin_names();  // sorted
  static bool is_builtin(std::string_view name);

  // The prompt. Throws TemplateError, or Error(kInvalidArgument) for an invalid conversation: messages that are not an
  // array of objects, JSON nested too deeply, or continue_final_message without a text to continue.
  std::string render(const Conversation& conversation) const;
  // The same, and which bytes came from the conversation rather than from the template. BOS and EOS count as the
  // template's.
  RenderedText render_marked(const Conversation& conversation) const;
  // Renders with only these variables (an object). Throws as render() does.
  std::string render_variables(const nlohmann::ordered_json& variables) const;

  // The same template with another clock; the default is the local time.
  ChatTemplate with_clock(Clock clock) const;

  TemplateTraits traits() const;  // never throws: what fails to render counts as unsupported

  const std::string& source() const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed);

  std::shared_ptr<const jinja::Template> template_;
  Clock clock_;
};

// Sets variables that a template reads and the caller did not set: enable_thinking is true.
void set_default_variables(Conversation& conversation, const TemplateTraits& traits);

}  // namespace infer
