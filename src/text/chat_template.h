// Chat templates: a conversation becomes the text of a prompt, in the way Hugging Face's apply_chat_template does it.
// A ChatTemplate holds one parsed template (see src/text/jinja). It is immutable, cheap to copy (copies share the
// parsed form) and may render on any number of threads at once.
//
// Templates and conversations are hostile input: parsing and rendering have budgets (time, memory, output, depth) and
// end with an Error when one is used up.
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

// What a prompt is made of. JSON objects keep the order of their keys.
struct Conversation {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // [{"role": ..., "content": ...}, ...]
  nlohmann::ordered_json tools;                                       // array of tools, null: none
  nlohmann::ordered_json documents;                                   // array of documents, null: none
  bool add_generation_prompt = true;                                  // end with the head of an assistant's message
  // The last message is begun, not finished: the prompt ends with its text. Excludes add_generation_prompt, which is
  // then taken as false.
  bool continue_final_message = false;
  std::string bos_token, eos_token;
  // Object of further variables (enable_thinking, ...); they win over the members above. null: none.
  nlohmann::ordered_json variables;
};

// The forms of a message's content that a template shows.
struct ContentForms {
  bool text = false;   // a string
  bool parts = false;  // a list of {"type": "text", "text": ...}, every one of them
};

// What a template makes use of, found by rendering small conversations.
struct TemplateTraits {
  bool system_role = false;                    // a system message's text shows in the prompt
  bool tools = false;                          // so do the tools offered
  bool tool_calls = false;                     // so do calls that an assistant's message holds
  bool tool_results = false;                   // so do messages of role "tool"
  ContentForms system, user, assistant, tool;  // by the message's role
  // A call's arguments show as they should when they are an object. Most templates want that; some want JSON text,
  // which most others would quote a second time.
  bool object_arguments = false;
  bool string_arguments = false;  // arguments that are a string show, be it in quotes
  bool needs_call_ids = false;    // calls without an id are refused
  bool needs_short_ids = false;   // so are ids that are not nine letters and digits, as Mistral's templates have it
  bool enable_thinking = false;   // that variable changes the prompt
  bool starts_with_bos = false;   // the prompt begins with bos_token, so that the tokenizer must not add another
};

class ChatTemplate {
 public:
  // Where strftime_now gets its time from. Called during render(), perhaps on several threads at once.
  using Clock = std::function<std::tm()>;

  // Throws TemplateError (kSyntax, kBudget).
  static ChatTemplate parse(std::string source);
  // One of the templates that come with the program; Error(kInvalidArgument) that lists the names for any other.
  static ChatTemplate builtin(std::string_view name);
  static const std::vector<std::string_view>& builtin_names();  // sorted
  static bool is_builtin(std::string_view name);

  // The prompt. Throws TemplateError; Error(kInvalidArgument) when the conversation itself is no conversation:
  // messages that are no array of objects, JSON nested too deep, continue_final_message without a text to continue.
  std::string render(const Conversation& conversation) const;
  // The same, and which of its bytes are texts of the conversation rather than the template's; BOS and EOS are the
  // template's.
  RenderedText render_marked(const Conversation& conversation) const;
  // The template with these variables (an object) and nothing else. Throws as render() does.
  std::string render_variables(const nlohmann::ordered_json& variables) const;

  // The same template with another clock; the default is the local time.
  ChatTemplate with_clock(Clock clock) const;

  TemplateTraits traits() const;  // never throws: what fails to render is not supported

  const std::string& source() const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Template> parsed);

  std::shared_ptr<const jinja::Template> template_;
  Clock clock_;
};

// Variables that a template reads and nobody set: enable_thinking is true.
void set_default_variables(Conversation& conversation, const TemplateTraits& traits);

}  // namespace infer
