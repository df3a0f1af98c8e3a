// The tokenizer of the tests that turn tokens into text.
#pragma once

#include "ggml-like/gguf.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/tokenizer.h"

namespace infer::test {

inline const Tokenizer& tokenizer() {
  static const Tokenizer one(load_vocabulary(*GgufFile::open(INFER_SOURCE_DIR "/tests/data/vocab_only.gguf")));
  return one;
}

}  // namespace infer::test
