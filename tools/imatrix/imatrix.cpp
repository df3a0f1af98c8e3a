#include "tools/imatrix/imatrix.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/text/logprobs.h"
#include "tools/imatrix/collector.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/perplexity/scoring.h"

namespace infer {

int run_imatrix(const ImatrixOptions& options) {
  const std::string text = read_text_file(options.file);
  std::shared_ptr<Model> model = load_model(GgufFile::open(options.model.model));
  EngineOptions engine_options = options.model.engine_options();
  if (engine_options.context == 0) {
    const int64_t trained = model->context_length();
    engine_options.context = trained > 0 ? std::min(trained, kDefaultChunk) : kDefaultChunk;
  }
  // The last layer computes rows with logits only: all are asked for, although the second half alone is scored.
  engine_options.all_logits = true;
  ImportanceCollector collector;
  engine_options.product_observer = [&](const ProductInput& input) { collector.add(input); };
  const TextChunks chunks = cut_text(Tokenizer(model->vocabulary()), text, engine_options.context, options.chunks);
  Engine engine(std::move(model), engine_options);

  Mean nll;
  int done = 0;
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  const auto start = std::chrono::steady_clock::now();
  const InterruptGuard guard;
  run_chunks(
      engine, chunks, 0,
      [&](int, int64_t position, std::span<const float> logits, TokenId next) {
        if (position >= chunks.first_scored()) nll.add(-logprob(logits, next));
      },
      [&](int chunk) {
        done = chunk + 1;
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (shows_progress) {
          std::fprintf(stderr, "\r\033[Kchunk %d of %d, perplexity %.4f, %.0f s left", done, chunks.n_chunks,
                       std::exp(nll.mean()), seconds / done * (chunks.n_chunks - done));
        }
        return !guard.interrupted();
      });
  if (shows_progress) std::fputs("\r\033[K", stderr);
  if (guard.interrupted()) return 130;
  collector.write(options.out, options.file, done, chunks.n_ctx);
  std::fprintf(stderr, "%zu matrices, %d chunks of %lld tokens, perplexity %.4f: %s\n", collector.entries().size(),
               done, static_cast<long long>(chunks.n_ctx), std::exp(nll.mean()), printable(options.out, 4096).c_str());
  return 0;
}

}  // namespace infer
