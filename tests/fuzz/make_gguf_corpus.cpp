// Writes the seed files of the GGUF fuzz target to a folder. Usage: make_gguf_corpus FOLDER
// The files are small because mutations of a small file reach the branches of the parser sooner.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"

namespace {

using namespace infer;
using Metadata = std::vector<std::pair<std::string, GgufValue>>;

void write(const std::filesystem::path& path, Metadata metadata, const std::vector<GgufWriter::TensorInfo>& tensors,
           uint32_t alignment = 32) {
  GgufWriter writer(path, std::move(metadata), tensors, alignment);
  for (const auto& tensor : tensors) {
    size_t n_rows = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) n_rows *= static_cast<size_t>(tensor.shape[i]);
    writer.write(std::vector<std::byte>(n_rows * row_bytes(tensor.type, tensor.shape.back()), std::byte{1}));
  }
  writer.finish();
}

Metadata every_type() {
  Metadata metadata;
  for (const GgufType type : {GgufType::kUint8, GgufType::kInt8, GgufType::kUint16, GgufType::kInt16, GgufType::kUint32,
                              GgufType::kInt32, GgufType::kUint64, GgufType::kInt64}) {
    metadata.emplace_back(gguf_type_name(type), GgufValue::of_int(type, 1));
    metadata.emplace_back(std::string(gguf_type_name(type)) + "s", GgufValue::of_ints(type, {1, 2}));
  }
  metadata.emplace_back("f", GgufValue::of_float32(0.5F));
  metadata.emplace_back("fs", GgufValue::of_floats({0.5F, 1}));
  metadata.emplace_back("b", GgufValue::of_bool(true));
  metadata.emplace_back("s", GgufValue::of_string("text"));
  metadata.emplace_back("ss", GgufValue::of_strings({"a", ""}));
  return metadata;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_gguf_corpus FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  write(folder / "empty", {}, {});
  write(folder / "every_type", every_type(), {});
  write(folder / "aligned", {{"general.architecture", GgufValue::of_string("llama")}},
        {{"a", DataType::kF32, {2, 3}}, {"b", DataType::kF16, {1, 1, 1, 5}}}, 8);
  write(folder / "quantized", {}, {{"q8", DataType::kQ8_0, {2, 32}}, {"q4", DataType::kQ4_0, {32}}});
  write(folder / "split",
        {{"split.no", GgufValue::of_int(GgufType::kUint16, 0)},
         {"split.count", GgufValue::of_int(GgufType::kUint16, 2)},
         {"split.tensors.count", GgufValue::of_int(GgufType::kInt32, 1)}},
        {{"t", DataType::kI8, {3}}});
  return 0;
}
