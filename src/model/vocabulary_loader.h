// Reads a model file's tokenizer.ggml.* metadata into a Vocabulary, with llama.cpp's defaults for absent keys.
#pragma once

#include "ggml-like/gguf.h"
#include "src/text/vocabulary.h"

namespace infer {

// Throws Error(kUnsupported) naming an unknown tokenizer model or pre-tokenizer, and Error(kInvalidFile) for missing
// lists, lists of the wrong type or length, and ids out of range.
Vocabulary load_vocabulary(const GgufFile& file);

}  // namespace infer
