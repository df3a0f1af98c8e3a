#include "tools/perplexity/scoring.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer {

TextChunks cut_text(const Tokenizer& tokenizer, const std::string& text, int64_t n_ctx, int limit) {
  TextChunks chunks;
  chunks.n_ctx = n_ctx;
  chunks.tokens = tokenizer.encode(text, true, true);
  const int64_t n = static_cast<int64_t>(chunks.tokens.size());
  if (n < 2 * n_ctx) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("The text has ", grouped(n), " tokens; two chunks of ", grouped(n_ctx), " need ",
                       grouped(2 * n_ctx), ". Give a longer text, or a smaller -c."));
  }
  chunks.n_chunks = static_cast<int>(std::min<int64_t>(n / n_ctx, INT32_MAX));
  if (limit > 0) chunks.n_chunks = std::min(chunks.n_chunks, limit);
  chunks.tokens.resize(static_cast<size_t>(chunks.n_chunks * n_ctx));
  return chunks;
}

void run_chunks(Engine& engine, const TextChunks& chunks, int64_t first, const ScoreCallback& score,
                const std::function<bool(int chunk)>& progress) {
  const Vocabulary& vocabulary = engine.tokenizer().vocabulary();
  engine.on_logits([&](RequestId id, int64_t position, std::span<const float> logits) {
    const int chunk = static_cast<int>(id - 1);
    if (position + 1 < chunks.n_ctx) score(chunk, position, logits, chunks.chunk(chunk)[position + 1]);
  });
  for (int i = 0; i < chunks.n_chunks; ++i) {
    const auto tokens = chunks.chunk(i);
    Request request;
    request.id = static_cast<RequestId>(i) + 1;
    request.prompt.assign(tokens.begin(), tokens.end());
    if (vocabulary.add_bos && vocabulary.bos != kNoToken) request.prompt[0] = vocabulary.bos;
    request.max_new_tokens = 0;
    request.logits_from = first;
    request.reuse_prefix = false;
    if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[perplexity] the queue is full");
    while (!engine.idle()) engine.step();
    if (!progress(i)) break;
  }
  engine.on_logits({});
}

double Mean::standard_error() const {
  if (n_ < 2) return 0;
  const double n = static_cast<double>(n_);
  const double variance = sum_of_squares_ / n - mean() * mean();
  return variance > 0 ? std::sqrt(variance / (n - 1)) : 0;
}

void show_chunks(StatusLine& line, int n_done, int n_chunks, double perplexity) {
  char text[80];
  std::snprintf(text, sizeof(text), "chunk %d of %d, perplexity %.4f", n_done, n_chunks, perplexity);
  line.show(text + line.time_left(n_done, n_chunks));
}

}  // namespace infer
