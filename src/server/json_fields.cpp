#include "src/server/json_fields.h"

#include <cmath>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// How deep brackets outside of texts are nested; what is no JSON gives any number.
int nesting_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

ApiError invalid_json(const std::string& what) {
  return ApiError(400, "invalid_request_error", "[request] " + what, "invalid_json");
}

std::string range_of(double least, double most) { return concat("from ", least, " to ", most); }

}  // namespace

Json parse_json_object(std::string_view body, int max_depth) {
  if (nesting_depth(body) > max_depth) {
    throw invalid_json(concat("JSON nested at most ", max_depth, " deep, found more"));
  }
  Json json;
  try {
    json = Json::parse(body);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string text = error.what();
    const size_t bracket = text.find("] ");
    throw invalid_json("a JSON object, found " +
                       printable(bracket == std::string::npos ? text : text.substr(bracket + 2), 300));
  }
  if (!json.is_object()) throw invalid_json("a JSON object, found " + describe_json(json));
  return json;
}

std::string describe_json(const Json& value) {
  if (value.is_array()) return concat("an array of ", value.size());
  if (value.is_object()) return "an object";
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60);
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  const double number = value.is_number_float() ? value.get<double>() : std::nan("");
  if (!(number >= -0x1p63 && number < 0x1p63) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

const Json* JsonFields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::refuse(const char* name, const std::string& expected) const {
  const auto found = object_.find(name);
  const std::string what = found == object_.end() ? "nothing" : describe_json(*found);
  throw invalid_parameter(name_of(name), "expected " + expected + ", found " + what);
}

bool JsonFields::boolean(const char* name, bool otherwise) const {
  const Json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_boolean()) refuse(name, "true or false");
  return value->get<bool>();
}

std::optional<int64_t> JsonFields::integer(const char* name, int64_t least, int64_t most) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  const std::string expected = concat("a whole number from ", least, " to ", most);
  const std::optional<int64_t> number = whole_number(*value);
  if (!number || *number < least || *number > most) refuse(name, expected);
  return number;
}

std::optional<double> JsonFields::number(const char* name, double least, double most) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most)) refuse(name, "a number " + range_of(least, most));
  return number;
}

std::optional<std::string> JsonFields::text(const char* name, size_t max_bytes) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) refuse(name, "a string");
  if (value->get_ref<const std::string&>().size() > max_bytes) {
    throw invalid_parameter(name_of(name), concat("expected at most ", max_bytes, " bytes, found ",
                                                  value->get_ref<const std::string&>().size()));
  }
  return value->get<std::string>();
}

const Json* JsonFields::object(const char* name) const {
  const Json* value = find(name);
  if (value && !value->is_object()) refuse(name, "an object");
  return value;
}

const Json* JsonFields::array(const char* name, size_t max_size) const {
  const Json* value = find(name);
  if (!value) return nullptr;
  if (!value->is_array()) refuse(name, "an array");
  if (value->size() > max_size) refuse(name, concat("at most ", max_size, " entries"));
  return value;
}

}  // namespace infer
