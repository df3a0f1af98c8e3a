// Models with random weights in well-known shapes, for benchmarks, memory planning and tests without a real model file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

// "tinyllama-1.1b", "llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-0.6b", "qwen3-4b", "mixtral-8x7b", and
// "tiny": two llama layers of width 256 with 512 tokens, of which 3 .. 258 are the bytes.
const std::vector<std::string_view>& random_model_shapes();

enum class RandomWeights {
  kFill,   // depends only on the arguments
  kEmpty,  // zeros that occupy no disk space (a sparse file): for planning, not for running
};
// Writes a GGUF file. `type`: a data type ("Q8_0", "F16", ...) or "Q4_K_M", the usual mix: Q4_K, with Q6_K for the head
// and for half of the attn_v and ffn_down tensors. Throws Error(kInvalidArgument) for an unknown shape or type, and
// what GgufWriter throws.
void write_random_model(const std::string& shape, const std::string& type, const std::string& path,
                        RandomWeights weights = RandomWeights::kFill);

// A model and a draft model for it, to measure speculative decoding. The draft consists of the model's first layers;
// what the other layers add to the hidden state is scaled by `scale`. The smaller it is, the more often the two agree.
struct RandomPair {
  int draft_layers = 2;
  float scale = 0.1f;
};
// Writes both. Throws as above, and Error(kInvalidArgument) if the model has no more layers than the draft.
void write_random_pair(const std::string& shape, const std::string& type, const RandomPair& pair,
                       const std::string& path, const std::string& draft_path);

// A model for measuring prompt lookup: after token t it generates token t + 1, and after the highest of `kSuccessors`
// tokens the lowest again, because its layers add next to nothing to the hidden state. A step costs as much as with any
// other model of its shape.
inline constexpr int kSuccessors = 4096;
// Throws as above, and Error(kInvalidArgument) if the vocabulary is smaller than that or the head is tied to the
// embedding.
void write_successor_model(const std::string& shape, const std::string& type, const std::string& path);

}  // namespace infer
