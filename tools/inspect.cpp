#include "tools/inspect.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/model/arch/architecture.h"
#include "src/text/ordered_json.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownElements = 6;         // of a metadata array
constexpr size_t kShownStringBytes = 96;     // of a metadata string, in text
constexpr int64_t kChunkElements = 1 << 14;  // converted at once: a multiple of every block size

struct TypeTotal {
  uint64_t n_tensors = 0, n_parameters = 0, n_bytes = 0;
};

struct Totals {
  TypeTotal all;
  std::map<DataType, TypeTotal> by_type;

  explicit Totals(const GgufFile& file) {
    for (const GgufTensor& tensor : file.tensors()) {
      for (TypeTotal* total : {&all, &by_type[tensor.type]}) {
        ++total->n_tensors;
        total->n_parameters += static_cast<uint64_t>(tensor.n_elements());
        total->n_bytes += tensor.n_bytes;
      }
    }
  }
};

double bits_per_weight(const TypeTotal& total) {
  return total.n_parameters ? 8.0 * static_cast<double>(total.n_bytes) / static_cast<double>(total.n_parameters) : 0;
}

std::string format(const char* pattern, double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), pattern, number);
  return buffer;
}

// Uses the largest unit in which the number is at least one.
std::string scaled(uint64_t number, double step, std::initializer_list<const char*> units) {
  double value = static_cast<double>(number);
  auto unit = units.begin();
  for (; unit + 1 != units.end() && value >= step; ++unit) value /= step;
  return format(unit == units.begin() ? "%.0f " : "%.2f ", value) + *unit;
}

std::string count_text(uint64_t count) {
  std::string text = scaled(count, 1000, {"", "K", "M", "B", "T"});
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}
std::string right(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string to_text(const std::string& text) { return "\"" + printable(text, kShownStringBytes) + "\""; }
std::string to_text(bool flag) { return flag ? "true" : "false"; }
std::string to_text(double number) { return format("%.7g", number); }
std::string to_text(int64_t number) { return std::to_string(number); }
std::string to_text(uint64_t number) { return std::to_string(number); }
std::string to_text(const GgufValue::Array& array) {
  return std::visit(
      []<typename T>(const std::vector<T>& items) {
        std::string text = "[";
        for (size_t i = 0; i < std::min(items.size(), kShownElements); ++i) {
          text += (i ? ", " : "") + to_text(static_cast<const T&>(items[i]));
        }
        return text + (items.size() > kShownElements ? ", ...]" : "]");
      },
      array);
}

std::string type_text(const GgufValue& value) {
  if (value.type != GgufType::kArray) return std::string(gguf_type_name(value.type));
  return concat(gguf_type_name(value.element_type), "[", value.array_length(), "]");
}

void print_text(const GgufFile& file, const Totals& totals, bool list_tensors, std::ostream& out) {
  for (const auto& part : file.parts()) out << "file        " << printable_path(part) << "\n";
  out << "format      GGUF version " << file.version() << ", alignment " << file.alignment() << ", "
      << bytes_text(file.total_file_bytes()) << "\n";
  out << "tensors     " << totals.all.n_tensors << "\n";
  out << "parameters  " << totals.all.n_parameters << " (" << count_text(totals.all.n_parameters) << ")\n";
  out << "data        " << bytes_text(totals.all.n_bytes)
      << format(", %.3f bits per weight\n", bits_per_weight(totals.all));

  out << "\nmetadata: " << file.metadata().size() << " keys\n";
  size_t key_width = 0, type_width = 0;
  for (const auto& [key, value] : file.metadata()) {
    key_width = std::max(key_width, std::min<size_t>(printable(key).size(), 60));
    type_width = std::max(type_width, type_text(value).size());
  }
  for (const auto& [key, value] : file.metadata()) {
    out << "  " << padded(printable(key), key_width) << "  " << padded(type_text(value), type_width) << "  "
        << std::visit([](const auto& held) { return to_text(held); }, value.value) << "\n";
  }

  if (!totals.by_type.empty()) out << "\ntype      tensors  parameters        size  bits/weight\n";
  for (const auto& [type, total] : totals.by_type) {
    out << padded(std::string(traits(type).name), 8) << right(std::to_string(total.n_tensors), 9)
        << right(count_text(total.n_parameters), 12) << right(bytes_text(total.n_bytes), 12)
        << right(format("%.3f", bits_per_weight(total)), 13) << "\n";
  }
  if (!list_tensors) return;

  size_t name_width = 0, shape_width = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    name_width = std::max(name_width, printable(tensor.name).size());
    shape_width = std::max(shape_width, tensor.shape_string().size());
  }
  out << "\ntensors, slowest dimension first\n";
  for (const GgufTensor& tensor : file.tensors()) {
    out << "  " << padded(printable(tensor.name), name_width) << "  "
        << padded(std::string(traits(tensor.type).name), 8) << "  " << padded(tensor.shape_string(), shape_width)
        << right(bytes_text(tensor.n_bytes), 12) << "\n";
  }
}

