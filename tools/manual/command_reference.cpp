#include "tools/manual/command_reference.h"

#include <algorithm>

#include "tools/arguments.h"
#include "tools/option_names.h"

namespace infer {
namespace {

OptionReference describe_option(const CLI::Option& option) {
  OptionReference result;
  const bool has_value = option.get_items_expected_max() > 0;
  if (option.get_positional()) {
    result.names = {option.get_type_name()};
  } else {
    result.names = typed_names(option);
    result.group = option.get_group();
  }
  if (has_value) result.value = option.get_type_name();
  result.text = option.get_description();
  result.default_value = option.get_default_str();
  result.environment = option.get_envname();
  result.words = suggested_words(option);
  result.optional_value = has_value && option.get_items_expected_min() == 0;
  result.required = option.get_required();
  result.repeatable = option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll ||
                      (option.get_positional() && option.get_items_expected_max() > 1);
  return result;
}

}  // namespace

bool OptionReference::takes_file() const {
  return value == "IN" || value == "OUT" || value.find("FILE") != std::string::npos;
}

bool OptionReference::takes_folder() const { return value.find("FOLDER") != std::string::npos; }

std::string OptionReference::headline() const {
  const size_t end = std::min(text.find_first_of(";("), text.find(". "));
  return text.substr(0, std::min(text.find_last_not_of(' ', end == 0 ? 0 : end - 1) + 1, text.size()));
}

CommandReference describe(const Command& command) {
  CommandReference result;
  result.name = command.name;
  result.summary = command.summary;
  result.guide = command.guide;
  result.examples = command.examples;
  CLI::App app;
  const std::function<int()> unused = define_command(command, app);
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? result.arguments : result.options).push_back(describe_option(*option));
  }
  result.takes_bare_model = takes_bare_model(app);
  result.takes_bare_prompt = takes_bare_prompt(app);
  return result;
}

std::vector<CommandReference> describe_commands() {
  std::vector<CommandReference> all;
  for (const Command& command : commands()) all.push_back(describe(command));
  return all;
}

}  // namespace infer
