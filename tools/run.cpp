#include "tools/run.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "ggml-like/error.h"
#include "src/text/detokenizer.h"
#include "tools/input.h"

namespace infer {
namespace {

std::atomic<bool> interrupted = false;

// The first Ctrl-C stops the answer, a second one the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ = {};
};

// A model's text must not steer the terminal: there, control characters other than line feed and tab are left out.
std::string for_terminal(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if ((byte >= 0x20 && byte != 0x7f) || c == '\n' || c == '\t') safe += c;
  }
  return safe;
}

void write_out(const std::string& model_text) {
  static const bool terminal = isatty(STDOUT_FILENO) != 0;
  const std::string text = terminal ? for_terminal(model_text) : model_text;
  if (text.empty()) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::kIo, "[run] standard output can not be written");
  }
}

std::string full_prompt(const RunOptions& options) {
  std::string prompt = options.prompt;
  const auto append = [&](const std::string& text) {
    if (text.empty()) return;
    prompt += (prompt.empty() ? "" : "\n\n") + text;
  };
  if (!options.prompt_file.empty()) append(read_text_file(options.prompt_file));
  append(read_piped_stdin());
  return prompt;
}

double rate(int64_t n, double seconds) { return seconds > 0 ? static_cast<double>(n) / seconds : 0; }

void print_timings(Engine& engine) {
  const EngineStats& s = engine.stats();
  const double decode = rate(s.decode_steps, s.decode_seconds);
  const double achieved = decode * static_cast<double>(engine.runner().bytes_per_token());
  const double limit = decode > 0 ? engine.runner().read_bandwidth() : 0;
  std::fprintf(stderr, "prompt %lld tokens, %.1f tokens/s | generated %lld tokens, %.1f tokens/s",
               static_cast<long long>(s.prompt_tokens), rate(s.prompt_tokens, s.prompt_seconds),
               static_cast<long long>(s.generated_tokens), decode);
  if (limit > 0) {
    std::fprintf(stderr, ", %.2f GB/s of weights (%.0f %% of %.1f GB/s read bandwidth)", achieved / 1e9,
                 100 * achieved / limit, limit / 1e9);
  }
  std::fprintf(stderr, " | logits %016llx\n", static_cast<unsigned long long>(engine.last_logits_hash()));
}

}  // namespace

int run_completion(const RunOptions& options) {
  options.sampling.validate();
  const std::string prompt = full_prompt(options);
  std::shared_ptr<Model> model = load_model(GgufFile::open(options.model.model));
  Engine engine(std::move(model), options.model.engine_options());

  const Tokenizer& tokenizer = engine.tokenizer();
  Request request;
  request.id = 1;
  request.prompt = tokenizer.encode(prompt, true, true);
  if (request.prompt.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[run] a prompt (-p, -f or piped input), found none");
  }
  request.sampling = options.sampling;
  request.max_new_tokens = options.n_predict;
  request.ignore_eog = options.ignore_eog;
  if (!engine.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[run] the queue is full");
  for (const Fallback& f : engine.runner().fallbacks()) {
    std::fprintf(stderr, "note: %s of %s in layers %d to %d has no kernel on %s and runs on the CPU\n",
                 std::string(op_info(f.op).name).c_str(), std::string(traits(f.type).name).c_str(), f.first_layer,
                 f.last_layer, f.device.c_str());
  }

  const int64_t trained = engine.model().context_length();
  if (trained > 0 && engine.context() > trained && !options.quiet) {
    std::fprintf(stderr, "note: a context of %lld tokens; the model was trained with %lld\n",
                 static_cast<long long>(engine.context()), static_cast<long long>(trained));
  }

  const InterruptGuard guard;
  Detokenizer text;
  FinishReason finished = FinishReason::kNone;
  while (!engine.idle()) {
    if (interrupted) {
      engine.cancel(1);
      break;
    }
    for (const Progress& p : engine.step()) {
      for (const TokenId token : p.tokens) write_out(text.add(tokenizer.piece(token, false)));
      finished = p.finished;
    }
  }
  write_out(text.flush());
  if (isatty(STDOUT_FILENO)) write_out("\n");
  if (!options.quiet) {
    if (finished == FinishReason::kContextFull) {
      std::fprintf(stderr, "the context of %lld tokens is full (-c sets it)\n",
                   static_cast<long long>(engine.context()));
    }
    print_timings(engine);
  }
  return interrupted ? 130 : 0;
}

}  // namespace infer
