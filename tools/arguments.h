// The front of CLI11, for every command line of the program. CLI11 knows one-letter options that may be glued together
// (-abc is -a -b -c), which reads a mistyped or unknown -rea as -r ea. Here a word with one dash is one option: it is
// known as a whole or refused. One option takes one value, whatever that begins with.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

// The names of an option in the form that add_option and add_flag take. `names` is comma-separated as a user types
// them,
// "-ngl,--n-gpu-layers"; those with one dash and several letters are options of their own, which CLI11 has no form for.
std::string flag_names(std::string_view names);

// Parses `arguments`, without the program's name and that of the command, into what the options of `app` are bound to,
// and has --help show names as they are typed. Throws CLI::ParseError, and Error(kInvalidArgument) for an unknown
// option, a missing value or an argument too many: a sentence that says what to write instead.
void parse_arguments(CLI::App& app, const std::vector<std::string>& arguments);

// Checks of values, for CLI::Option::check. Each says in a sentence what is wrong and what may be given instead.
CLI::Validator not_empty();  // an unset shell variable leaves an empty value
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator any_number();  // NaN and infinity too
CLI::Validator number_above_zero();
CLI::Validator one_of(std::vector<std::string> words);

}  // namespace infer