std::string problem(const BadValue& bad) {
  return concat("tensor ", printable(bad.tensor->name), ": value ", bad.position(), " is ",
                std::isnan(bad.value) ? "NaN"
                : bad.value > 0       ? "infinity"
                                      : "-infinity");
}

void print_check(const ValueCheck& check, size_t n_tensors, std::ostream& out) {
  out << "\nverify\n";
  for (const BadValue& bad : check.bad) out << "  " << problem(bad) << "\n";
  for (const GgufTensor* tensor : check.unchecked) {
    out << "  tensor " << printable(tensor->name) << ": not checked, since there is no conversion from "
        << traits(tensor->type).name << "\n";
  }
  const size_t n_checked = n_tensors - check.unchecked.size();
  out << "  " << n_checked << " tensors checked, " << check.bad.size() << " with NaN or infinite values, "
      << check.unchecked.size() << " not checked\n";
}

Json metadata_json(const GgufValue& value) {
  Json entry{{"type", gguf_type_name(value.type)}};
  const auto* array = std::get_if<GgufValue::Array>(&value.value);
  if (!array) {
    std::visit(
        [&]<typename T>(const T& held) {
          if constexpr (!std::is_same_v<T, GgufValue::Array>) entry["value"] = held;
        },
        value.value);
    return entry;
  }
  entry["element_type"] = gguf_type_name(value.element_type);
  entry["length"] = value.array_length();
  Json first = Json::array();
  std::visit(
      [&]<typename T>(const std::vector<T>& items) {
        for (size_t i = 0; i < std::min(items.size(), kShownElements); ++i) first.push_back(static_cast<T>(items[i]));
      },
      *array);
  entry["first"] = std::move(first);
  return entry;
}

Json total_json(const TypeTotal& total) {
  return {{"n_tensors", total.n_tensors},
          {"n_parameters", total.n_parameters},
          {"n_bytes", total.n_bytes},
          {"bits_per_weight", bits_per_weight(total)}};
}

// Escapes control and non-ASCII characters as \uNNNN; invalid UTF-8 becomes U+FFFD.
void print_json(const GgufFile& file, const Totals& totals, const ValueCheck* check, std::ostream& out) {
  Json document;
  document["version"] = file.version();
  document["alignment"] = file.alignment();
  document["file_bytes"] = file.total_file_bytes();
  document["parts"] = Json::array();
  for (const auto& part : file.parts()) document["parts"].push_back(part.string());
  document["totals"] = total_json(totals.all);
  document["types"] = Json::object();
  for (const auto& [type, total] : totals.by_type)
    document["types"][std::string(traits(type).name)] = total_json(total);
  // An array, because each insertion into an ordered object searches all its keys.
  document["metadata"] = Json::array();
  for (const auto& [key, value] : file.metadata()) {
    Json entry{{"key", key}};
    entry.update(metadata_json(value));
    document["metadata"].push_back(std::move(entry));
  }
  document["tensors"] = Json::array();
  for (const GgufTensor& tensor : file.tensors()) {
    document["tensors"].push_back({{"name", tensor.name},
                                   {"type", traits(tensor.type).name},
                                   {"shape", tensor.shape},
                                   {"n_bytes", tensor.n_bytes},
                                   {"part", tensor.part},
                                   {"file_offset", tensor.file_offset}});
  }
  if (check) {
    Json bad = Json::array(), unchecked = Json::array();
    for (const BadValue& b : check->bad) {
      bad.push_back({{"tensor", b.tensor->name}, {"element", b.element}, {"message", problem(b)}});
    }
    for (const GgufTensor* tensor : check->unchecked) unchecked.push_back(tensor->name);
    document["verify"] = {{"bad", std::move(bad)}, {"unchecked", std::move(unchecked)}};
  }
  out << document.dump(2, ' ', true, Json::error_handler_t::replace) << "\n";
}

