#include "tools/manual/manual_page.h"

#include <algorithm>
#include <cctype>

#include "ggml-like/error.h"

namespace infer {
namespace {

// Text as roff prints it unchanged. A plain "-" would be a hyphen, which a user could not copy into a shell. A list
// without blanks may be broken after its separators.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' && (result.ends_with(',') || result.ends_with(';'))) result += "\\:";
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '"':
        result += "\\(dq";
        break;
      default:
        result += c;
    }
  }
  // A line that begins with a dot is a macro.
  return result.starts_with('.') ? "\\&" + result : result;
}

std::string bold(const std::string& text) { return concat("\\fB", roff(text), "\\fR"); }
std::string italic(const std::string& text) { return concat("\\fI", roff(text), "\\fR"); }

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// The macro `.B` or the like, with one argument.
std::string macro(const char* name, const std::string& argument) {
  return concat(".", name, " \"", roff(argument), "\"\n");
}

std::string heading(const std::string& title) { return macro("SH", title); }

std::string title_line(const std::string& name, std::time_t date) {
  char day[16] = "";
  std::tm parts{};
  if (gmtime_r(&date, &parts)) std::strftime(day, sizeof(day), "%Y-%m-%d", &parts);
  return concat(".TH \"", roff(upper(name)), "\" 1 ", day, " \"infer ", INFER_VERSION, "\" \"User Commands\"\n",
                // No hyphenation, ragged right: names of options stay whole.
                ".nh\n.ad l\n");
}

std::string name_section(const std::string& name, const std::string& summary) {
  return concat(heading("NAME"), roff(name), " \\- ", roff(summary), "\n");
}

std::string entry(const OptionReference& option) {
  std::string tag;
  for (const std::string& name : option.names) {
    tag += concat(tag.empty() ? "" : ", ", option.group.empty() ? italic(name) : bold(name));
  }
  if (!option.group.empty() && !option.value.empty()) {
    tag += option.optional_value ? concat(" [", italic(option.value), "]") : concat(" ", italic(option.value));
  }
  std::string text = roff(option.text);
  if (!option.default_value.empty()) text += concat(" (default: ", roff(option.default_value), ")");
  if (text.empty()) text = "\\&";
  if (option.required) text += ". Required.";
  if (!option.environment.empty()) text += concat(". Environment: ", bold(option.environment), ".");
  return concat(".TP\n", tag, "\n", text, "\n");
}

std::string synopsis(const CommandReference& command) {
  std::string line = concat(".B ", roff("infer " + command.name), "\n[\\fIOPTIONS\\fR]");
  if (command.takes_bare_model) line += " [\\fIMODEL\\fR]";
  if (command.takes_bare_prompt) line += " [\\fIPROMPT\\fR]";
  for (const OptionReference& argument : command.arguments) {
    const std::string name = concat(italic(argument.names.front()), argument.repeatable ? "..." : "");
    line += argument.required ? concat(" ", name) : concat(" [", name, "]");
  }
  return concat(heading("SYNOPSIS"), line, "\n");
}

std::string options_section(const CommandReference& command) {
  std::string text = heading("OPTIONS");
  std::vector<std::string> groups;
  for (const OptionReference& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    if (group != groups.front()) text += macro("SS", group);
    for (const OptionReference& option : command.options) {
      if (option.group == group) text += entry(option);
    }
  }
  return text;
}

std::string examples_section(const std::vector<std::string>& examples) {
  std::string text = heading("EXAMPLES");
  for (const std::string& example : examples) {
    if (example != examples.front()) text += ".PP\n";
    text += concat(".EX\n", roff(example), "\n.EE\n");
  }
  return text;
}

std::string exit_status() {
  return heading("EXIT STATUS") +
         ".TP\n.B 0\nDone.\n.TP\n.B 1\nFailed; standard error says why.\n.TP\n.B 2\nWrong usage.\n";
}

}  // namespace

std::string command_page(const CommandReference& command, std::time_t date) {
  const std::string name = concat("infer-", command.name);
  std::string page = title_line(name, date) + name_section(name, command.summary) + synopsis(command);
  page += concat(heading("DESCRIPTION"), roff(command.summary), ".\n");
  if (command.takes_bare_model) page += concat(italic("MODEL"), " is the value of ", bold("--model"), ".\n");
  if (command.takes_bare_prompt) page += concat(italic("PROMPT"), " is the value of ", bold("--prompt"), ".\n");
  page +=
      ".PP\nOptions start with one or two dashes, and a value follows as the next argument or after an equals sign.\n";
  if (!command.arguments.empty()) page += heading("ARGUMENTS");
  for (const OptionReference& argument : command.arguments) page += entry(argument);
  page += options_section(command) + exit_status() + examples_section(command.examples);
  page += concat(heading("SEE ALSO"), ".BR infer (1)\n");
  if (!command.guide.empty())
    page += concat(".PP\nThe guide ", italic(command.guide + ".md"), " in the documentation.\n");
  return page;
}

std::string program_page(const std::vector<CommandReference>& commands, std::time_t date) {
  std::string page = title_line("infer", date) + name_section("infer", "run GGUF language models on this machine");
  page +=
      heading("SYNOPSIS") +
      ".B infer\n\\fIMODEL\\fR [\\fIOPTIONS\\fR]\n.br\n.B infer\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n" +
      heading("DESCRIPTION") +
      "Chats with a language model, serves it to programs, and measures, converts and inspects model files in the GGUF "
      "format.\nWithout a command,\n.B infer\nruns a model: the first argument is its file.\n" +
      heading("COMMANDS");
  for (const CommandReference& command : commands) {
    page += concat(".TP\n.BR ", roff("infer-" + command.name), " (1)\n", roff(command.summary), "\n");
  }
  page += heading("OPTIONS");
  page += concat(".TP\n", bold("-h"), ", ", bold("--help"), "\nList the commands.\n.TP\n", bold("--version"),
                 "\nPrint the version.\n");
  page += heading("ENVIRONMENT");
  const auto variable = [&page](const char* name, const char* text) {
    page += concat(".TP\n", bold(name), "\n", roff(text), "\n");
  };
  variable("INFER_CPU", "Instruction set for the kernels; infer devices lists those of this machine.");
  variable("INFER_DEVICE", "The same as --device.");
  variable("INFER_API_KEY", "API keys of infer serve, separated by commas.");
  page += exit_status() + examples_section({"infer model.gguf", "infer serve model.gguf", "infer help quantize"});
  page += heading("SEE ALSO");
  std::string list;
  for (const CommandReference& command : commands) {
    list += concat(list.empty() ? "" : ",\n", ".BR ", roff("infer-" + command.name), " (1)");
  }
  return page + list + "\n";
}

}  // namespace infer
