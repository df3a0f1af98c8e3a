// The values of JSON Schema's `format` as patterns. Each matches only texts that validators accept, but not always all
// of them.
#pragma once

#include <string>
#include <string_view>

namespace infer::grammar {

struct SchemaFormat {
  enum class Kind {
    kPattern,      // matched by `pattern`
    kAnnotation,   // no validator checks it
    kUnsupported,  // validators check it, but it cannot be enforced here
  };
  Kind kind;
  std::string pattern;
  uint32_t shortest = 0;  // minimum length of a match
};

SchemaFormat schema_format(std::string_view name);

}  // namespace infer::grammar
