#include "tools/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/help.h"
#include "tools/option_names.h"

namespace infer {
namespace {

[[noreturn]] void wrong_use(const std::string& sentence) { throw Error(ErrorCode::kInvalidArgument, sentence); }

// An argument that begins with a dash: "--name", "--name=value", "-n", "-ngl=value".
struct Written {
  std::string name;                  // with its dashes
  std::optional<std::string> value;  // after the equals sign
};

Written split(const std::string& argument) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  return is_marked(name) ? nullptr : app.get_option_no_throw(stored_name(name));
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool needs_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }
bool is_hidden(const CLI::Option& option) { return option.get_group().empty(); }

// Whether the next argument is the value of an option that may stand alone.
bool is_switch_word(const std::string& text) {
  constexpr std::string_view kWords[] = {"on", "off", "auto", "true", "false", "1", "0", "enabled", "disabled"};
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords);
}

// Formats a value for a message.
std::string shown_value(const std::string& value) { return value.empty() ? "An empty value" : printable(value, 60); }

bool is_one_letter(const std::string& name) { return name.size() == 2; }

// The option that `name` may be a misspelling of: "Did you mean --temp? ", or "".
std::string did_you_mean(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (is_hidden(*option) || option->get_positional()) continue;
    for (std::string& typed : typed_names(*option)) {
      if (!is_one_letter(typed)) known.push_back(std::move(typed));
    }
  }
  const std::string nearest = is_one_letter(name) ? "" : nearest_name(name, known);
  return nearest.empty() ? "" : concat("Did you mean ", nearest, "? ");
}

// The likely intention behind `argument`, an unknown option: "Write -n 5. ", "Did you mean --temp? ", or "".
std::string suggestion(const CLI::App& app, const std::string& argument) {
  const Written written = split(argument);
  if (argument.starts_with("--")) return did_you_mean(app, written.name);
  if (const std::string longer = "-" + written.name; !is_one_letter(written.name) && find_option(app, longer)) {
    return concat("Write ", printable(longer), ". ");
  }
  // The value may be attached. If it is only letters, this is more likely an unknown option's name.
  const std::string letter = argument.substr(0, 2), rest = argument.substr(2);
  const CLI::Option* option = find_option(app, letter);
  const bool is_name =
      !rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0])) &&
      std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
  if (rest.empty() || is_name || !option || !takes_value(*option)) return did_you_mean(app, written.name);
  return concat("Write ", letter, " ", printable(rest, 100), ". ");
}

[[noreturn]] void refuse_option(const CLI::App& app, const std::string& argument) {
  std::string sentence = concat("Unknown option ", printable(argument, 100), ". ", suggestion(app, argument));
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    sentence += "Put -- before an argument that begins with a dash. ";
    break;
  }
  wrong_use(concat(sentence, app.get_name(), " --help lists the options."));
}

// Whether `arguments` have the option of that name.
bool has_option(const CLI::App& app, const std::vector<std::string>& arguments, const std::string& name) {
  const CLI::Option* wanted = app.get_option_no_throw(name);
  return wanted && std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
           return argument.starts_with('-') && find_option(app, split(argument).name) == wanted;
         });
}

// The options whose values are the words without a dash, in order.
std::vector<std::string> options_of_words(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> options;
  const bool named = has_option(app, arguments, "--model") || has_option(app, arguments, "--hf-repo");
  if (takes_bare_model(app) && !named) options.emplace_back("--model");
  if (takes_bare_prompt(app) && !has_option(app, arguments, "--prompt")) options.emplace_back("--prompt");
  return options;
}

// The value of the option at arguments[i], and moves i past it. nullopt if there is none.
std::optional<std::string> take_value(const CLI::Option& option, const Written& written,
                                      const std::vector<std::string>& arguments, size_t& i) {
  if (written.value) return written.value;
  const bool has_next = i + 1 < arguments.size();
  if (!has_next || (!needs_value(option) && !is_switch_word(arguments[i + 1]))) return std::nullopt;
  return arguments[++i];
}

// A name by which CLI11 finds the option. Its own get_name() is empty for hidden ones.
std::string parsed_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
}

// Rewrites the arguments into the only form CLI11 reads unambiguously: long names, each followed by its value as a
// separate argument.
std::vector<std::string> unambiguous(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  const std::vector<std::string> words = options_of_words(app, arguments);
  size_t n_words = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      if (n_words < words.size()) result.push_back(words[n_words++]);
      result.push_back(argument);
      continue;
    }
    const Written written = split(argument);
    const CLI::Option* option = find_option(app, written.name);
    if (!option) refuse_option(app, argument);
    const std::string name = parsed_name(*option);
    if (!takes_value(*option)) {
      if (written.value && !is_switch_word(*written.value)) {
        wrong_use(concat(written.name, " takes no value. Write ", written.name, " alone."));
      }
      result.push_back(written.value ? concat(name, "=", *written.value) : name);
      continue;
    }
    const std::optional<std::string> value = take_value(*option, written, arguments, i);
    if (!needs_value(*option) || is_hidden(*option)) {
      // Joined, so that CLI11 does not take the next argument; without a value, the option is switched on.
      result.push_back(concat(name, "=", value && !value->empty() ? *value : "on"));
      continue;
    }
    // For a list without entries, CLI11 would take the next argument as the value.
    const bool empty_list =
        value && !value->empty() && value->find_first_not_of(option->get_delimiter()) == std::string::npos;
    if (!value || empty_list) {
      const std::string type = option->get_type_name();
      // Drops the range that CLI11 appends after a colon.
      wrong_use(concat(written.name, " needs a value. Write ", name, " ", type.substr(0, type.find(':')), "."));
    }
    result.push_back(name);
    result.push_back(*value);
  }
  return result;
}

