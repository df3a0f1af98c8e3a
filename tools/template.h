// infer template: renders a conversation with a chat template.
#pragma once

#include <string>

namespace infer {

struct TemplateOptions {
  std::string model;          // -m: its own template and its BOS and EOS texts
  std::string template_file;  // --template-file
  std::string chat_template;  // --chat-template: a name or a file
  std::string input;          // --input: CONVERSATION.json, - for standard input
  std::string context;        // --context: VARS.json
  std::string variables;      // --jinja-vars: a JSON object
  std::string now;            // --now: 2026-01-15T10:30:00; "": the local time
  bool list = false;          // --list: the names of the built-in templates
};

// Prints the prompt without adding a line break. Returns the exit code; throws Error.
int run_template(const TemplateOptions& options);

}  // namespace infer
