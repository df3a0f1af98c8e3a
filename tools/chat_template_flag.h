// The flags for the chat template, shared by run and serve.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "src/text/chat_template.h"

namespace infer {

// A built-in template by name, else a template from that file, or the text itself if it looks like a template. Throws
// TemplateError for a malformed template, Error(kIo) for a file that cannot be read, and Error(kInvalidArgument) if
// there is none.
ChatTemplate template_by_name_or_file(const std::string& name_or_file);

// The template's variables in the JSON text of --chat-template-kwargs. Throws Error(kInvalidArgument).
nlohmann::ordered_json parse_template_variables(const std::string& text);

// --chat-template, --chat-template-file (both set `name_or_file`) and --chat-template-kwargs. Returns the options.
std::vector<CLI::Option*> add_chat_template_flags(CLI::App& app, std::string& name_or_file,
                                                  nlohmann::ordered_json& variables);

// Offers the names of the built-in templates in shell completion.
CLI::Validator suggests_templates();

}  // namespace infer
