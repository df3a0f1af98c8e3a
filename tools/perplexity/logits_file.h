// Files of log-probabilities for computing a KL divergence, in the format of llama.cpp's --kl-divergence-base, so that
// either program can read the other's:
//
//   char magic[8] = "_logits_"; int32 n_ctx, n_vocab, n_chunk; int32 tokens[n_chunk * n_ctx];
//   then per scored position: float scale, float min_log_prob; uint16 code[n_vocab, rounded up to even]
//
// A log-probability is min_log_prob + scale * code, clamped to at most 16 below the best one.
#pragma once

#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/output_file.h"
#include "tools/perplexity/scoring.h"

namespace infer {

// Writes under a temporary name; finish() renames the file. Without finish() nothing is left.
class LogitsWriter {
 public:
  // Throws Error(kIo), as all methods do.
  LogitsWriter(const std::string& path, const TextChunks& chunks, int n_vocab);

  void add(std::span<const float> logits);  // [n_vocab]
  void finish() { file_.finish(); }

 private:
  AtomicFile file_;
  std::vector<uint16_t> row_;
};

class LogitsReader {
 public:
  // Throws Error(kIo), and Error(kInvalidFile) if it is not such a file or is incomplete.
  explicit LogitsReader(const std::string& path);

  const TextChunks& chunks() const { return chunks_; }
  int n_vocab() const { return n_vocab_; }
  // The next position's log-probabilities; valid until the next call. Throws Error(kInvalidFile) at the end.
  std::span<const float> next();

 private:
  void read(void* to, size_t bytes);
  [[noreturn]] void damaged(const std::string& expected, const std::string& found) const;

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  TextChunks chunks_;
  int n_vocab_ = 0;
  std::vector<uint16_t> row_;
  std::vector<float> values_;
};

}  // namespace infer
