#include "tools/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <memory>
#include <optional>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// CLI11 stores -ngl as a name with two dashes; this character before its letters marks it. Nobody types "--.ngl".
constexpr char kOneDash = '.';

[[noreturn]] void wrong_use(const std::string& sentence) { throw Error(ErrorCode::kInvalidArgument, sentence); }

// Lists an option's names as users type them, short ones first: -ngl,--n-gpu-layers.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string names = CLI::Formatter::make_option_name(option, positional);
    std::string one_dash, two_dashes;
    for (const std::string& name : CLI::detail::split(names, ',')) {
      const bool marked = name.size() > 2 && name[2] == kOneDash;
      const bool has_two = !marked && name.starts_with("--");
      (has_two ? two_dashes : one_dash) += concat(",", marked ? "-" + name.substr(3) : name);
    }
    return (one_dash + two_dashes).substr(1);
  }
};

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
  std::string key = name;
  if (name.starts_with("--")) {
    if (name.size() > 2 && name[2] == kOneDash) return nullptr;
  } else if (name.size() > 2) {
    key = concat("--", kOneDash, name.substr(1));
  }
  return app.get_option_no_throw(key);
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Formats a value for a message.
std::string shown(const std::string& value) { return value.empty() ? "An empty value" : printable(value, 60); }

std::string count(int64_t n) {
  return n < 0 ? concat("-", grouped(static_cast<uint64_t>(-n))) : grouped(static_cast<uint64_t>(n));
}

bool is_one_letter(const std::string& name) { return name.size() == 2; }

// The likely intention behind `argument`, an unknown option: "Write -n 5.", or "".
std::string suggestion(const CLI::App& app, const std::string& argument) {
  const Written written = split(argument);
  if (argument.starts_with("--")) return "";
  if (const std::string longer = "-" + written.name; !is_one_letter(written.name) && find_option(app, longer)) {
    return concat("Write ", printable(longer), ". ");
  }
  // The value may be attached. If it is only letters, this is more likely an unknown option's name.
  const std::string letter = argument.substr(0, 2), rest = argument.substr(2);
  const CLI::Option* option = find_option(app, letter);
  const bool is_name =
      !rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0])) &&
      std::all_of(rest.begin(), rest.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
  if (rest.empty() || is_name || !option || !takes_value(*option)) return "";
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

// Rewrites the arguments into the only form CLI11 reads unambiguously: long names, each followed by its value as a
// separate argument.
std::vector<std::string> unambiguous(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<ptrdiff_t>(i), arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      result.push_back(argument);
      continue;
    }
    const Written written = split(argument);
    const CLI::Option* option = find_option(app, written.name);
    if (!option) refuse_option(app, argument);
    const std::string name = option->get_name();
    if (!takes_value(*option)) {
      result.push_back(written.value ? concat(name, "=", *written.value) : name);
      continue;
    }
    const bool has_value = written.value || i + 1 < arguments.size();
    const std::string value = written.value ? *written.value : has_value ? arguments[++i] : "";
    // For a list without entries, CLI11 would take the next argument as the value.
    const bool empty_list = !value.empty() && value.find_first_not_of(option->get_delimiter()) == std::string::npos;
    if (!has_value || empty_list) {
      const std::string type = option->get_type_name();
      // Drops the range that CLI11 appends after a colon.
      wrong_use(concat(written.name, " needs a value. Write ", name, " ", type.substr(0, type.find(':')), "."));
    }
    result.push_back(name);
    result.push_back(value);
  }
  return result;
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
    return concat(shown(text), " is not valid. Give a whole number ",
                  bounded ? concat("from ", count(least), " to ", count(most)) : concat("of at least ", count(least)),
                  ".");
  };
  return {check, ""};
}

CLI::Validator number(double least, double most) {
  const auto check = [least, most](std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
    return concat(shown(text), " is not valid. Give a number from ", least, " to ", most, ".");
  };
  return {check, ""};
}

CLI::Validator any_number() {
  const auto check = [](std::string& text) -> std::string {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) ? "" : concat(shown(text), " is not valid. Give a number.");
  };
  return {check, ""};
}

CLI::Validator number_above_zero() {
  const auto check = [](std::string& text) -> std::string {
    double value = 0;
    const bool valid = CLI::detail::lexical_cast(text, value) && value > 0;
    return valid ? "" : concat(shown(text), " is not valid. Give a number above 0.");
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
    return concat(shown(text), " is not valid. Choose ", list, ".");
  };
  return {check, ""};
}

std::string flag_names(std::string_view names) {
  std::string known, marked;
  while (!names.empty()) {
    const size_t comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    if (name.size() > 2 && name[0] == '-' && name[1] != '-') {
      marked += concat(",--", kOneDash, name.substr(1));
    } else {
      known += concat(known.empty() ? "" : ",", name);
    }
  }
  // CLI11's messages name an option by its first long name.
  return known + marked;
}

void parse_arguments(CLI::App& app, const std::vector<std::string>& arguments) {
  app.formatter(std::make_shared<HelpFormatter>());
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
