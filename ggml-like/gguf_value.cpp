// Metadata values: type names, construction, typed look-up.
#include <limits>
#include <type_traits>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// Range of an integer type; the maximum of uint64 is stored as that of int64.
struct IntegerRange {
  int64_t min, max;
};

template <typename T>
constexpr IntegerRange range_of() {
  return {static_cast<int64_t>(std::numeric_limits<T>::min()), static_cast<int64_t>(std::numeric_limits<T>::max())};
}

IntegerRange integer_range(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return range_of<uint8_t>();
    case GgufType::kInt8:
      return range_of<int8_t>();
    case GgufType::kUint16:
      return range_of<uint16_t>();
    case GgufType::kInt16:
      return range_of<int16_t>();
    case GgufType::kUint32:
      return range_of<uint32_t>();
    case GgufType::kInt32:
      return range_of<int32_t>();
    case GgufType::kUint64:
      return {0, std::numeric_limits<int64_t>::max()};
    case GgufType::kInt64:
      return range_of<int64_t>();
    default:
      throw Error(ErrorCode::kInvalidArgument, concat("[gguf] ", gguf_type_name(type), " is not an integer type"));
  }
}

bool is_unsigned(GgufType type) {
  return type == GgufType::kUint8 || type == GgufType::kUint16 || type == GgufType::kUint32 ||
         type == GgufType::kUint64;
}

void check_in_range(GgufType type, int64_t number) {
  const IntegerRange range = integer_range(type);
  if (number >= range.min && number <= range.max) return;
  throw Error(ErrorCode::kInvalidArgument, concat("[gguf] ", number, " does not fit ", gguf_type_name(type)));
}

std::string describe(const GgufValue& value) {
  if (value.type != GgufType::kArray) return std::string(gguf_type_name(value.type));
  return concat("array of ", value.array_length(), " ", gguf_type_name(value.element_type));
}

[[noreturn]] void wrong_type(std::string_view key, const char* expected, const GgufValue& found) {
  throw Error(ErrorCode::kInvalidFile,
              concat("[gguf] key ", printable(key), ": expected ", expected, ", found ", describe(found)));
}

int64_t to_int64(std::string_view key, uint64_t number) {
  if (number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(number);
  throw Error(ErrorCode::kInvalidFile,
              concat("[gguf] key ", printable(key), ": expected a number below 2^63, found ", number));
}

// The elements of an array value if they are stored as Held, else nullptr.
template <typename Held>
const std::vector<Held>* elements(const GgufValue& value) {
  const auto* array = std::get_if<GgufValue::Array>(&value.value);
  return array ? std::get_if<std::vector<Held>>(array) : nullptr;
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return "uint8";
    case GgufType::kInt8:
      return "int8";
    case GgufType::kUint16:
      return "uint16";
    case GgufType::kInt16:
      return "int16";
    case GgufType::kUint32:
      return "uint32";
    case GgufType::kInt32:
      return "int32";
    case GgufType::kFloat32:
      return "float32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kUint64:
      return "uint64";
    case GgufType::kInt64:
      return "int64";
    case GgufType::kFloat64:
      return "float64";
  }
  return "unknown";
}

size_t GgufValue::array_length() const {
  const auto* array = std::get_if<Array>(&value);
  return array ? std::visit([](const auto& items) { return items.size(); }, *array) : 0;
}

GgufValue GgufValue::of_int(GgufType type, int64_t number) {
  check_in_range(type, number);
  GgufValue result;
  result.type = type;
  if (is_unsigned(type)) result.value = static_cast<uint64_t>(number);
  else result.value = number;
  return result;
}

GgufValue GgufValue::of_float32(float number) {
  GgufValue result;
  result.type = GgufType::kFloat32;
  result.value = double{number};
  return result;
}

GgufValue GgufValue::of_bool(bool flag) {
  GgufValue result;
  result.type = GgufType::kBool;
  result.value = flag;
  return result;
}

GgufValue GgufValue::of_string(std::string text) {
  GgufValue result;
  result.type = GgufType::kString;
  result.value = std::move(text);
  return result;
}

GgufValue GgufValue::of_ints(GgufType element_type, const std::vector<int64_t>& numbers) {
  for (const int64_t number : numbers) check_in_range(element_type, number);
  GgufValue result;
  result.type = GgufType::kArray;
  result.element_type = element_type;
  if (is_unsigned(element_type)) result.value = Array(std::vector<uint64_t>(numbers.begin(), numbers.end()));
  else result.value = Array(numbers);
  return result;
}

GgufValue GgufValue::of_floats(const std::vector<float>& numbers) {
  GgufValue result;
  result.type = GgufType::kArray;
  result.element_type = GgufType::kFloat32;
  result.value = Array(std::vector<double>(numbers.begin(), numbers.end()));
  return result;
}

GgufValue GgufValue::of_strings(std::vector<std::string> texts) {
  GgufValue result;
  result.type = GgufType::kArray;
  result.element_type = GgufType::kString;
  result.value = Array(std::move(texts));
  return result;
}

int64_t GgufTensor::n_elements() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;  // the parser has checked that this fits
  return n;
}

std::string GgufTensor::shape_string() const {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::optional<int64_t> GgufFile::get_int(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(&found->value)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&found->value)) return to_int64(key, *number);
  wrong_type(key, "an integer", *found);
}

std::optional<double> GgufFile::get_float(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* number = std::get_if<double>(&found->value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&found->value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<uint64_t>(&found->value)) return static_cast<double>(*number);
  wrong_type(key, "a number", *found);
}

std::optional<bool> GgufFile::get_bool(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(&found->value)) return *flag;
  wrong_type(key, "bool", *found);
}

std::optional<std::string> GgufFile::get_string(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&found->value)) return *text;
  wrong_type(key, "string", *found);
}

std::optional<std::vector<int64_t>> GgufFile::get_int_array(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* items = elements<int64_t>(*found)) return *items;
  if (const auto* items = elements<uint64_t>(*found)) {
    std::vector<int64_t> result;
    result.reserve(items->size());
    for (const uint64_t item : *items) result.push_back(to_int64(key, item));
    return result;
  }
  wrong_type(key, "an array of integers", *found);
}

std::optional<std::vector<uint64_t>> GgufFile::get_unsigned_array(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* items = elements<uint64_t>(*found)) return *items;
  if (const auto* items = elements<int64_t>(*found)) {
    if (std::none_of(items->begin(), items->end(), [](int64_t i) { return i < 0; })) {
      return std::vector<uint64_t>(items->begin(), items->end());
    }
  }
  wrong_type(key, "an array of unsigned integers", *found);
}

std::optional<std::vector<double>> GgufFile::get_float_array(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* items = elements<double>(*found)) return *items;
  if (const auto* items = elements<int64_t>(*found)) return std::vector<double>(items->begin(), items->end());
  if (const auto* items = elements<uint64_t>(*found)) return std::vector<double>(items->begin(), items->end());
  wrong_type(key, "an array of numbers", *found);
}

std::optional<std::vector<std::string>> GgufFile::get_string_array(std::string_view key) const {
  const GgufValue* found = find(key);
  if (!found) return std::nullopt;
  if (const auto* items = elements<std::string>(*found)) return *items;
  wrong_type(key, "an array of strings", *found);
}

}  // namespace infer
