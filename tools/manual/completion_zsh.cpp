// The zsh script describes each command to _arguments, which does the rest.
#include "ggml-like/error.h"
#include "tools/manual/completion.h"

namespace infer {
namespace {

// `text` with a backslash before each of `special`.
std::string with_backslashes(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// ":message:action" of _arguments.
std::string action(const OptionReference& option) {
  std::string how = " ";
  if (!option.words.empty()) {
    std::string words;
    for (const std::string& word : option.words) {
      words += concat(words.empty() ? "" : " ", with_backslashes(word, "\\ ():"));
    }
    how = concat("(", words, ")");
  } else if (option.takes_file()) {
    how = "_files";
  } else if (option.takes_folder()) {
    how = "_files -/";
  }
  return concat(option.optional_value ? "::" : ":", with_backslashes(option.value, "\\:"), ":", how);
}

std::string option_specs(const OptionReference& option) {
  std::string others;  // given one of an option's names, the others are not offered
  for (const std::string& name : option.names) others += concat(others.empty() ? "" : " ", name);
  std::string specs;
  for (const std::string& name : option.names) {
    std::string spec = option.repeatable ? "*" : concat("(", others, ")");
    const bool has_value = !option.value.empty();
    spec += concat(name, has_value && name.starts_with("--") ? "=" : "", "[",
                   with_backslashes(option.headline(), "\\[]:"), "]");
    if (has_value) spec += action(option);
    specs += concat(" \\\n        ", in_shell_quotes(spec));
  }
  return specs;
}

std::string command_case(const CommandReference& command) {
  std::string text = concat("    ", command.name, ")\n      _arguments");
  for (const OptionReference& option : command.options) text += option_specs(option);
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const OptionReference& argument = command.arguments[i];
    text += concat(" \\\n        ",
                   in_shell_quotes((argument.repeatable ? "*" : std::to_string(i + 1)) + action(argument)));
  }
  if (command.takes_bare_model) text += " \\\n        '1:MODEL:_files'";
  if (command.takes_bare_prompt) text += " \\\n        '2:PROMPT: '";
  return text + "\n      ;;\n";
}

}  // namespace

std::string zsh_completion(const std::vector<CommandReference>& commands) {
  std::string script = concat("#compdef infer\n# zsh completion for infer ", INFER_VERSION,
                              ", written by `infer completion zsh`\n\n_infer() {\n  local -a commands\n  commands=(\n");
  for (const CommandReference& command : commands) {
    script +=
        concat("    ", in_shell_quotes(concat(command.name, ":", with_backslashes(command.summary, "\\:"))), "\n");
  }
  script += R"zsh(    'help:Show the flags of a command'
    'version:Print the version'
  )
  if ((CURRENT == 2)) && [[ ${words[2]} != -* ]]; then
    _describe -t commands 'command' commands
    _files
    return
  fi
  local command=${words[2]}
  if [[ $command == help ]]; then
    _describe -t commands 'command' commands
    return
  fi
  if ((${commands[(I)$command:*]})); then
    shift words
    ((CURRENT -= 1))
  else
    command=run
  fi
  case $command in
)zsh";
  for (const CommandReference& command : commands) script += command_case(command);
  return script + R"zsh(  esac
}

if [[ ${funcstack[1]} == _infer ]]; then
  _infer "$@"
else
  compdef _infer infer
fi
)zsh";
}

}  // namespace infer
