#include "tests/unit/model/tiny_model.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "ggml-like/error.h"

namespace infer::test {
namespace {

GgufValue uint32_value(int64_t value) { return GgufValue::of_int(GgufType::kUint32, value); }

}  // namespace

TinyModel::TinyModel() {
  metadata = {{"general.architecture", GgufValue::of_string("llama")},
              {"general.name", GgufValue::of_string("tiny")},
              {"llama.context_length", uint32_value(64)},
              {"llama.embedding_length", uint32_value(16)},
              {"llama.block_count", uint32_value(2)},
              {"llama.feed_forward_length", uint32_value(24)},
              {"llama.attention.head_count", uint32_value(4)},
              {"llama.attention.head_count_kv", uint32_value(2)},
              {"llama.attention.layer_norm_rms_epsilon", GgufValue::of_float32(1e-5f)},
              {"llama.rope.dimension_count", uint32_value(4)},
              {"llama.rope.freq_base", GgufValue::of_float32(10000)},
              {"tokenizer.ggml.model", GgufValue::of_string("llama")},
              {"tokenizer.ggml.tokens",
               GgufValue::of_strings({"<unk>", "<s>", "</s>", "a", "b", "c", "d", "e", "f", "g", "h", "i"})}};
  add("token_embd.weight", {12, 16});
  add("output_norm.weight", {16});
  add("output.weight", {12, 16});
  for (const std::string block : {"blk.0.", "blk.1."}) {
    add(block + "attn_norm.weight", {16});
    add(block + "attn_q.weight", {16, 16});
    add(block + "attn_k.weight", {8, 16});
    add(block + "attn_v.weight", {8, 16});
    add(block + "attn_output.weight", {16, 16});
    add(block + "ffn_norm.weight", {16});
    add(block + "ffn_gate.weight", {24, 16});
    add(block + "ffn_up.weight", {24, 16});
    add(block + "ffn_down.weight", {16, 24});
  }
}

void TinyModel::set(const std::string& key, GgufValue value) {
  for (auto& [name, old] : metadata) {
    if (name != key) continue;
    old = std::move(value);
    return;
  }
  metadata.emplace_back(key, std::move(value));
}

void TinyModel::erase(const std::string& key) {
  std::erase_if(metadata, [&](const auto& entry) { return entry.first == key; });
}

TinyModel::Tensor& TinyModel::tensor(const std::string& name) {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  CHECK_INTERNAL(at != tensors.end());
  return *at;
}

void TinyModel::add(const std::string& name, std::vector<int64_t> shape) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  uint32_t state = 17;
  for (const char c : name) state = state * 31 + static_cast<unsigned char>(c);
  Tensor tensor{name, std::move(shape), {}};
  for (int64_t i = 0; i < n; ++i) {
    state = state * 1664525 + 1013904223;
    tensor.values.push_back(static_cast<float>(state >> 8) / (1 << 23) - 1);  // [-1, 1)
  }
  tensors.push_back(std::move(tensor));
}

void TinyModel::remove(const std::string& name) {
  std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
}

std::shared_ptr<const GgufFile> TinyModel::file(const GgufOpenOptions& options) const {
  static std::atomic<int> counter = 0;
  const auto path = std::filesystem::temp_directory_path() / concat("infer_tiny_", getpid(), "_", counter++, ".gguf");
  std::vector<GgufWriter::TensorInfo> infos;
  for (const Tensor& t : tensors) infos.push_back({t.name, t.type, t.shape});
  GgufWriter writer(path, metadata, infos);
  for (const Tensor& t : tensors) {
    std::vector<std::byte> bytes(row_bytes(t.type, static_cast<int64_t>(t.values.size())));
    traits(t.type).from_float(t.values.data(), bytes.data(), static_cast<int64_t>(t.values.size()));
    writer.write(bytes);
  }
  writer.finish();
  auto file = GgufFile::open(path, options);
  std::filesystem::remove(path);
  return file;
}

}  // namespace infer::test
