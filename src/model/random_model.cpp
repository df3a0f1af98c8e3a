#include "src/model/random_model.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <random>
#include <span>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

struct ModelShape {
  std::string_view name, architecture;
  int64_t n_embd, n_layer, n_ff, n_head, n_kv_head, head_dim, n_vocab, n_ctx;
  bool tied;
  bool head_norms = false;  // queries and keys are normalized per head
  int64_t n_expert = 0, n_expert_used = 0;
};

// From the models' published configurations.
constexpr ModelShape kShapes[] = {
    {"tinyllama-1.1b", "llama", 2048, 22, 5632, 32, 4, 64, 32000, 2048, false},
    {"llama-3.2-1b", "llama", 2048, 16, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.1-8b", "llama", 4096, 32, 14336, 32, 8, 128, 128256, 131072, false},
    {"llama-3.1-70b", "llama", 8192, 80, 28672, 64, 8, 128, 128256, 131072, false},
    {"qwen3-0.6b", "qwen3", 1024, 28, 3072, 16, 8, 128, 151936, 40960, true, true},
    {"qwen3-4b", "qwen3", 2560, 36, 9728, 32, 8, 128, 151936, 40960, true, true},
    {"mixtral-8x7b", "llama", 4096, 32, 14336, 32, 8, 128, 32000, 32768, false, false, 8, 2},
    {"tiny", "llama", 256, 2, 512, 4, 2, 64, 512, 8192, false},
};

const ModelShape& find_shape(const std::string& name) {
  for (const ModelShape& shape : kShapes) {
    if (shape.name == name) return shape;
  }
  std::string known;
  for (const ModelShape& shape : kShapes) known += (known.empty() ? "" : ", ") + std::string(shape.name);
  throw Error(ErrorCode::kInvalidArgument, expected_found("shape", concat("one of ", known), printable(name)));
}

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

// How a tensor is filled: `rows` different rows of normally distributed numbers, multiplied by `scale`, are repeated,
// starting with row `first`.
struct Filling {
  float scale = 1;
  int rows = 64, first = 0;
};

void write_tensor(std::span<GgufWriter* const> writers, const GgufWriter::TensorInfo& tensor, const Filling& filling,
                  std::mt19937_64& random) {
  const bool norm = tensor.shape.size() == 1;
  const int64_t n = tensor.shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  std::normal_distribution<float> normal(norm ? 1.0f : 0.0f, norm ? 0.05f : 0.02f);
  const size_t bytes = row_bytes(tensor.type, n);
  std::vector<std::byte> pool(bytes * filling.rows);
  std::vector<float> row(static_cast<size_t>(n));
  for (int i = 0; i < filling.rows; ++i) {
    for (float& x : row) x = filling.scale * normal(random);
    traits(tensor.type).from_float(row.data(), pool.data() + i * bytes, n);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const std::byte* from = pool.data() + (filling.first + r) % filling.rows * bytes;
    for (GgufWriter* writer : writers) writer->write({from, bytes});
  }
}

// The layer in a tensor's name ("blk.3.attn_q.weight"); -1 if there is none.
int layer_of(const std::string& name) { return name.starts_with("blk.") ? std::stoi(name.substr(4)) : -1; }

// Whether its result is added to the hidden state.
bool adds_to_hidden_state(const std::string& name) {
  return name.find("attn_output") != name.npos || name.find("ffn_down") != name.npos;
}

// The types of a mix: for most weights, and for the more sensitive ones.
struct Types {
  DataType main, better;
};

Types find_types(const std::string& name) {
  const bool mix = name == "Q4_K_M";
  const TypeTraits* base = find_type(mix ? "Q4_K" : name);
  if (!base || !base->from_float) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("shape", "type", "a weight type or Q4_K_M", printable(name)));
  }
  return {base->type, mix ? DataType::kQ6_K : base->type};
}

std::vector<std::pair<std::string, GgufValue>> metadata_of(const ModelShape& s) {
  std::vector<std::pair<std::string, GgufValue>> metadata = {
      {"general.architecture", GgufValue::of_string(std::string(s.architecture))},
      {"general.name", GgufValue::of_string("random weights")}};
  const std::string prefix = std::string(s.architecture) + ".";
  const auto number = [&](const char* key, int64_t value) {
    metadata.emplace_back(prefix + key, GgufValue::of_uint32(static_cast<uint32_t>(value)));
  };
  number("context_length", s.n_ctx);
  number("embedding_length", s.n_embd);
  number("block_count", s.n_layer);
  number("feed_forward_length", s.n_ff);
  number("attention.head_count", s.n_head);
  number("attention.head_count_kv", s.n_kv_head);
  number("attention.key_length", s.head_dim);
  number("attention.value_length", s.head_dim);
  if (s.n_expert > 0) {
    number("expert_count", s.n_expert);
    number("expert_used_count", s.n_expert_used);
  }
  metadata.emplace_back(prefix + "attention.layer_norm_rms_epsilon", GgufValue::of_float32(1e-5f));
  add_vocabulary(metadata, s.n_vocab);
  return metadata;
}

