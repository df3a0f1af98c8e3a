#include "src/text/tool_calls/loose_json.h"

#include <algorithm>

#include "src/text/ordered_json.h"
#include "src/text/tool_calls/call_pattern.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

// The JSON literal for a Python name; "" for others.
std::string_view json_word(std::string_view name) {
  return name == "True" ? "true" : name == "False" ? "false" : name == "None" ? "null" : "";
}

bool is_hex(std::string_view digits) {
  return digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Converts the contents of a Python string to a JSON string. Escapes that JSON does not have are kept as text.
std::string converted_string(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += json_escaped(text.substr(at, 1));
      continue;
    }
    const char escape = text[++at];
    const bool code = escape == 'u' && text.size() - at > 4 && is_hex(text.substr(at + 1, 4));
    if (escape == '\'') out += escape;
    else if (code || std::string_view("\"\\nrtbf").find(escape) != std::string_view::npos) out += {'\\', escape};
    else out += "\\\\" + json_escaped(text.substr(at, 1));
  }
  return out + '"';
}

// Appends the string that begins at `at`, in either kind of quotes, and returns the offset after it.
size_t convert_string(std::string_view text, size_t at, std::string& out) {
  size_t end = at + 1;
  while (end < text.size() && text[end] != text[at]) end += text[end] == '\\' ? 2 : 1;
  end = std::min(end, text.size());
  out += converted_string(text.substr(at + 1, end - at - 1));
  return end + 1;
}

// Converts a Python literal to JSON; for anything else the result is not valid JSON.
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
  const std::string_view bare = trimmed(text);
  const bool quoted = bare.starts_with('"') || bare.starts_with('\'');
  if (kind == ParameterKind::kJson || !quoted) {
    if (ordered_json::accept(bare)) return std::string(bare);
    if (std::string json = converted(bare); ordered_json::accept(json)) return json;
  }
  return json_string(text);
}

std::string json_of_python(std::string_view text) {
  const std::string_view bare = trimmed(text);
  const bool quoted = bare.size() > 1 && (bare.front() == '"' || bare.front() == '\'') && bare.back() == bare.front();
  if (!quoted) return json_of_text(bare, ParameterKind::kJson);
  std::string json = converted_string(bare.substr(1, bare.size() - 2));
  return ordered_json::accept(json) ? json : json_string(bare.substr(1, bare.size() - 2));
}

}  // namespace infer
