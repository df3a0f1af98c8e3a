#include "tools/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "ggml-like/error.h"
#include "src/text/logprobs.h"
#include "src/text/ordered_json.h"
#include "tools/arguments.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/output_file.h"
#include "tools/perplexity/divergence.h"
#include "tools/perplexity/logits_file.h"
#include "tools/perplexity/scoring.h"
#include "tools/profile_table.h"
#include "tools/status_line.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

struct PerplexityOptions {
  ModelFlags model;           // context 0: 512
  std::string file;           // the text
  int chunks = 0;             // maximum; 0: all
  std::string save_logits;    // write the distributions to this file
  std::string kl_divergence;  // compare with the distributions in this file, on its text
  bool json = false;
};

struct Result {
  Mean nll;  // over the scored tokens
  int chunks = 0;
  int64_t n_ctx = 0;
  std::optional<Divergence::Summary> divergence;

  double perplexity() const { return std::exp(nll.mean()); }
  double standard_error() const { return perplexity() * nll.standard_error(); }
};

void print_json(const Result& r) {
  ordered_json document = {{"perplexity", r.perplexity()},
                           {"standard_error", r.standard_error()},
                           {"tokens", r.nll.count()},
                           {"chunks", r.chunks},
                           {"context", r.n_ctx}};
  if (r.divergence) {
    const Divergence::Summary& d = *r.divergence;
    document["kl_divergence"] = {{"mean", d.mean},
                                 {"standard_error", d.standard_error},
                                 {"median", d.median},
                                 {"p90", d.p90},
                                 {"p95", d.p95},
                                 {"p99", d.p99},
                                 {"p999", d.p999},
                                 {"maximum", d.maximum},
                                 {"same_top_token", d.same_top_token},
                                 {"base_perplexity", d.base_perplexity},
                                 {"perplexity_ratio", d.perplexity_ratio},
                                 {"perplexity_ratio_error", d.perplexity_ratio_error},
                                 {"mean_probability_change", d.mean_probability_change},
                                 {"rms_probability_change", d.rms_probability_change}};
  }
  std::cout << document.dump() << '\n';
}

void print_text(const Result& r) {
  char line[256];
  const auto print = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof(line), format, values...);
    std::cout << line << '\n';
  };
  print("perplexity               %.4f +- %.4f", r.perplexity(), r.standard_error());
  print("scored                   %lld tokens, %d chunks of %lld", static_cast<long long>(r.nll.count()), r.chunks,
        static_cast<long long>(r.n_ctx));
  if (!r.divergence) return;
  const Divergence::Summary& d = *r.divergence;
  print("KL divergence, mean      %.6f +- %.6f", d.mean, d.standard_error);
  print("KL divergence, median    %.6f", d.median);
  print("KL divergence, 90 %%      %.6f", d.p90);
  print("KL divergence, 95 %%      %.6f", d.p95);
  print("KL divergence, 99 %%      %.6f", d.p99);
  print("KL divergence, 99.9 %%    %.6f", d.p999);
  print("KL divergence, maximum   %.6f", d.maximum);
  print("same top token           %.3f %%", 100 * d.same_top_token);
  print("perplexity, recorded     %.4f", d.base_perplexity);
  print("perplexity, ratio        %.6f +- %.6f", d.perplexity_ratio, d.perplexity_ratio_error);
  print("probability change       mean %.4f %%, root mean square %.4f %%", 100 * d.mean_probability_change,
        100 * d.rms_probability_change);
}

void check_perplexity_options(const PerplexityOptions& options) {
  if (!options.save_logits.empty()) check_output_file(options.save_logits, "with --save-logits");
  if (!options.save_logits.empty() && !options.kl_divergence.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Give either --save-logits or --kl-divergence, not both.");
  }
  if (options.kl_divergence.empty() && options.file.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "No text. Name a file with -f.");
  }
}

void check_vocabulary(const LogitsReader& base, const Model& model) {
  if (base.n_vocab() == model.n_vocab()) return;
  throw Error(ErrorCode::kInvalidArgument,
              concat("--kl-divergence: the file has a vocabulary of ", base.n_vocab(), " tokens, the model has ",
                     model.n_vocab(), ". Use a model with the same vocabulary."));
}

