#include "src/text/tool_calls/call_problems.h"

#include <algorithm>

#include "ggml-like/message.h"
#include "src/text/ordered_json.h"

namespace infer {
namespace {

constexpr size_t kMaxProblems = 8, kShownBytes = 80;

std::string shown(std::string_view text) {
  return text.size() <= kShownBytes ? std::string(text) : std::string(text.substr(0, kShownBytes)) + "...";
}

// The text before the first call's name, id or object; "" if the format has none, or one that content may contain.
std::string marker_of(const ToolCallFormat& format) {
  if (format.kind == ToolCallFormat::Kind::kHarmony) return "to=functions.";
  const CallSpelling& spelling = format.spelling;
  const bool series = !trimmed(spelling.series_begin).empty();
  const std::string text = series ? spelling.series_begin : spelling.call_begin + spelling.after_name;
  std::string marker(trimmed(text.substr(0, text.find_first_of(std::string{kIdPlace, kNamePlace}))));
  return marker.size() > 1 ? marker : "";
}

// Why a text is no JSON object; "" if it is one.
std::string json_problem(std::string_view text) {
  try {
    return nlohmann::ordered_json::parse(text).is_object() ? "" : "they are no object";
  } catch (const nlohmann::ordered_json::parse_error& error) {
    return concat("not JSON at byte ", error.byte);
  }
}

}  // namespace

std::vector<std::string> call_problems(const ToolCallFormat& format, const ToolSet& tools, std::string_view content,
                                       const std::vector<WrittenCall>& calls) {
  std::vector<std::string> problems;
  if (tools.empty() || !format.writes_calls()) return problems;
  const std::string marker = marker_of(format);
  const size_t at = marker.empty() ? std::string_view::npos : content.find(marker);
  if (at != std::string_view::npos)
    problems.push_back(concat("No call follows the marker in the content: ", shown(content.substr(at))));
  const std::string_view start = trimmed_start(content);
  if (format.known_names_only && start.starts_with('{'))
    problems.push_back(concat("The content begins with an object that is no call of a tool: ", shown(start)));
  for (const WrittenCall& call : calls) {
    if (problems.size() >= kMaxProblems) break;
    if (!tools.contains(call.name)) problems.push_back(concat("The tool ", shown(call.name), " was not offered."));
    if (const std::string why = json_problem(call.arguments); !why.empty())
      problems.push_back(
          concat("The arguments for ", shown(call.name), " are wrong, ", why, ": ", shown(call.arguments)));
  }
  return problems;
}

}  // namespace infer
