#include "tools/imatrix/imatrix.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/text/logprobs.h"
#include "tools/arguments.h"
#include "tools/flags.h"
#include "tools/imatrix/collector.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/output_file.h"
#include "tools/perplexity/scoring.h"
#include "tools/status_line.h"

namespace infer {
namespace {

struct ImatrixOptions {
  ModelFlags model;                   // context 0: 512; the file may be "" if there is no text
  std::string file;                   // the text; "": only in_files
  std::vector<std::string> in_files;  // importance matrices to add
  std::string out;
  int chunks = 0;       // maximum; 0: all
  int save_every = 10;  // chunks; 0: only at the end
};

// The sum over the files. With a model file, all must belong to that model.
ImportanceSums read_files(const ImatrixOptions& options, const GgufFile* model) {
  ImportanceSums total;
  for (const std::string& name : options.in_files) {
    const ImportanceSums sums =
        ImportanceSums::read(name, options.model.engine.context > 0 ? options.model.engine.context : kDefaultChunk);
    const std::string where = printable(name, 4096);
    size_t n_known = 0;
    for (const auto& [tensor, entry] : sums.entries) {
      const GgufTensor* weight = model ? model->find_tensor(tensor) : nullptr;
      if (!weight) continue;
      ++n_known;
      if (static_cast<int64_t>(entry.sums.size()) != importance_size(*weight)) {
        throw Error(ErrorCode::kInvalidFile, expected_found("imatrix", concat(where, ": tensor ", printable(tensor)),
                                                            concat(importance_size(*weight), " sums"),
                                                            concat(entry.sums.size(), "; use a file of this model")));
      }
    }
    if (model && n_known == 0)
      throw Error(ErrorCode::kInvalidFile, concat("[imatrix] ", where, " has no entry for any tensor of this model"));
    total.add(sums, where);
  }
  return total;
}

// `before` and what the collector has summed over the first `done` chunks.
ImportanceSums sums_so_far(const ImatrixOptions& options, const ImportanceSums& before,
                           const ImportanceCollector& collector, const TextChunks& chunks, int done) {
  ImportanceSums sums = collector.sums();
  sums.datasets = {options.file};
  sums.n_chunks = done;
  sums.chunk_size = chunks.n_ctx;
  ImportanceSums total = before;
  total.add(sums, printable(options.model.model, 4096));
  return total;
}

// Adds the inputs of the matmuls while the model reads the text, and writes the file now and then, so that little work
// is lost. Returns false if the user stopped it; `total` then has the chunks read until then.
bool read_text(const ImatrixOptions& options, const std::shared_ptr<const GgufFile>& file, ImportanceSums& total) {
  const std::string text = read_text_file(options.file);
  std::shared_ptr<Model> model = load_model(file);
  EngineOptions engine_options = options.model.engine_options();
  if (engine_options.context == kTrainedContext) engine_options.context = choose_context(*model, kTrainedContext);
  if (engine_options.context == 0) {
    const int64_t trained = model->context_length();
    engine_options.context = trained > 0 ? std::min(trained, kDefaultChunk) : kDefaultChunk;
  }
  // The last layer computes only rows with logits, so logits of all rows are requested, although only the second half
  // is scored.
  engine_options.all_logits = true;
  ImportanceCollector collector;
  engine_options.product_observer = [&](const ProductInput& input) { collector.add(input); };
  const TextChunks chunks = cut_text(Tokenizer(model->vocabulary()), text, engine_options.context, options.chunks);
  Engine engine(std::move(model), engine_options);

  Mean nll;
  int done = 0;
  StatusLine progress;
  const InterruptGuard guard;
  run_chunks(
      engine, chunks, 0,
      [&](int, int64_t position, std::span<const float> logits, TokenId next) {
        if (position >= chunks.first_scored()) nll.add(-logprob(logits, next));
      },
      [&](int chunk) {
        done = chunk + 1;
        show_chunks(progress, done, chunks.n_chunks, std::exp(nll.mean()));
        if (options.save_every > 0 && done % options.save_every == 0 && done < chunks.n_chunks) {
          sums_so_far(options, total, collector, chunks, done).write(options.out);
        }
        return !guard.interrupted();
      });
  progress.clear();
  total = sums_so_far(options, total, collector, chunks, done);
  if (guard.interrupted()) {
    std::fprintf(stderr, "stopped after chunk %d of %d\n", done, chunks.n_chunks);
    return false;
  }
  std::fprintf(stderr, "%d chunks of %lld tokens, perplexity %.4f\n", done, static_cast<long long>(chunks.n_ctx),
               std::exp(nll.mean()));
  return true;
}

int run_imatrix(const ImatrixOptions& options) {
  check_output_file(options.out, "with -o");
  if (options.file.empty() && options.in_files.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "Nothing to read. Give a text with -f, or importance matrices with --in-file.");
  }
  if (!options.file.empty() && options.model.model.empty())
    throw Error(ErrorCode::kInvalidArgument, "No model to read the text with. Name one with -m.");
  const auto model = options.model.model.empty() ? nullptr : options.model.open();
  ImportanceSums total = read_files(options, model.get());
  const bool stopped = !options.file.empty() && !read_text(options, model, total);
  total.write(options.out);
  std::fprintf(stderr, "%zu matrices, %lld chunks: %s\n", total.entries.size(), static_cast<long long>(total.n_chunks),
               printable(options.out, 4096).c_str());
  return stopped ? kInterruptedCode : 0;
}

}  // namespace

std::function<int()> define_imatrix(CLI::App& app) {
  const auto o = std::make_shared<ImatrixOptions>();
  add_model_flags(app, o->model, false);
  add_batch_flags(app, o->model);
  app.add_option("-f,--file", o->file, "File with the text to read, split into chunks of -c tokens (default: 512)")
      ->check(not_empty())
      ->type_name("FILE");
  app.add_option("--in-file", o->in_files,
                 "Importance matrix to add, GGUF or .dat (may be repeated; -f is then optional)")
      ->take_all()
      ->check(not_empty())
      ->type_name("FILE");
  app.add_option("-o,--output", o->out, "File to write")->required()->type_name("FILE");
  app.add_option("--chunks", o->chunks, "Read at most N chunks (default: all)")
      ->check(whole_number(1, INT32_MAX))
      ->type_name("N");
  app.add_option(flag_names("-ofreq,--save-every,--output-frequency"), o->save_every,
                 "Also write the file after every N chunks; 0: only at the end")
      ->check(whole_number(0, INT32_MAX))
      ->capture_default_str()
      ->type_name("N");
  return [o] { return run_imatrix(*o); };
}

}  // namespace infer
