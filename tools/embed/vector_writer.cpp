#include "tools/embed/vector_writer.h"

#include <bit>
#include <charconv>
#include <iostream>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/ordered_json.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "F32 is written in memory order");

// The shortest numbers that read back as the same F32 values.
std::string list_of(std::span<const float> vector) {
  std::string text = "[";
  char number[32];
  for (const float x : vector) {
    if (text.size() > 1) text += ',';
    text.append(number, std::to_chars(number, number + sizeof(number), x).ptr);
  }
  return text + "]";
}

// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string npy_header(size_t n_rows, size_t n_columns) {
  constexpr size_t kAlignment = 64, kFixed = 10;  // bytes before the dictionary
  std::string dictionary =
      concat("{'descr': '<f4', 'fortran_order': False, 'shape': (", n_rows, ", ", n_columns, "), }");
  while ((kFixed + dictionary.size() + 1) % kAlignment != 0) dictionary += ' ';
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace

VectorFormat vector_format_of(const std::string& name) {
  if (name == "json") return VectorFormat::kJson;
  if (name == "jsonl") return VectorFormat::kJsonLines;
  return name == "npy" ? VectorFormat::kNpy : VectorFormat::kRaw;
}

VectorWriter::VectorWriter(What what, const std::string& path) : what_(std::move(what)) {
  if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
}

void VectorWriter::write(std::string_view bytes) {
  if (file_) return file_->write(bytes);
  if (!std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  }
}

void VectorWriter::begin(size_t n_values) {
  if (what_.format == VectorFormat::kNpy) write(npy_header(what_.n_texts, n_values));
  if (what_.format == VectorFormat::kJson) {
    write(concat("{\"object\":\"list\",\"model\":", nlohmann::ordered_json(what_.model).dump(), ",\"data\":["));
  }
}

void VectorWriter::add(std::span<const float> vector) {
  if (n_written_ == 0) begin(vector.size());
  switch (what_.format) {
    case VectorFormat::kJson:
      write(concat(n_written_ > 0 ? ",\n" : "\n", "{\"object\":\"", what_.kind, "\",\"index\":", n_written_, ",\"",
                   what_.kind, "\":", list_of(vector), "}"));
      break;
    case VectorFormat::kJsonLines:
      write(concat("{\"index\":", n_written_, ",\"", what_.kind, "\":", list_of(vector), "}\n"));
      break;
    case VectorFormat::kNpy:
    case VectorFormat::kRaw:
      write({reinterpret_cast<const char*>(vector.data()), vector.size_bytes()});
      break;
  }
  ++n_written_;
}

void VectorWriter::finish(int64_t n_tokens) {
  if (what_.format == VectorFormat::kJson) {
    write(concat("\n],\"usage\":{\"prompt_tokens\":", n_tokens, ",\"total_tokens\":", n_tokens, "}}\n"));
  }
  if (file_) return file_->finish();
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
}

}  // namespace infer
