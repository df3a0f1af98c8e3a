// infer grammar --bench: how long it takes to compile schemas, and to find the tokens that they allow.
#pragma once

#include <string>

#include "src/text/grammar/json_schema.h"

namespace infer {

// Reads JSON lines from standard input, {"schema", "texts"}, and prints times to standard output. Each text is taken
// as an answer in the tokens of the model. Throws Error for a line that is something else, and for a schema that is
// refused.
void bench_grammars(const std::string& model_file, const grammar::SchemaOptions& options);

}  // namespace infer
