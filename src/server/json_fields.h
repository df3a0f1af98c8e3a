// Reads members of a request's JSON, checking type and range, so that errors name the member. A member that is absent
// or null keeps its default; unknown members are ignored. Everything throws ApiError (400). Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/server/api_error.h"
#include "src/server/json_parser.h"

namespace infer {

// Reads the members of an object. `path` precedes member names in errors; "" for the body itself. The object must
// outlive it.
class JsonFields {
 public:
  explicit JsonFields(const Json& object, std::string path = "") : object_(object), path_(std::move(path)) {}

  // The member, or nullptr if it is absent or null.
  const Json* find(const char* name) const;
  std::string name_of(const char* name) const { return path_ + name; }

  bool boolean(const char* name, bool otherwise) const;
  // 3.0 counts as 3, because some clients have only one number type.
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most) const;
  // Finite, in [least, most].
  std::optional<double> number(const char* name, double least, double most) const;
  // A string of at most `max_bytes`.
  std::optional<std::string> text(const char* name, size_t max_bytes = SIZE_MAX) const;
  const Json& object() const { return object_; }
  // nullptr if absent
  const Json* object(const char* name) const;
  const Json* array(const char* name, size_t max_size) const;

  // Throws ApiError (400) saying what the member must be and what it is.
  [[noreturn]] void refuse(const char* name, const std::string& expected) const;

 private:
  const Json& object_;
  std::string path_;
};

// The value of an integer, also if written as 3.0; nullopt for anything else and beyond 64 bits (signed).
std::optional<int64_t> whole_number(const Json& value);

// Describes a value in a few printable characters: `"abc"`, `-3`, `an array of 5`.
std::string describe_json(const Json& value);

}  // namespace infer