// Chunks as long as those of the recorded logits, else -c, else what the model was trained with.
EngineOptions engine_options(const PerplexityOptions& options, const Model& model, const LogitsReader* base) {
  EngineOptions engine = options.model.engine_options();
  if (base) {
    engine.context = base->chunks().n_ctx;
  } else if (engine.context == kTrainedContext) {
    engine.context = choose_context(model, kTrainedContext);
  } else if (engine.context == 0) {
    const int64_t trained = model.context_length();
    engine.context = trained > 0 ? std::min(trained, kDefaultChunk) : kDefaultChunk;
  }
  if (engine.context < 4) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("-c ", engine.context, " is too small to score a text. Give at least 4."));
  }
  engine.all_logits = true;
  return engine;
}

TextChunks choose_chunks(const PerplexityOptions& options, const Model& model, int64_t context,
                         const LogitsReader* base) {
  if (!base) return cut_text(Tokenizer(model.vocabulary()), read_text_file(options.file), context, options.chunks);
  TextChunks chunks = base->chunks();
  if (options.chunks > 0 && options.chunks < chunks.n_chunks) {
    chunks.n_chunks = options.chunks;
    chunks.tokens.resize(static_cast<size_t>(chunks.n_chunks * chunks.n_ctx));
  }
  return chunks;
}

int run_perplexity(const PerplexityOptions& options) {
  check_perplexity_options(options);
  std::optional<LogitsReader> base;
  if (!options.kl_divergence.empty()) base.emplace(options.kl_divergence);
  std::shared_ptr<Model> model = load_model(options.model.open());
  if (base) check_vocabulary(*base, *model);
  const int n_vocab = model->n_vocab();
  const EngineOptions settings = engine_options(options, *model, base ? &*base : nullptr);
  const TextChunks chunks = choose_chunks(options, *model, settings.context, base ? &*base : nullptr);
  Engine engine(std::move(model), settings);
  std::optional<LogitsWriter> writer;
  if (!options.save_logits.empty()) writer.emplace(options.save_logits, chunks, n_vocab);

  Result result;
  result.n_ctx = chunks.n_ctx;
  Divergence divergence;
  StatusLine progress;
  const InterruptGuard guard;
  run_chunks(
      engine, chunks, chunks.first_scored(),
      [&](int, int64_t, std::span<const float> logits, TokenId next) {
        result.nll.add(-logprob(logits, next));
        if (writer) writer->add(logits);
        if (base) divergence.add(base->next(), logits, next);
      },
      [&](int chunk) {
        result.chunks = chunk + 1;
        show_chunks(progress, result.chunks, chunks.n_chunks, result.perplexity());
        return !guard.interrupted();
      });
  progress.clear();
  if (guard.interrupted()) return kInterruptedCode;
  if (writer) writer->finish();
  if (base) result.divergence = divergence.summary();
  options.json ? print_json(result) : print_text(result);
  print_profile(engine);
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  return 0;
}

}  // namespace

std::function<int()> define_perplexity(CLI::App& app) {
  const auto o = std::make_shared<PerplexityOptions>();
  add_model_flags(app, o->model);
  add_batch_flags(app, o->model);
  add_profile_flag(app, o->model);
  app.add_option("-f,--file", o->file, "File with the text to predict, split into chunks of -c tokens (default: 512)")
      ->type_name("FILE");
  app.add_option("--chunks", o->chunks, "Score at most N chunks (default: all)")
      ->check(whole_number(1, INT32_MAX))
      ->type_name("N");
  app.add_option("--save-logits", o->save_logits, "Write the distributions to a file, for --kl-divergence")
      ->type_name("FILE");
  app.add_option("--kl-divergence", o->kl_divergence,
                 "Compare with the distributions in a file, on its text (llama.cpp's format too)")
      ->type_name("FILE");
  app.add_flag("--json", o->json, "Print one JSON document");
  return [o] { return run_perplexity(*o); };
}

}  // namespace infer
