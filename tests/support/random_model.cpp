#include "tests/support/random_model.h"

#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"

namespace infer::test {
namespace {

struct ModelShape {
  int64_t n_embd, n_layer, n_ff, n_head, n_kv_head, n_vocab;
  bool tied;
};

const std::map<std::string, ModelShape> kShapes = {
    {"tinyllama-1.1b", {2048, 22, 5632, 32, 4, 32000, false}},
    {"llama-3.2-1b", {2048, 16, 8192, 32, 8, 128256, true}},
    {"tiny", {256, 2, 512, 4, 2, 512, false}},
};

// A SentencePiece vocabulary with the byte tokens and filler words.
void add_vocabulary(std::vector<std::pair<std::string, GgufValue>>& metadata, int64_t n) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int64_t> types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    std::snprintf(text, sizeof(text), "<0x%02X>", byte);
    tokens.emplace_back(text);
    types.push_back(6);
  }
  while (static_cast<int64_t>(tokens.size()) < n) {
    tokens.push_back("w" + std::to_string(tokens.size()));
    types.push_back(1);
  }
  metadata.emplace_back("tokenizer.ggml.model", GgufValue::of_string("llama"));
  metadata.emplace_back("tokenizer.ggml.tokens", GgufValue::of_strings(tokens));
  metadata.emplace_back("tokenizer.ggml.scores", GgufValue::of_floats(std::vector<float>(tokens.size(), 0.0f)));
  metadata.emplace_back("tokenizer.ggml.token_type", GgufValue::of_ints(GgufType::kInt32, types));
  metadata.emplace_back("tokenizer.ggml.bos_token_id", GgufValue::of_uint32(1));
  metadata.emplace_back("tokenizer.ggml.eos_token_id", GgufValue::of_uint32(2));
}

// 64 different rows of normal numbers in turn.
void write_tensor(GgufWriter& writer, const GgufWriter::TensorInfo& tensor, std::mt19937_64& random) {
  const int64_t n = tensor.shape.back(), rows = tensor.shape.size() == 1 ? 1 : tensor.shape[0];
  const bool norm = tensor.shape.size() == 1;
  std::normal_distribution<float> normal(norm ? 1.0f : 0.0f, norm ? 0.05f : 0.02f);
  const size_t bytes = row_bytes(tensor.type, n);
  std::vector<std::byte> pool(bytes * 64);
  std::vector<float> row(static_cast<size_t>(n));
  for (int i = 0; i < 64; ++i) {
    for (float& x : row) x = normal(random);
    traits(tensor.type).from_float(row.data(), pool.data() + i * bytes, n);
  }
  for (int64_t r = 0; r < rows; ++r) writer.write({pool.data() + r % 64 * bytes, bytes});
}

}  // namespace

void write_random_model(const std::string& shape_name, const std::string& type_name, const std::string& path) {
  const auto found = kShapes.find(shape_name);
  if (found == kShapes.end()) throw Error(ErrorCode::kInvalidArgument, "unknown shape " + shape_name);
  const ModelShape s = found->second;
  const bool mix = type_name == "Q4_K_M";
  const TypeTraits* base = find_type(mix ? "Q4_K" : type_name);
  if (!base || !base->from_float) throw Error(ErrorCode::kInvalidArgument, "unknown type " + type_name);
  const DataType main = base->type, better = mix ? DataType::kQ6_K : main;

  std::vector<std::pair<std::string, GgufValue>> metadata = {{"general.architecture", GgufValue::of_string("llama")},
                                                             {"general.name", GgufValue::of_string("random weights")}};
  const auto number = [&](const char* key, int64_t value) {
    metadata.emplace_back(std::string("llama.") + key, GgufValue::of_uint32(static_cast<uint32_t>(value)));
  };
  number("context_length", 8192);
  number("embedding_length", s.n_embd);
  number("block_count", s.n_layer);
  number("feed_forward_length", s.n_ff);
  number("attention.head_count", s.n_head);
  number("attention.head_count_kv", s.n_kv_head);
  metadata.emplace_back("llama.attention.layer_norm_rms_epsilon", GgufValue::of_float32(1e-5f));
  add_vocabulary(metadata, s.n_vocab);

  std::vector<GgufWriter::TensorInfo> tensors;
  const int64_t kv = s.n_embd / s.n_head * s.n_kv_head;
  tensors.push_back({"token_embd.weight", s.tied ? better : main, {s.n_vocab, s.n_embd}});
  for (int64_t i = 0; i < s.n_layer; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    const bool more = i < s.n_layer / 8 || i >= 7 * s.n_layer / 8 || (i - s.n_layer / 8) % 3 == 2;
    tensors.push_back({p + "attn_norm.weight", DataType::kF32, {s.n_embd}});
    tensors.push_back({p + "attn_q.weight", main, {s.n_embd, s.n_embd}});
    tensors.push_back({p + "attn_k.weight", main, {kv, s.n_embd}});
    tensors.push_back({p + "attn_v.weight", more ? better : main, {kv, s.n_embd}});
    tensors.push_back({p + "attn_output.weight", main, {s.n_embd, s.n_embd}});
    tensors.push_back({p + "ffn_norm.weight", DataType::kF32, {s.n_embd}});
    tensors.push_back({p + "ffn_gate.weight", main, {s.n_ff, s.n_embd}});
    tensors.push_back({p + "ffn_up.weight", main, {s.n_ff, s.n_embd}});
    tensors.push_back({p + "ffn_down.weight", more ? better : main, {s.n_embd, s.n_ff}});
  }
  tensors.push_back({"output_norm.weight", DataType::kF32, {s.n_embd}});
  if (!s.tied) tensors.push_back({"output.weight", better, {s.n_vocab, s.n_embd}});

  std::mt19937_64 random(1);
  GgufWriter writer(path, metadata, tensors);
  for (const auto& tensor : tensors) write_tensor(writer, tensor, random);
  writer.finish();
}

}  // namespace infer::test
