// Reads the tokenizer.ggml.* metadata of a model file into a Vocabulary, with the defaults that llama.cpp has for keys
// the file leaves out.
#pragma once

#include "ggml-like/gguf.h"
#include "src/text/vocabulary.h"

namespace infer {

// Throws Error(kUnsupported) naming a tokenizer model or pre-tokenizer this program does not know, and
// Error(kInvalidFile) for missing lists, lists of the wrong type or length and ids out of range.
Vocabulary load_vocabulary(const GgufFile& file);

}  // namespace infer
