// Writes vectors, one per text and in the order of the texts, in the formats of `infer embed`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/output_file.h"

namespace infer {

enum class VectorFormat {
  kJson,       // one document, like a response of /v1/embeddings
  kJsonLines,  // {"index": 0, "embedding": [...]} per line
  kNpy,        // NumPy's, F32, [n_texts, n_values]
  kRaw,        // F32, little-endian, nothing else
};

VectorFormat vector_format_of(const std::string& name);  // REQUIRES: json, jsonl, npy or raw
constexpr bool is_binary(VectorFormat format) { return format == VectorFormat::kNpy || format == VectorFormat::kRaw; }

// All functions throw Error(kIo) if writing fails. One thread.
class VectorWriter {
 public:
  struct What {
    VectorFormat format;
    std::string model;      // its name, for kJson
    std::string_view kind;  // the member that holds a vector: "embedding" or "scores"
    size_t n_texts = 0;
  };
  // An empty `path` is standard output.
  VectorWriter(What what, const std::string& path);

  // Adds the vector of the next text. All have the same length.
  void add(std::span<const float> vector);
  // Call after the last text; `n_tokens` is the total number of tokens. Without it, no file appears.
  void finish(int64_t n_tokens);

 private:
  void begin(size_t n_values);
  void write(std::string_view bytes);

  const What what_;
  std::unique_ptr<AtomicFile> file_;  // null: standard output
  size_t n_written_ = 0;              // vectors
};

}  // namespace infer
