// A small llama file that a test changes before it is written: metadata and tensors by name.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ggml-like/gguf.h"

namespace infer::test {

inline GgufValue int64_value(int64_t value) { return GgufValue::of_int(GgufType::kInt64, value); }

struct TinyModel {
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
    DataType type = DataType::kF32;
  };
  std::vector<std::pair<std::string, GgufValue>> metadata;
  std::vector<Tensor> tensors;

  // Two layers, embedding 16, four heads of 4 (two for keys and values), feed-forward width 24, 12 tokens, a separate
  // output head.
  TinyModel();

  void set(const std::string& key, GgufValue value);  // replaces or adds
  void erase(const std::string& key);
  Tensor& tensor(const std::string& name);                        // REQUIRES that it exists
  void add(const std::string& name, std::vector<int64_t> shape);  // with values that depend on name and shape only
  void remove(const std::string& name);

  // Writes a file in the temporary folder and opens it; the file is unlinked afterwards.
  std::shared_ptr<const GgufFile> file(const GgufOpenOptions& options = {}) const;
};

}  // namespace infer::test
