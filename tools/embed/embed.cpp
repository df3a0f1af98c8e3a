#include "tools/embed/embed.h"

#include <cstdio>
#include <map>
#include <memory>

#include "ggml-like/error.h"
#include "src/engine/pooling.h"
#include "src/model/classifier.h"
#include "tools/arguments.h"
#include "tools/embed/embed_texts.h"
#include "tools/embed/vector_writer.h"
#include "tools/flags.h"
#include "tools/interrupt.h"
#include "tools/status_line.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr int kParallel = 32;  // texts computed together, as far as they fit in a step

struct EmbedOptions {
  ModelFlags model;
  std::vector<std::string> texts, files;
  bool whole_files = false;
  std::string tokens;  // of one text, unchanged
  std::string query;
  bool has_query = false;
  std::optional<Pooling> pooling;  // unset: the model's own
  int normalize = 2;
  int64_t dimensions = 0;  // 0: all
  bool truncate = false;
  std::string format = "jsonl";
  std::string out;  // "": standard output
};

// Feeds texts to the engine and writes their vectors in the order of the texts.
class Embedder {
 public:
  Embedder(Engine& engine, Pooling pooling, const EmbedOptions& options, VectorWriter& writer)
      : engine_(engine), pooling_(pooling), options_(options), writer_(writer) {}

  // Calls `progress` with the number of vectors written. Returns false if that did: the user stopped it.
  template <typename Progress>
  bool run(std::vector<std::vector<TokenId>> prompts, const Progress& progress) {
    size_t given = 0;
    while (written_ < prompts.size()) {
      for (; given < prompts.size() && given < written_ + 4 * kParallel; ++given) {
        submit(given, std::move(prompts[given]));
      }
      for (infer::Progress& p : engine_.step()) {
        if (p.finished != FinishReason::kNone) finished_[p.id - 1] = std::move(p.pooled);
      }
      for (auto at = finished_.begin(); at != finished_.end() && at->first == written_; ++written_) {
        write(std::move(at->second));
        at = finished_.erase(at);
      }
      if (!progress(written_)) return false;
    }
    return true;
  }

 private:
  void submit(size_t index, std::vector<TokenId> prompt) {
    Request request;
    request.id = index + 1;
    request.prompt = std::move(prompt);
    request.max_new_tokens = 0;
    request.pooling = pooling_;
    if (!engine_.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[embed] the queue is full");
  }

  void write(std::vector<float> vector) {
    if (options_.dimensions > 0) vector.resize(static_cast<size_t>(options_.dimensions));
    if (pooling_ != Pooling::kRank) normalize(vector, options_.normalize);
    writer_.add(vector);
  }

  Engine& engine_;
  const Pooling pooling_;
  const EmbedOptions& options_;
  VectorWriter& writer_;
  std::map<size_t, std::vector<float>> finished_;  // by text index; waiting for an earlier one
  size_t written_ = 0;
};

void check_embed_options(const EmbedOptions& o) {
  if (!o.tokens.empty() && (!o.texts.empty() || !o.files.empty() || o.has_query)) {
    throw Error(ErrorCode::kInvalidArgument, "Give either --tokens or texts.");
  }
  if (!o.texts.empty() && !o.files.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Give texts either as arguments or with -f.");
  }
  if (!o.out.empty()) check_output_file(o.out, "with -o");
  if (o.out.empty() && is_binary(vector_format_of(o.format)) && stdout_is_terminal()) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("--format ", o.format, " is binary. Name a file with -o, or redirect the output."));
  }
}

Pooling choose_pooling(const EmbedOptions& o, const Model& model) {
  const Pooling pooling = o.pooling.value_or(o.has_query ? Pooling::kRank : model.config().pooling);
  if (pooling == Pooling::kRank && !model.classifier()) {
    throw Error(ErrorCode::kUnsupported,
                "The model has no classifier, so it cannot score texts. Choose a rerank model, or leave out --query.");
  }
  if (o.has_query && pooling != Pooling::kRank) {
    throw Error(ErrorCode::kInvalidArgument, "--query gives scores. Leave out --pooling, or give --pooling rank.");
  }
  if (o.dimensions > model.n_embd() || (o.dimensions > 0 && pooling == Pooling::kRank)) {
    throw Error(ErrorCode::kInvalidArgument,
                pooling == Pooling::kRank
                    ? std::string("--dimensions: a score has none. Leave it out.")
                    : concat("--dimensions: the model's vectors have ", model.n_embd(), ". Give at most that."));
  }
  return pooling;
}

