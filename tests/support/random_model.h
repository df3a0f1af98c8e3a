// Models with random weights, for tests and for measuring speed where no real file is at hand.
#pragma once

#include <string>

namespace infer::test {

// A llama model whose weights depend on nothing but the arguments. Shape: "tinyllama-1.1b", "llama-3.2-1b" or "tiny"
// (two layers, width 256, 512 tokens of which 3 .. 258 are the bytes). Type: a data type ("Q8_0", "F16", ...) or
// "Q4_K_M", the usual mix: Q4_K, with Q6_K for the head and for half of the attn_v and ffn_down tensors. Throws Error.
void write_random_model(const std::string& shape, const std::string& type, const std::string& path);

}  // namespace infer::test
