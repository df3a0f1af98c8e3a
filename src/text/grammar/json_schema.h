// JSON schemas (2020-12, and draft 7 where its syntax differs) as grammars of the JSON texts that they allow.
// docs/grammars.md lists what is enforced. What cannot be enforced is an error, never silently ignored. Free functions,
// no state.
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
  bool lenient = false;  // ignore keywords that cannot be enforced, and name them in `warnings`
};

// Parses the text of a schema. Throws Error(kInvalidArgument) if it is not JSON, too large or too deep.
nlohmann::ordered_json parse_schema_text(std::string_view text, const Limits& limits = {});

// Every text the grammar accepts is valid. Keys come in the order of `properties`, then all others. Throws
// Error(kInvalidArgument) naming the keyword and its JSON pointer.
std::shared_ptr<const Grammar> parse_json_schema(std::string_view text, const SchemaOptions& options = {},
                                                 std::vector<std::string>* warnings = nullptr,
                                                 const Limits& limits = {});

}  // namespace infer::grammar