std::vector<std::vector<TokenId>> tokenize_prompts(const EmbedOptions& o, const Model& model, int64_t most_tokens) {
  if (!o.tokens.empty()) return {parse_token_ids(o.tokens)};
  const Tokenizer tokenizer(model.vocabulary());
  const EmbedEncoding encoding = {o.has_query ? &o.query : nullptr, most_tokens, o.truncate};
  std::vector<std::vector<TokenId>> prompts;
  for (const EmbedText& text : read_embed_texts(o.texts, o.files, o.whole_files)) {
    prompts.push_back(encode_embed_text(text, model, tokenizer, encoding));
  }
  return prompts;
}

// A rerank model without --query scores each text alone.
int run_embed(const EmbedOptions& o) {
  check_embed_options(o);
  std::shared_ptr<Model> model = load_model(o.model.open());
  const Pooling pooling = choose_pooling(o, *model);
  EngineOptions settings = o.model.engine_options();
  settings.embeddings = true;
  settings.context = choose_context(*model, settings.context);
  std::vector<std::vector<TokenId>> prompts = tokenize_prompts(o, *model, settings.context);
  const size_t n_texts = prompts.size();
  int64_t n_tokens = 0;
  for (const auto& prompt : prompts) n_tokens += static_cast<int64_t>(prompt.size());
  settings.max_sequences = static_cast<int>(std::min<size_t>(n_texts, kParallel));
  if (settings.cache_tokens == 0)
    settings.cache_tokens = settings.context + settings.step_tokens + kBlockTokens * kParallel;
  VectorWriter writer({vector_format_of(o.format), std::string(model->name()),
                       pooling == Pooling::kRank ? "scores" : "embedding", n_texts},
                      o.out);
  Engine engine(std::move(model), settings);

  StatusLine progress;
  const InterruptGuard guard;
  const bool done = Embedder(engine, pooling, o, writer).run(std::move(prompts), [&](size_t n) {
    progress.show(
        concat(n, " of ", n_texts, " texts", progress.time_left(static_cast<double>(n), static_cast<double>(n_texts))));
    return !guard.interrupted();
  });
  progress.clear();
  if (!done) return kInterruptedCode;
  writer.finish(n_tokens);
  return 0;
}

}  // namespace

std::function<int()> define_embed(CLI::App& app) {
  const auto o = std::make_shared<EmbedOptions>();
  add_model_flags(app, o->model);
  add_batch_flags(app, o->model);
  app.add_option("text", o->texts, "Texts (default: the lines of -f, or of standard input)")->type_name("TEXT");
  app.add_option_function<std::string>(
         "-p,--prompt", [o](const std::string& text) { o->texts.push_back(text); }, "A text, before those without -p")
      ->type_name("TEXT");
  app.add_option("-f,--file", o->files, "File with a text on each line; -: standard input (may be repeated)")
      ->take_all()
      ->check(not_empty())
      ->type_name("FILE");
  app.add_flag("--whole-files", o->whole_files, "Read each file of -f as one text");
  app.add_option("--tokens", o->tokens, "Token ids of one text, unchanged: 1,2,3")->type_name("IDS");
  app.add_option_function<std::string>(
         "--query", [o](const std::string& text) { o->query = text, o->has_query = true; },
         "Score each text against this query (rerank models)")
      ->type_name("TEXT");
  app.add_option_function<std::string>(
         "--pooling", [o](const std::string& word) { o->pooling = pooling_of(word); },
         "The mean of the hidden states, the last or the first, or the scores of the model's classifier (default: the "
         "model's own)")
      ->check(one_of({"mean", "last", "cls", "rank"}))
      ->type_name("WORD");
  app.add_option("--embd-normalize", o->normalize,
                 "Normalize vectors: 2: Euclidean (default), 1: taxicab, P: P-norm, 0: largest value "
                 "becomes 32760, -1: off")
      ->check(whole_number(-1, 64))
      ->type_name("P");
  app.add_option("--dimensions", o->dimensions, "Keep the first N values (default: all)")
      ->check(whole_number(1, 1 << 22))
      ->type_name("N");
  app.add_flag("--truncate", o->truncate, "Cut texts that exceed the context (default: refuse them)");
  app.add_option("--format", o->format, "json, jsonl (default), npy, or raw: F32 values and nothing else")
      ->check(one_of({"json", "jsonl", "npy", "raw"}))
      ->type_name("WORD");
  app.add_flag_callback(
      "--json", [o] { o->format = "json"; }, "Short for --format json");
  app.add_option("-o,--output", o->out, "File to write (default: standard output)")->type_name("FILE");
  return [o] { return run_embed(*o); };
}

}  // namespace infer
