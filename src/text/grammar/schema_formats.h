// The values of JSON Schema's `format` as patterns. Each takes only texts that validators take, not always all of them.
#pragma once

#include <string>
#include <string_view>

namespace infer::grammar {

struct SchemaFormat {
  enum class Kind {
    kPattern,      // `pattern` says what is taken
    kAnnotation,   // no validator checks it
    kUnsupported,  // validators check it, we cannot
  };
  Kind kind;
  std::string pattern;
  uint32_t shortest = 0;  // the least length of what the pattern matches
};

SchemaFormat schema_format(std::string_view name);

}  // namespace infer::grammar
