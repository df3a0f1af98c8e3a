// The function in bash finds the command, then what the word at the cursor is: the value of the option before it, an
// option, or an argument. It needs nothing from the package bash-completion.
#include "ggml-like/error.h"
#include "tools/manual/completion.h"

namespace infer {
namespace {

constexpr const char* kFunction = R"bash(
# _infer_reply KIND: what completes the word at the cursor. KIND: file, folder, none, or words.
_infer_reply() {
  case $1 in
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    none) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur") ;;
  esac
}

# Sets kind: what follows the option $2 of the command $1; "flag" if nothing does.
_infer_value() {
  kind=flag
  _infer_value_of "$1" "$2" || true
}

_infer() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=run first=1 words=() i kind last=
  COMPREPLY=()
  # Bash splits --name=value into three words.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [ "${COMP_WORDS[i]}" = "=" ] || words+=("${COMP_WORDS[i]}")
  done
  [ "$cur" != "=" ] || cur=
  if [ ${#words[@]} = 0 ] && [[ $cur != -* ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$_infer_commands help version" -- "$cur"; compgen -f -- "$cur")
    return
  fi
  if [[ " $_infer_commands " == *" ${words[0]} "* ]]; then
    command=${words[0]}
    words=("${words[@]:1}")
  elif [ "${words[0]}" = help ]; then
    _infer_reply "$_infer_commands"
    return
  fi
  # Counts the arguments before the cursor; `last` is an option that still waits for its value.
  local n_arguments=0
  for i in "${words[@]}"; do
    if [ -n "$last" ]; then
      last=
    elif [[ $i == -* ]]; then
      _infer_value "$command" "$i"
      [ "$kind" = flag ] || last=$i
    else
      n_arguments=$((n_arguments + 1))
    fi
  done
  if [ -n "$last" ]; then
    _infer_value "$command" "$last"
    _infer_reply "$kind"
  elif [[ $cur == -* ]]; then
    _infer_reply "$(_infer_options_of "$command")"
  else
    _infer_argument_of "$command" "$n_arguments"
    _infer_reply "$kind"
  fi
}

complete -F _infer infer
)bash";

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string result;
  for (const std::string& word : words) result += concat(result.empty() ? "" : separator, word);
  return result;
}

std::string kind_of(const OptionReference& option) {
  if (!option.words.empty()) return joined(option.words, " ");
  return option.takes_file() ? "file" : option.takes_folder() ? "folder" : "none";
}

std::string values_of(const CommandReference& command) {
  std::string text = concat("    ", command.name, ")\n      case $2 in\n");
  for (const OptionReference& option : command.options) {
    if (option.value.empty() || option.optional_value) continue;
    text += concat("        ", joined(option.names, "|"), ") kind=", in_shell_quotes(kind_of(option)), " ;;\n");
  }
  return text + "        *) ;;\n      esac ;;\n";
}

std::string options_of(const CommandReference& command) {
  std::vector<std::string> names;
  for (const OptionReference& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return concat("    ", command.name, ") echo ", in_shell_quotes(joined(names, " ")), " ;;\n");
}

std::string arguments_of(const CommandReference& command) {
  std::string text;
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const OptionReference& argument = command.arguments[i];
    text += concat("    ", command.name, ",", argument.repeatable ? "*" : std::to_string(i),
                   ") kind=", in_shell_quotes(kind_of(argument)), " ;;\n");
  }
  if (command.takes_bare_model) text += concat("    ", command.name, ",0) kind=file ;;\n");
  return text;
}

// The function `name`, with a case for each command.
std::string function(const std::string& name, const char* subject, const std::vector<CommandReference>& commands,
                     std::string (*one)(const CommandReference&)) {
  std::string text = concat("\n", name, "() {\n  case ", subject, " in\n");
  for (const CommandReference& command : commands) text += one(command);
  return text + "    *) ;;\n  esac\n}\n";
}

}  // namespace

std::string bash_completion(const std::vector<CommandReference>& commands) {
  std::vector<std::string> names;
  for (const CommandReference& command : commands) names.push_back(command.name);
  std::string script = concat("# bash completion for infer ", INFER_VERSION, ", written by `infer completion bash`\n",
                              "_infer_commands=", in_shell_quotes(joined(names, " ")), "\n");
  script += function("_infer_value_of", "$1", commands, values_of);
  script += function("_infer_options_of", "$1", commands, options_of);
  script += function("_infer_argument_of", "$1,$2", commands, arguments_of);
  // An argument beyond those that a command takes completes to nothing.
  const std::string header = "_infer_argument_of() {\n";
  script.replace(script.find(header), header.size(), header + "  kind=none\n");
  return script + kFunction;
}

}  // namespace infer
