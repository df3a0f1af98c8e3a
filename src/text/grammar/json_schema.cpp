#include "src/text/grammar/json_schema.h"

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/grammar/schema_compiler.h"

namespace infer::grammar {
namespace {

constexpr int kMaxDepth = 500;  // of the schema's own JSON

Json parse_schema_text(std::string_view text, const Limits& limits) {
  if (text.size() > limits.source_bytes)
    refuse_schema("#", concat("at most ", grouped(limits.source_bytes), " bytes"), grouped(text.size()));
  const auto watch = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMaxDepth) refuse_schema("#", concat("at most ", kMaxDepth, " levels of JSON"), "more");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    const auto* parse = dynamic_cast<const Json::parse_error*>(&error);
    refuse_schema("#", "JSON", concat("an error at byte ", parse ? parse->byte : 0));
  }
}

}  // namespace

std::shared_ptr<const Grammar> parse_json_schema(std::string_view text, const SchemaOptions& options,
                                                 std::vector<std::string>* warnings, const Limits& limits) {
  const Json root = parse_schema_text(text, limits);
  auto grammar = std::make_shared<const Grammar>(SchemaCompiler(root, options, warnings, limits).run(), limits);
  if (grammar->automaton().start() == kNoId)
    refuse_schema("#", "a schema that some value satisfies", "one that none does");
  return grammar;
}

}  // namespace infer::grammar
