// JSON schemas (2020-12, and draft 7 where it is spelled otherwise) as grammars of the JSON texts that they allow.
// docs/grammars.md lists what is enforced. What is not is refused, never passed over. Free function, no state.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/ordered_json.h"

namespace infer::grammar {

struct SchemaOptions {
  bool compact = false;  // no spaces or line breaks between tokens
  bool lenient = false;  // keywords that cannot be enforced are passed over and named in `warnings`
};

// Reads the text of a schema. Throws Error(kInvalidArgument) if it is no JSON, or too large or deep.
nlohmann::ordered_json parse_schema_text(std::string_view text, const Limits& limits = {});

// Every text the grammar accepts is valid. Keys come in the order of `properties`, others after them. Throws
// Error(kInvalidArgument), which names the keyword and the JSON pointer of its place.
std::shared_ptr<const Grammar> parse_json_schema(std::string_view text, const SchemaOptions& options = {},
                                                 std::vector<std::string>* warnings = nullptr,
                                                 const Limits& limits = {});

}  // namespace infer::grammar
