#include "src/model/config_reader.h"

#include <algorithm>
#include <array>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// Keys that no architecture reads and that have no effect on the result.
constexpr std::array<std::string_view, 3> kWithoutEffect = {
    "vocab_size",              // implied by the embedding's shape
    "rope.scaling.finetuned",  // whether the model was trained with the scaling
    "tensor_data_layout",      // a note left by old converters
};

// Formats a value for an error message.
std::string show(const GgufValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value.value)) return concat(*i);
  if (const auto* u = std::get_if<uint64_t>(&value.value)) return concat(*u);
  if (const auto* d = std::get_if<double>(&value.value)) return concat(*d);
  if (const auto* b = std::get_if<bool>(&value.value)) return *b ? "true" : "false";
  if (const auto* s = std::get_if<std::string>(&value.value)) return concat('"', printable(*s, 60), '"');
  return concat("[", value.array_length(), " values]");
}

int checked(const std::string& key, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) reject_value(key, concat(low, " to ", high), value);
  return static_cast<int>(value);
}

}  // namespace

ConfigReader::ConfigReader(const GgufFile& file, ModelPart part) : file_(file), part_(part) {
  const std::optional<std::string> name = file.get_string("general.architecture");
  if (!name) reject_value("general.architecture", "the name of an architecture", "none");
  architecture_ = *name;
  for (const std::string_view key : kWithoutEffect) ignore(key);
}

std::string ConfigReader::mark(std::string_view key) {
  std::string full = architecture_ + "." + std::string(key);
  asked_.insert(full);
  return full;
}

int ConfigReader::count(std::string_view key, int64_t low, int64_t high, std::optional<int> fallback) {
  const std::string full = mark(key);
  const std::optional<int64_t> value = file_.get_int(full);
  if (value) return checked(full, *value, low, high);
  if (!fallback) reject_value(full, "a number", "none");
  return checked(full, *fallback, low, high);
}

std::vector<int> ConfigReader::counts(std::string_view key, int n, int64_t low, int64_t high,
                                      const std::vector<int>* fallback) {
  const std::string full = mark(key);
  const GgufValue* value = file_.find(full);
  if (!value && fallback) return *fallback;
  if (!value || value->type != GgufType::kArray) return std::vector<int>(n, count(key, low, high));
  const std::vector<int64_t> array = *file_.get_int_array(full);
  if (array.size() != static_cast<size_t>(n)) {
    reject_value(full, concat("one number, or one for each of ", n, " layers"), array.size());
  }
  std::vector<int> numbers;
  for (const int64_t v : array) numbers.push_back(checked(full, v, low, high));
  return numbers;
}

std::vector<int> ConfigReader::counts_of_first(std::string_view key, int n, int64_t low, int64_t high) {
  const std::string full = mark(key);
  const std::optional<std::vector<int64_t>> array = file_.get_int_array(full);
  if (!array || array->size() < static_cast<size_t>(n)) {
    reject_value(full, concat("numbers for ", n, " layers"), array ? array->size() : 0);
  }
  std::vector<int> numbers;
  for (int i = 0; i < n; ++i) numbers.push_back(checked(full, (*array)[i], low, high));
  return numbers;
}

bool ConfigReader::has_tensor(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

std::optional<std::vector<bool>> ConfigReader::flags(std::string_view key, int n) {
  const std::string full = mark(key);
  const GgufValue* value = file_.find(full);
  const auto* array = value ? std::get_if<GgufValue::Array>(&value->value) : nullptr;
  if (!array) return std::nullopt;
  if (value->array_length() != static_cast<size_t>(n)) {
    reject_value(full, concat("one flag for each of ", n, " layers"), value->array_length());
  }
  if (const auto* flags = std::get_if<std::vector<bool>>(array)) return *flags;
  const std::vector<int64_t> numbers = *file_.get_int_array(full);
  return std::vector<bool>(numbers.begin(), numbers.end());
}

std::vector<float> ConfigReader::numbers(std::string_view key, int n, double low, double high,
                                         const std::vector<float>& fallback) {
  return find_numbers(mark(key), n, low, high).value_or(fallback.empty() ? std::vector<float>(n, 0) : fallback);
}

std::vector<float> ConfigReader::numbers_without_prefix(std::string_view key, int n, double low, double high) {
  const std::string full(key);
  const std::optional<std::vector<float>> found = find_numbers(full, n, low, high);
  if (!found) reject_value(full, "a number", "none");
  return *found;
}

std::optional<std::vector<float>> ConfigReader::find_numbers(const std::string& full, int n, double low,
                                                             double high) const {
  const GgufValue* value = file_.find(full);
  if (!value || value->type != GgufType::kArray) {
    const std::optional<double> one = find_number(full, low, high);
    if (!one) return std::nullopt;
    return std::vector<float>(n, static_cast<float>(*one));
  }
  const std::vector<double> array = *file_.get_float_array(full);
  if (array.size() != static_cast<size_t>(n)) {
    reject_value(full, concat("one number, or one for each of ", n, " layers"), array.size());
  }
  for (const double v : array) {
    if (!(v >= low && v <= high)) reject_value(full, concat(low, " to ", high), v);
  }
  return std::vector<float>(array.begin(), array.end());
}

double ConfigReader::number(std::string_view key, double low, double high, std::optional<double> fallback) {
  const std::string full = mark(key);
  const std::optional<double> value = find_number(full, low, high);
  if (!value && !fallback) reject_value(full, "a number", "none");
  return value.value_or(fallback.value_or(0));
}

std::optional<double> ConfigReader::find_number(const std::string& full, double low, double high) const {
  const GgufValue* found = file_.find(full);
  const bool flag = found && found->type == GgufType::kBool;
  const std::optional<double> value = flag ? *file_.get_bool(full) : file_.get_float(full);
  if (value && !(*value >= low && *value <= high)) reject_value(full, concat(low, " to ", high), *value);
  return value;
}

std::string ConfigReader::text(std::string_view key, std::string_view fallback) {
  return file_.get_string(mark(key)).value_or(std::string(fallback));
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  return file_.get_string_array(mark(key)).value_or(std::vector<std::string>{});
}

std::vector<uint64_t> ConfigReader::unsigned_numbers(std::string_view key) {
  return file_.get_unsigned_array(mark(key)).value_or(std::vector<uint64_t>{});
}

void ConfigReader::only(std::string_view key, std::initializer_list<double> values) {
  const std::string full = mark(key);
  const GgufValue* value = file_.find(full);
  if (!value) return;
  const double found = value->type == GgufType::kBool ? *file_.get_bool(full) : *file_.get_float(full);
  if (std::find(values.begin(), values.end(), found) != values.end()) return;
  throw Error(ErrorCode::kUnsupported,
              concat("[model] key ", full, " = ", show(*value), " is not supported and changes the result"));
}

void ConfigReader::finish() const {
  const std::string prefix = architecture_ + ".";
  for (const auto& [key, value] : file_.metadata()) {
    if (!key.starts_with(prefix) || asked_.contains(key)) continue;
    throw Error(ErrorCode::kUnsupported, concat("[model] key ", printable(key, 100), " = ", show(value),
                                                " is not supported and may change the result"));
  }
}

}  // namespace infer
