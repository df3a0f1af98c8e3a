// The common part of perplexity and KL divergence: the log-probabilities of texts, chunk by chunk.
//
// Scored as in llama.cpp: the text is split into chunks of n_ctx tokens, each computed separately. If the vocabulary
// asks for BOS, it replaces a chunk's first token. Only the second half of a chunk is scored, so that every scored
// token has at least n_ctx / 2 tokens before it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/engine/engine.h"
#include "tools/status_line.h"

namespace infer {

inline constexpr int64_t kDefaultChunk = 512;  // tokens

struct TextChunks {
  int64_t n_ctx = 0;
  int n_chunks = 0;
  std::vector<TokenId> tokens;  // [n_chunks * n_ctx], as in the text

  int64_t first_scored() const { return n_ctx / 2; }  // first position whose logits count
  int64_t scored_per_chunk() const { return n_ctx - 1 - first_scored(); }
  std::span<const TokenId> chunk(int i) const { return std::span(tokens).subspan(i * n_ctx, n_ctx); }
};
// Splits a text into chunks, at most `limit` (0: all). Throws Error(kInvalidArgument) if it has fewer than two chunks.
TextChunks cut_text(const Tokenizer& tokenizer, const std::string& text, int64_t n_ctx, int limit);

// Runs the chunks in order and calls `score` for every position from `first` on that has a next token, with the chunk,
// the position in it, the logits there and the next token. Calls `progress` after each chunk; it returns false to
// stop.
using ScoreCallback = std::function<void(int chunk, int64_t position, std::span<const float> logits, TokenId next)>;
void run_chunks(Engine& engine, const TextChunks& chunks, int64_t first, const ScoreCallback& score,
                const std::function<bool(int chunk)>& progress);
// Shows how many of the chunks are done, and their perplexity.
void show_chunks(StatusLine& line, int n_done, int n_chunks, double perplexity);

// Mean and standard error of values added one by one.
class Mean {
 public:
  void add(double x) { ++n_, sum_ += x, sum_of_squares_ += x * x; }
  int64_t count() const { return n_; }
  double mean() const { return n_ > 0 ? sum_ / static_cast<double>(n_) : 0; }
  // Of the mean, with the variance divided by n (n - 1); 0 for fewer than two values.
  double standard_error() const;

 private:
  int64_t n_ = 0;
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace infer