void print_architectures(bool json, std::ostream& out) {
  if (!json) {
    for (const ArchitectureEntry& entry : all_architectures()) {
      out << padded(std::string(entry.name), 16) << "  " << entry.models << "\n";
    }
    return;
  }
  Json list = Json::array();
  for (const ArchitectureEntry& entry : all_architectures()) {
    list.push_back({{"name", entry.name}, {"models", entry.models}});
  }
  out << Json{{"architectures", std::move(list)}}.dump(2) << "\n";
}

// Index of the first NaN or infinite value, stored in `bad`, or -1. `values` is scratch.
int64_t first_bad(const GgufTensor& tensor, const TypeTraits& type, std::vector<float>& values, float& bad) {
  const int64_t n = tensor.n_elements();
  const std::byte* blocks = tensor.data;
  for (int64_t start = 0; start < n; start += kChunkElements) {
    const int64_t n_chunk = std::min(kChunkElements, n - start);
    type.to_float(blocks, values.data(), n_chunk);
    blocks += row_bytes(tensor.type, n_chunk);
    const auto end = values.begin() + n_chunk;
    const auto at = std::find_if(values.begin(), end, [](float value) { return !std::isfinite(value); });
    if (at == end) continue;
    bad = *at;
    return start + (at - values.begin());
  }
  return -1;
}

}  // namespace

std::string BadValue::position() const {
  std::string text;
  int64_t rest = element;
  for (size_t i = tensor->shape.size(); i-- > 0;) {
    text = concat(rest % tensor->shape[i], text.empty() ? "" : ", ", text);
    rest /= tensor->shape[i];
  }
  return "[" + text + "]";
}

ValueCheck check_values(const GgufFile& file, unsigned n_threads) {
  const std::vector<GgufTensor>& tensors = file.tensors();
  struct Outcome {
    int64_t element = -1;
    float value = 0;
  };
  std::vector<Outcome> outcomes(tensors.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    std::vector<float> values(kChunkElements);
    for (size_t i = next++; i < tensors.size(); i = next++) {
      const TypeTraits& type = traits(tensors[i].type);
      if (type.to_float) outcomes[i].element = first_bad(tensors[i], type, values, outcomes[i].value);
    }
  };
  std::vector<std::future<void>> others;
  for (unsigned i = 1; i < n_threads; ++i) others.push_back(std::async(std::launch::async, work));
  work();
  for (auto& other : others) other.get();

  ValueCheck check;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!traits(tensors[i].type).to_float) check.unchecked.push_back(&tensors[i]);
    else if (outcomes[i].element >= 0) check.bad.push_back({&tensors[i], outcomes[i].element, outcomes[i].value});
  }
  return check;
}

int run_inspect(const InspectOptions& options, std::ostream& out) {
  if (options.architectures == !options.file.empty()) {
    throw Error(ErrorCode::kInvalidArgument, options.architectures
                                                 ? "--architectures needs no file. Give only one of them."
                                                 : "Name a model file, or give --architectures.");
  }
  if (options.architectures) {
    if (options.tensors || options.verify) {
      throw Error(ErrorCode::kInvalidArgument, "--tensors and --verify need a file, and --architectures has none.");
    }
    print_architectures(options.json, out);
    return 0;
  }
  const auto file = open_model(options.file, {.map_data = options.verify});
  const Totals totals(*file);
  std::optional<ValueCheck> check;
  if (options.json) {
    if (options.verify) check = check_values(*file, std::thread::hardware_concurrency());
    print_json(*file, totals, check ? &*check : nullptr, out);
  } else {
    print_text(*file, totals, options.tensors, out);
    out.flush();  // show what is known before the long read
    if (options.verify) check = check_values(*file, std::thread::hardware_concurrency());
    if (check) print_check(*check, file->tensors().size(), out);
  }
  return check && !check->bad.empty() ? 1 : 0;
}

std::function<int()> define_inspect(CLI::App& app) {
  const auto o = std::make_shared<InspectOptions>();
  app.add_option("file", o->file, "Model file (any part of a split one), or the name of a downloaded model")
      ->type_name("FILE");
  app.add_flag("--architectures", o->architectures, "List the architectures that the program runs, without a file");
  app.add_flag("--tensors", o->tensors, "List every tensor");
  app.add_flag("--verify", o->verify, "Read all data and look for NaN and infinity");
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_inspect(*o, std::cout); };
}

}  // namespace infer
