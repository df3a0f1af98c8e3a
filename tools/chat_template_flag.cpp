#include "tools/chat_template_flag.h"

#include <filesystem>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/input.h"

namespace infer {
namespace {

bool looks_like_template(const std::string& text) {
  return text.find("{{") != std::string::npos || text.find("{%") != std::string::npos;
}

}  // namespace

ChatTemplate template_by_name_or_file(const std::string& name_or_file) {
  if (looks_like_template(name_or_file)) return ChatTemplate::parse(name_or_file);
  std::error_code ignored;
  const bool is_file = !ChatTemplate::is_builtin(name_or_file) && std::filesystem::exists(name_or_file, ignored);
  return is_file ? ChatTemplate::parse(read_text_file(name_or_file)) : ChatTemplate::builtin(name_or_file);
}

nlohmann::ordered_json parse_template_variables(const std::string& text) {
  nlohmann::ordered_json variables = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!variables.is_object()) {
    throw Error(ErrorCode::kInvalidArgument, "--chat-template-kwargs: " + printable(text, 60) +
                                                 " is not a JSON object. Write it like {\"enable_thinking\": false}.");
  }
  return variables;
}

CLI::Validator suggests_templates() {
  std::vector<std::string> names;
  for (const std::string_view name : ChatTemplate::builtin_names()) names.emplace_back(name);
  return suggests(names);
}

std::vector<CLI::Option*> add_chat_template_flags(CLI::App& app, std::string& name_or_file,
                                                  nlohmann::ordered_json& variables) {
  auto* by_name = app.add_option("--chat-template", name_or_file,
                                 "Chat template instead of the model's: a name (infer template --list), a Jinja file, "
                                 "or its text")
                      ->check(not_empty())
                      ->check(suggests_templates())
                      ->type_name("NAME|FILE");
  auto* by_file = app.add_option_function<std::string>(
                         "--chat-template-file",
                         [&name_or_file](const std::string& path) {
                           // A path, even if the file has the name of a built-in template.
                           name_or_file = std::filesystem::absolute(path).string();
                           read_text_file(name_or_file);
                         },
                         "File with a chat template (Jinja)")
                      ->check(not_empty())
                      ->excludes(by_name)
                      ->type_name("FILE");
  auto* kwargs = app.add_option_function<std::string>(
                        "--chat-template-kwargs,--jinja-vars",
                        [&variables](const std::string& text) { variables = parse_template_variables(text); },
                        "Variables for the chat template: {\"enable_thinking\": false}")
                     ->type_name("JSON");
  return {by_name, by_file, kwargs};
}

}  // namespace infer
