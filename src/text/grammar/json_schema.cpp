#include "src/text/grammar/json_schema.h"

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/grammar/schema_compiler.h"

namespace infer::grammar {
namespace {

constexpr size_t kMaxJsonDepth = 500;  // of the schema's own JSON
constexpr size_t kMaxMembers = 5000;   // per object: the parser compares each key with all earlier ones

// Rejects nesting and objects that would take the parser too long. Other errors are left to the parser.
void check_shape(std::string_view text) {
  std::vector<size_t> commas;  // of each open bracket
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      commas.push_back(c == '[' ? SIZE_MAX / 2 : 0);
      if (commas.size() > kMaxJsonDepth)
        refuse_schema("#", concat("at most ", kMaxJsonDepth, " levels of JSON"), "more");
    } else if ((c == ']' || c == '}') && !commas.empty()) {
      commas.pop_back();
    } else if (c == ',' && !commas.empty() && ++commas.back() == kMaxMembers) {
      refuse_schema("#", concat("at most ", grouped(kMaxMembers), " members of each object"), "more");
    }
  }
}

}  // namespace

Json parse_schema_text(std::string_view text, const Limits& limits) {
  if (text.size() > limits.source_bytes)
    refuse_schema("#", concat("at most ", grouped(limits.source_bytes), " bytes"), grouped(text.size()));
  check_shape(text);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    const auto* parse = dynamic_cast<const Json::parse_error*>(&error);
    refuse_schema("#", "JSON", concat("an error at byte ", parse ? parse->byte : 0));
  }
}

std::shared_ptr<const Grammar> parse_json_schema(std::string_view text, const SchemaOptions& options,
                                                 std::vector<std::string>* warnings, const Limits& limits) {
  const Json root = parse_schema_text(text, limits);
  auto grammar = std::make_shared<const Grammar>(schema_grammar(root, options, warnings, limits));
  if (grammar->automaton().start() == kNoId)
    refuse_schema("#", "a schema that some value satisfies", "one that none does");
  return grammar;
}

}  // namespace infer::grammar
