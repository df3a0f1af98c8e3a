// Command-line parsing on top of CLI11, for every command. CLI11 allows one-letter options to be combined (-abc is -a
// -b -c), so it would read an unknown or mistyped -rea as -r ea. Here a word with one dash is a single option: a known
// one or an error. An option takes exactly one value, whatever it begins with.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

// An option's names in the form that add_option and add_flag take. `names` is comma-separated, as a user types them:
// "-ngl,--n-gpu-layers". Names with one dash and several letters, for which CLI11 has no form, become separate
// options.
std::string flag_names(std::string_view names);

// Whether a word without a dash can name the model file: `infer run model.gguf`. So for commands that have --model FILE
// and no other arguments.
bool takes_bare_model(const CLI::App& app);
// Whether a second one can be the prompt: `infer run model.gguf "Why is the sky blue?"`.
bool takes_bare_prompt(const CLI::App& app);

// Parses `arguments`, without the names of the program and the command, into the variables bound to the options of
// `app`, and makes --help show names as they are typed. Throws CLI::ParseError, and Error(kInvalidArgument) for an
// unknown option, a missing value or an extra argument, with a sentence that says what to write instead.
void parse_arguments(CLI::App& app, const std::vector<std::string>& arguments);

// Value checks for CLI::Option::check. Each reports in a sentence what is wrong and what to give instead.
CLI::Validator not_empty();  // an unset shell variable leaves an empty value
CLI::Validator whole_number(int64_t least, int64_t most);
CLI::Validator number(double least, double most);
CLI::Validator any_number();  // including NaN and infinity
CLI::Validator number_above_zero();
CLI::Validator one_of(std::vector<std::string> words);
// Accepts any value; `words` are for the completion in shells. For values that the command itself checks.
CLI::Validator suggests(const std::vector<std::string>& words);

// The words of one_of or suggests that an option checks its value with; empty if it has neither.
std::vector<std::string> suggested_words(const CLI::Option& option);

}  // namespace infer
