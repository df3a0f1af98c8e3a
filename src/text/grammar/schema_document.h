// Reads a JSON schema: its keywords and references, and how several schemas that must all hold are merged into one.
// Independent of grammars. Used by one thread; the document outlives it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/ordered_json.h"

namespace infer::grammar {

using Json = nlohmann::ordered_json;

// The seven types of JSON Schema, as bits. Every integer is a number.
enum SchemaType : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = kNull | kBoolean | kNumber | kString | kArray | kObject,
};

// Throws Error(kInvalidArgument): "[schema] PLACE: expected X, found Y".
[[noreturn]] void refuse_schema(const std::string& place, const std::string& expected, const std::string& found);
// `name` as one step of a JSON pointer.
std::string pointer_step(std::string_view name);

class SchemaDocument {
 public:
  // `warn` gets keywords that cannot be enforced; it may throw.
  SchemaDocument(const Json& root, std::function<void(const std::string& place, const std::string& keyword)> warn)
      : root_(root), warn_(std::move(warn)) {}

  // Throws if `schema` is not a schema: unknown keywords and values of the wrong type. Does not look into subschemas.
  void check(const Json& schema, const std::string& place) const;
  // The schema that `schema` refers to; null if it has no reference.
  const Json* target(const Json& schema, const std::string& place) const;
  // Whether `keyword` is the only one that constrains values.
  static bool has_only(const Json& schema, std::string_view keyword);

  // The schema with $ref, allOf, anyOf and oneOf resolved: a value is valid if one of the results allows it. The
  // results live as long as the document.
  std::vector<const Json*> alternatives(const Json& schema, const std::string& place);
  // Throws unless it can be shown that no value is valid for two of the branches.
  void require_disjoint(const Json& branches, const std::string& place);

 private:
  std::vector<Json> flatten(const Json& schema, const std::string& place, int depth);
  std::vector<Json> combine(const std::vector<Json>& a, const std::vector<Json>& b, const std::string& place);
  Json merge(const Json& a, const Json& b, const std::string& place) const;
  Json merge_objects(const Json& a, const Json& b) const;
  bool disjoint(const Json& a, const Json& b, const std::string& place, int depth);
  bool disjoint_key(const Json& a, const Json& b, const std::string& place, int depth);

  const Json& root_;
  std::function<void(const std::string&, const std::string&)> warn_;
  std::deque<Json> merged_;
  size_t work_ = 0;

  void count_work(size_t steps, const std::string& place);
};

// What `type` allows.
unsigned schema_types(const Json& schema);
// The types of a value: a whole number is both an integer and a number.
unsigned type_bits(const Json& value);

}  // namespace infer::grammar
