// Fuzz target for JSON schemas: any text as a schema, and then texts matched against it.
//
// Input: the schema; after a byte 0, if there is one, the text. Limits are small, so that an input takes milliseconds.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ggml-like/error.h"
#include "src/text/grammar/json_schema.h"
#include "tests/fuzz/walk_grammar.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace infer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  for (const bool lenient : {false, true}) {
    grammar::SchemaOptions options;
    options.lenient = lenient;
    try {
      const auto grammar = grammar::parse_json_schema(input.substr(0, end), options, nullptr, fuzz::small_limits());
      fuzz::walk_grammar(grammar, input.substr(end < size ? end + 1 : size));
    } catch (const Error&) {
    }
  }
  return 0;
}
