// Models with random weights in well-known shapes: for measuring speed, planning memory and tests where no real file is
// at hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

// "tinyllama-1.1b", "llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "qwen3-0.6b", "qwen3-4b", "mixtral-8x7b", and
// "tiny": two llama layers of width 256 and 512 tokens, of which 3 .. 258 are the bytes.
const std::vector<std::string_view>& random_model_shapes();

enum class RandomWeights {
  kFill,   // depend on nothing but the arguments
  kEmpty,  // zeros that take no room on the disk: a file to be planned for, not to be run
};
// Writes a GGUF file. Type: a data type ("Q8_0", "F16", ...) or "Q4_K_M", the usual mix: Q4_K, with Q6_K for the head
// and for half of the attn_v and ffn_down tensors. Throws Error(kInvalidArgument) for an unknown shape or type, else
// what GgufWriter throws.
void write_random_model(const std::string& shape, const std::string& type, const std::string& path,
                        RandomWeights weights = RandomWeights::kFill);

}  // namespace infer