std::vector<GgufWriter::TensorInfo> tensors_of(const ModelShape& s, const Types& types) {
  std::vector<GgufWriter::TensorInfo> tensors;
  const int64_t q = s.n_head * s.head_dim, kv = s.n_kv_head * s.head_dim;
  tensors.push_back({"token_embd.weight", s.tied ? types.better : types.main, {s.n_vocab, s.n_embd}});
  for (int64_t i = 0; i < s.n_layer; ++i) {
    const std::string p = "blk." + std::to_string(i) + ".";
    const auto add = [&](const char* name, DataType type, std::vector<int64_t> shape) {
      tensors.push_back({p + name, type, std::move(shape)});
    };
    const bool more = i < s.n_layer / 8 || i >= 7 * s.n_layer / 8 || (i - s.n_layer / 8) % 3 == 2;
    const DataType mixed = more ? types.better : types.main;
    add("attn_norm.weight", DataType::kF32, {s.n_embd});
    if (s.head_norms) {
      add("attn_q_norm.weight", DataType::kF32, {s.head_dim});
      add("attn_k_norm.weight", DataType::kF32, {s.head_dim});
    }
    add("attn_q.weight", types.main, {q, s.n_embd});
    add("attn_k.weight", types.main, {kv, s.n_embd});
    add("attn_v.weight", mixed, {kv, s.n_embd});
    add("attn_output.weight", types.main, {s.n_embd, q});
    add("ffn_norm.weight", DataType::kF32, {s.n_embd});
    if (s.n_expert > 0) {
      add("ffn_gate_inp.weight", DataType::kF32, {s.n_expert, s.n_embd});
      add("ffn_gate_exps.weight", types.main, {s.n_expert, s.n_ff, s.n_embd});
      add("ffn_up_exps.weight", types.main, {s.n_expert, s.n_ff, s.n_embd});
      add("ffn_down_exps.weight", mixed, {s.n_expert, s.n_embd, s.n_ff});
    } else {
      add("ffn_gate.weight", types.main, {s.n_ff, s.n_embd});
      add("ffn_up.weight", types.main, {s.n_ff, s.n_embd});
      add("ffn_down.weight", mixed, {s.n_embd, s.n_ff});
    }
  }
  tensors.push_back({"output_norm.weight", DataType::kF32, {s.n_embd}});
  if (!s.tied) tensors.push_back({"output.weight", types.better, {s.n_vocab, s.n_embd}});
  return tensors;
}

}  // namespace

const std::vector<std::string_view>& random_model_shapes() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const ModelShape& shape : kShapes) all.push_back(shape.name);
    return all;
  }();
  return names;
}

void write_random_model(const std::string& shape, const std::string& type, const std::string& path,
                        RandomWeights weights) {
  const ModelShape& s = find_shape(shape);
  const std::vector<GgufWriter::TensorInfo> tensors = tensors_of(s, find_types(type));
  std::mt19937_64 random(1);
  GgufWriter writer(path, metadata_of(s), tensors);
  if (weights == RandomWeights::kEmpty) {
    writer.leave_rest_empty();
  } else {
    GgufWriter* const only = &writer;
    for (const auto& tensor : tensors) write_tensor({&only, 1}, tensor, {}, random);
  }
  writer.finish();
}

void write_random_pair(const std::string& shape, const std::string& type, const RandomPair& pair,
                       const std::string& path, const std::string& draft_path) {
  const ModelShape& s = find_shape(shape);
  if (pair.draft_layers < 1 || pair.draft_layers >= s.n_layer) {
    throw Error(
        ErrorCode::kInvalidArgument,
        expected_found("pair", concat("1 to ", s.n_layer - 1, " layers of a draft"), concat(pair.draft_layers)));
  }
  ModelShape draft = s;
  draft.n_layer = pair.draft_layers;
  const std::vector<GgufWriter::TensorInfo> tensors = tensors_of(s, find_types(type));
  const auto in_draft = [&](const GgufWriter::TensorInfo& t) { return layer_of(t.name) < pair.draft_layers; };
  std::vector<GgufWriter::TensorInfo> of_draft;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(of_draft), in_draft);
  std::mt19937_64 random(1);
  GgufWriter writer(path, metadata_of(s), tensors), draft_writer(draft_path, metadata_of(draft), of_draft);
  GgufWriter* const writers[] = {&writer, &draft_writer};
  for (const auto& tensor : tensors) {
    const float scale = !in_draft(tensor) && adds_to_hidden_state(tensor.name) ? pair.scale : 1;
    write_tensor(std::span(writers).first(in_draft(tensor) ? 2 : 1), tensor, {.scale = scale}, random);
  }
  writer.finish();
  draft_writer.finish();
}

void write_successor_model(const std::string& shape, const std::string& type, const std::string& path) {
  const ModelShape& s = find_shape(shape);
  if (s.tied || s.n_vocab < kSuccessors) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("shape", concat("at least ", kSuccessors, " tokens and a head of its own"), shape));
  }
  const std::vector<GgufWriter::TensorInfo> tensors = tensors_of(s, find_types(type));
  GgufWriter writer(path, metadata_of(s), tensors);
  GgufWriter* const only = &writer;
  std::mt19937_64 random(1);
  for (const auto& tensor : tensors) {
    Filling filling;
    if (adds_to_hidden_state(tensor.name)) filling.scale = 1e-3f;
    if (tensor.name == "token_embd.weight" || tensor.name == "output.weight") {
      // Row t + 1 of the head is row t of the embedding, up to the rounding of their types.
      random.seed(2);
      filling.rows = kSuccessors;
      filling.first = tensor.name == "output.weight" ? kSuccessors - 1 : 0;
    }
    write_tensor({&only, 1}, tensor, filling, random);
  }
  writer.finish();
}

}  // namespace infer
