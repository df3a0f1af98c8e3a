// How an option's names are stored and shown. CLI11 has no form for names with one dash and several letters (-ngl), so
// each is stored as a name with two dashes and a mark.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace infer {

// The name as CLI11 stores it: "-ngl" becomes "--.ngl". Nobody types "--.ngl".
std::string stored_name(std::string_view typed);
bool is_marked(std::string_view stored);

// All names of an option as a user types them, those with one dash first.
std::vector<std::string> typed_names(const CLI::Option& option);

// The name among `known` that differs least from `typed`, if the two are similar enough for a typing error; else "".
std::string nearest_name(const std::string& typed, const std::vector<std::string>& known);

}  // namespace infer
