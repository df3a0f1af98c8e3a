// What the tests of the template language share.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>

#include "src/text/jinja/template.h"
#include "src/text/ordered_json.h"

namespace infer::test {

// 15 January 2026, 10:30:00, the clock of the recorded results.
std::tm recorded_time();

// Renders with that clock.
std::string render(const std::string& source,
                   const nlohmann::ordered_json& variables = nlohmann::ordered_json::object());

// The error, or "" and a failed check when there is none.
std::string render_error(const std::string& source,
                         const nlohmann::ordered_json& variables = nlohmann::ordered_json::object());

// The whole file; a failed check if it cannot be opened.
std::string read_text(const std::filesystem::path& path);
nlohmann::ordered_json read_ordered_json(const std::string& path);

}  // namespace infer::test