// A validator's name is the only text that CLI11 keeps with an option and does not print.
constexpr std::string_view kWordsMark = "words:";
constexpr char kWordsSeparator = ',';

std::string words_name(const std::vector<std::string>& words) {
  std::string name(kWordsMark);
  for (const std::string& word : words) name += concat(name.size() == kWordsMark.size() ? "" : ",", word);
  return name;
}

}  // namespace

CLI::Validator not_empty() {
  return {
      [](std::string& text) { return text.empty() ? "The value is empty. Give a value, or leave the flag out." : ""; },
      ""};
}

CLI::Validator whole_number(int64_t least, int64_t most) {
  const auto check = [least, most](std::string& text) -> std::string {
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && at == end && value >= least && value <= most) return "";
    const bool bounded = most < INT64_MAX;
    return concat(
        shown_value(text), " is not valid. Give a whole number ",
        bounded ? concat("from ", grouped(least), " to ", grouped(most)) : concat("of at least ", grouped(least)), ".");
  };
  return {check, ""};
}

CLI::Validator number(double least, double most) {
  const auto check = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
    return concat(shown_value(text), " is not valid. Give a number from ", least, " to ", most, ".");
  };
  return {check, ""};
}

CLI::Validator any_number() {
  const auto check = [](std::string& text) -> std::string {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) ? "" : concat(shown_value(text), " is not valid. Give a number.");
  };
  return {check, ""};
}

CLI::Validator number_above_zero() {
  const auto check = [](std::string& text) -> std::string {
    double value = 0;
    const bool valid = CLI::detail::lexical_cast(text, value) && value > 0;
    return valid ? "" : concat(shown_value(text), " is not valid. Give a number above 0.");
  };
  return {check, ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words](std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    std::string list;
    for (size_t i = 0; i < words.size(); ++i) {
      list += concat(i == 0 ? "" : i + 1 < words.size() ? ", " : " or ", words[i]);
    }
    return concat(shown_value(text), " is not valid. Choose ", list, ".");
  };
  return {check, "", words_name(words)};
}

CLI::Validator suggests(const std::vector<std::string>& words) {
  return {[](std::string&) { return std::string(); }, "", words_name(words)};
}

std::vector<std::string> suggested_words(const CLI::Option& option) {
  // CLI11 2.1 has no count of validators, and its getter is not const; it throws past the last one.
  auto& checked = const_cast<CLI::Option&>(option);
  try {
    for (int i = 0;; ++i) {
      const std::string& name = checked.get_validator(i)->get_name();
      if (!name.starts_with(kWordsMark)) continue;
      return CLI::detail::split(name.substr(kWordsMark.size()), kWordsSeparator);
    }
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

std::string flag_names(std::string_view names) {
  std::string known, marked;
  for (const std::string& name : CLI::detail::split(std::string(names), ',')) {
    const std::string stored = stored_name(name);
    if (is_marked(stored)) {
      marked += "," + stored;
    } else {
      known += concat(known.empty() ? "" : ",", stored);
    }
  }
  // CLI11's messages name an option by its first long name.
  return known.empty() ? marked.substr(1) : known + marked;
}

bool takes_bare_model(const CLI::App& app) {
  const CLI::Option* model = app.get_option_no_throw("--model");
  if (!model || model->get_type_name() != "FILE") return false;
  const std::vector<const CLI::Option*> options = app.get_options();
  return std::none_of(options.begin(), options.end(), [](const CLI::Option* o) { return o->get_positional(); });
}

bool takes_bare_prompt(const CLI::App& app) {
  return takes_bare_model(app) && app.get_option_no_throw("--prompt") != nullptr;
}

void parse_arguments(CLI::App& app, const std::vector<std::string>& arguments) {
  app.formatter(help_formatter());
  for (CLI::Option* option : app.get_options([](const CLI::Option* o) { return !o->get_positional(); })) {
    option->allow_extra_args(false);
  }
  std::vector<std::string> reversed = unambiguous(app, arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining();
    wrong_use(concat("Unexpected argument ", extras.empty() ? "" : printable(extras.front(), 100),
                     ". Put text with spaces in quotes; ", app.get_name(), " --help lists the arguments."));
  }
}

}  // namespace infer
