#include "src/server/json_fields.h"

#include <cmath>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

std::string range_of(double least, double most) { return concat("from ", least, " to ", most); }

}  // namespace

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
  const std::string what = found == object_.end() ? "none" : describe_json(*found);
  throw unexpected_value(name_of(name), expected, what);
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
    throw unexpected_value(name_of(name), concat("at most ", grouped(max_bytes), " bytes"),
                           grouped(value->get_ref<const std::string&>().size()));
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
  if (value->size() > max_size) refuse(name, concat("at most ", grouped(max_size), " entries"));
  return value;
}

}  // namespace infer
