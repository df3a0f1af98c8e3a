// The tools a request offers: their names, and which of their parameters are strings. Immutable; any number of threads.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "src/text/ordered_json.h"

namespace infer {

// How a parameter's value is written in formats with untyped text.
enum class ParameterKind {
  kString,  // as plain text
  kJson,    // as JSON
  kMixed,   // either, or unknown: JSON if it is valid JSON other than a string
};

class ToolSet {
 public:
  ToolSet() = default;
  // `tools`: an array of {"type": "function", "function": {"name", "parameters"}}, or of just the functions. Other
  // entries are ignored.
  explicit ToolSet(const nlohmann::ordered_json& tools);

  bool empty() const { return tools_.empty(); }
  bool contains(std::string_view name) const { return tools_.find(name) != tools_.end(); }
  // kMixed for a tool or a parameter that does not exist.
  ParameterKind parameter(std::string_view tool, std::string_view name) const;

 private:
  using Parameters = std::map<std::string, ParameterKind, std::less<>>;
  std::map<std::string, Parameters, std::less<>> tools_;
};

}  // namespace infer
