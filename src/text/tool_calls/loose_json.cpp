#include "src/text/tool_calls/loose_json.h"

#include <algorithm>

#include "src/text/tool_calls/call_pattern.h"
#include "src/text/tool_calls/json_scanner.h"

namespace infer {
namespace {

// The word of JSON for a name of Python; "" for others.
std::string_view json_word(std::string_view name) {
  return name == "True" ? "true" : name == "False" ? "false" : name == "None" ? "null" : "";
}

// Appends the string that begins at `at`, in either quote, and returns the offset after it.
size_t convert_string(std::string_view text, size_t at, std::string& out) {
  const char quote = text[at++];
  out += '"';
  for (; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      if (text[at] != '\'') out += '\\';
      out += text[at];
    } else {
      out += json_escaped(text.substr(at, 1));
    }
  }
  out += '"';
  return at + 1;
}

// Python's literal as JSON; what is no literal gives text that is no JSON.
std::string converted(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"' || text[at] == '\'') {
      at = convert_string(text, at, out);
      continue;
    }
    size_t end = at;
    while (end < text.size() && ((text[end] | 0x20) >= 'a' && (text[end] | 0x20) <= 'z')) ++end;
    end = std::max(end, at + 1);
    const std::string_view name = text.substr(at, end - at), word = json_word(name);
    out += word.empty() ? name : word;
    at = end;
  }
  return out;
}

}  // namespace

std::string json_escaped(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20) out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    else out += c;
  }
  return out;
}

std::string json_string(std::string_view text) { return '"' + json_escaped(text) + '"'; }

std::string json_of_text(std::string_view text, ParameterKind kind) {
  if (kind == ParameterKind::kString) return json_string(text);
  const std::string_view bare = trimmed(text);
  const bool quoted = bare.starts_with('"') || bare.starts_with('\'');
  if (kind == ParameterKind::kJson || !quoted) {
    if (is_json(bare)) return std::string(bare);
    if (std::string json = converted(bare); is_json(json)) return json;
  }
  return json_string(text);
}

}  // namespace infer
