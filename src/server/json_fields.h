// Reading members of a request's JSON: each with its type and range, so that what is wrong is named. A member that is
// absent or null keeps the default; members nobody asks for are ignored. Everything throws ApiError (400). Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/server/api_error.h"
#include "src/server/json_parser.h"

namespace infer {

// An object whose members are read. `path` is what errors put before a member's name, "" for the body itself.
// The object must outlive it.
class JsonFields {
 public:
  explicit JsonFields(const Json& object, std::string path = "") : object_(object), path_(std::move(path)) {}

  // The member, or nullptr when it is absent or null.
  const Json* find(const char* name) const;
  std::string name_of(const char* name) const { return path_ + name; }

  bool boolean(const char* name, bool otherwise) const;
  // 3.0 counts as 3: some clients know one type of number only.
  std::optional<int64_t> integer(const char* name, int64_t least, int64_t most) const;
  // Finite, in [least, most].
  std::optional<double> number(const char* name, double least, double most) const;
  // A text of at most `max_bytes`.
  std::optional<std::string> text(const char* name, size_t max_bytes = SIZE_MAX) const;
  // nullptr when absent.
  const Json* object(const char* name) const;
  const Json* array(const char* name, size_t max_size) const;

  // 400 that says what the member must be and what it is.
  [[noreturn]] void refuse(const char* name, const std::string& expected) const;

 private:
  const Json& object_;
  std::string path_;
};

// The value of a whole number, 3.0 as well as 3; nullopt for whatever else, and beyond 64 bits with sign.
std::optional<int64_t> whole_number(const Json& value);

// What a value is, in a few printable characters: `"abc"`, `-3`, `an array of 5`.
std::string describe_json(const Json& value);

}  // namespace infer
