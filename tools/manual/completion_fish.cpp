// The fish script has a line for each option of each command.
#include "ggml-like/error.h"
#include "tools/manual/completion.h"

namespace infer {
namespace {

std::string in_fish_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string words_of(const OptionReference& option) {
  std::string words;
  for (const std::string& word : option.words) words += concat(words.empty() ? "" : " ", word);
  return words;
}

// How fish completes a value: -x takes no file, -r does.
std::string value_switches(const OptionReference& option) {
  if (option.value.empty() || option.optional_value) return "";
  if (!option.words.empty()) return " -x -a " + in_fish_quotes(words_of(option));
  if (option.takes_folder()) return " -x -a '(__fish_complete_directories)'";
  return option.takes_file() ? " -r -F" : " -x";
}

std::string option_line(const std::string& command, const OptionReference& option) {
  std::string names;
  for (const std::string& name : option.names) {
    // -s would let fish read -ng as -n g.
    const bool two_dashes = name.starts_with("--");
    names += two_dashes ? concat(" -l ", name.substr(2)) : concat(" -o ", name.substr(1));
  }
  return concat("complete -c infer -n '__fish_infer_is ", command, "'", names, value_switches(option), " -d ",
                in_fish_quotes(option.headline()), "\n");
}

std::string command_lines(const CommandReference& command) {
  std::string lines;
  for (const OptionReference& option : command.options) lines += option_line(command.name, option);
  bool takes_file = command.takes_bare_model;
  for (const OptionReference& argument : command.arguments) {
    takes_file = takes_file || argument.takes_file();
    if (argument.words.empty()) continue;
    lines += concat("complete -c infer -n '__fish_infer_is ", command.name, "' -a ", in_fish_quotes(words_of(argument)),
                    "\n");
  }
  if (!takes_file) lines += concat("complete -c infer -n '__fish_infer_is ", command.name, "' -f\n");
  return lines;
}

}  // namespace

std::string fish_completion(const std::vector<CommandReference>& commands) {
  std::string names;
  for (const CommandReference& command : commands) names += " " + command.name;
  std::string script = concat("# fish completion for infer ", INFER_VERSION, ", written by `infer completion fish`\n\n",
                              "set -g __fish_infer_commands", names, "\n", R"fish(
# Whether the command line is that of the command; without a command it is run's.
function __fish_infer_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; or return 1
    set -l command run
    contains -- $words[2] $__fish_infer_commands help; and set command $words[2]
    test $command = $argv[1]
end

# Whether the cursor is at the first word.
function __fish_infer_at_start
    test (count (commandline -opc)) -eq 1
end

)fish");
  for (const CommandReference& command : commands) {
    script += concat("complete -c infer -n __fish_infer_at_start -a ", command.name, " -d ",
                     in_fish_quotes(command.summary), "\n");
  }
  script +=
      "complete -c infer -n __fish_infer_at_start -a help -d 'Show the flags of a command'\n"
      "complete -c infer -n __fish_infer_at_start -a version -d 'Print the version'\n"
      "complete -c infer -n '__fish_infer_is help' -f -a \"$__fish_infer_commands\"\n";
  for (const CommandReference& command : commands) script += "\n" + command_lines(command);
  return script;
}

}  // namespace infer
