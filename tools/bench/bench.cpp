#include "tools/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/engine/engine.h"
#include "tools/interrupt.h"
#include "tools/plan/shape_file.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One line of the table.
struct Test {
  bool decode = false;
  int n_prompt = 0, n_gen = 0, batch = 1;
  std::vector<double> rates;      // tokens per second, of all sequences together, one per repetition
  std::vector<double> fractions;  // of the read bandwidth measured with that repetition; decode only

  std::string name() const { return decode ? "decode" : "prefill"; }
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Bench {
 public:
  Bench(std::shared_ptr<Model> model, const BenchOptions& options) : options_(options) {
    for (const int n : options.prompts) {
      for (const int batch : options.batches) {
        if (n > 0) tests_.push_back({false, n, 0, batch, {}, {}});
      }
    }
    for (const int n : options.generations) {
      for (const int batch : options.batches) {
        if (n > 0) tests_.push_back({true, 0, n, batch, {}, {}});
      }
    }
    EngineOptions engine = options.model.engine_options();
    for (const Test& test : tests_) {
      engine.context = std::max<int64_t>(engine.context, test.n_prompt + test.n_gen + 2);
      engine.max_sequences = std::max(engine.max_sequences, test.batch);
    }
    engine_ = std::make_unique<Engine>(std::move(model), engine);
  }

  // The repetitions of all tests take turns, so that a change in the machine's speed meets all of them.
  bool run() {
    const InterruptGuard guard;
    const bool shows_progress = isatty(STDERR_FILENO) != 0;
    for (int repetition = -1; repetition < options_.repetitions; ++repetition) {
      for (Test& test : tests_) {
        if (shows_progress) {
          std::fprintf(stderr, "\r\033[K%s %d of %d: %s, %d tokens, batch of %d", repetition < 0 ? "warm-up" : "round",
                       std::max(repetition + 1, 1), repetition < 0 ? 1 : options_.repetitions, test.name().c_str(),
                       test.n_prompt + test.n_gen, test.batch);
        }
        const double rate = measure(test, guard);
        if (guard.interrupted()) return false;
        if (repetition < 0) continue;  // the first pass reads the file and fills the caches
        test.rates.push_back(rate);
        if (!test.decode) continue;
        const double limit = engine_->runner().read_bandwidth();
        const double steps = rate / test.batch;
        if (limit > 0) {
          test.fractions.push_back(steps * static_cast<double>(engine_->runner().bytes_per_token()) / limit);
          bandwidths_.push_back(limit);
        }
      }
    }
    if (shows_progress) std::fputs("\r\033[K", stderr);
    return true;
  }

  void print_table() const;
  void print_json() const;

 private:
  double measure(const Test& test, const InterruptGuard& guard);

  const BenchOptions& options_;
  std::unique_ptr<Engine> engine_;
  std::vector<Test> tests_;
  std::vector<double> bandwidths_;
  RequestId next_id_ = 1;
};

// Tokens per second. A prompt's time is that of all its tokens, without drawing one; generation begins after a prompt
// of one token, whose step is not counted.
double Bench::measure(const Test& test, const InterruptGuard& guard) {
  const RequestId first = next_id_;
  for (int i = 0; i < test.batch; ++i) {
    Request request;
    request.id = next_id_++;
    for (int t = 0; t < std::max(test.n_prompt, 1); ++t) {
      request.prompt.push_back(static_cast<TokenId>((request.id * 7919 + t * 31) % engine_->model().n_vocab()));
    }
    request.max_new_tokens = test.decode ? test.n_gen + 1 : 0;
    request.ignore_eog = true;
    request.reuse_prefix = false;
    request.sampling.temperature = 0;
    if (!engine_->submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[bench] the queue is full");
  }
  if (test.decode) engine_->step();
  const double start = now();
  int64_t generated = 0;
  while (!engine_->idle()) {
    for (const Progress& p : engine_->step()) generated += static_cast<int64_t>(p.tokens.size());
    if (!guard.interrupted()) continue;
    for (RequestId id = first; id < next_id_; ++id) engine_->cancel(id);
  }
  const double seconds = now() - start;
  const int64_t tokens = test.decode ? generated : int64_t{test.n_prompt} * test.batch;
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void Bench::print_table() const {
  std::printf("%s, %s, context of %lld\n", printable(engine_->model().name()).c_str(),
              engine_->runner().device_description().c_str(), static_cast<long long>(engine_->context()));
  if (!bandwidths_.empty()) std::printf("read bandwidth %.1f GB/s (median)\n", median(bandwidths_) / 1e9);
  std::printf("\ntest     tokens  batch  tokens/s (least .. most)          of read bandwidth\n");
  for (const Test& test : tests_) {
    const auto [least, most] = std::minmax_element(test.rates.begin(), test.rates.end());
    std::printf("%-8s %6d %6d  %8.2f (%.2f .. %.2f)", test.name().c_str(), test.n_prompt + test.n_gen, test.batch,
                median(test.rates), *least, *most);
    if (!test.fractions.empty()) std::printf("  %.0f %%", 100 * median(test.fractions));
    std::printf("\n");
  }
}

void Bench::print_json() const {
  ordered_json results = ordered_json::array();
  for (const Test& test : tests_) {
    const auto [least, most] = std::minmax_element(test.rates.begin(), test.rates.end());
    results.push_back(
        {{"test", test.name()},
         {"n_prompt", test.n_prompt},
         {"n_gen", test.n_gen},
         {"batch", test.batch},
         {"threads", options_.model.threads > 0 ? ordered_json(options_.model.threads) : ordered_json("default")},
         {"tokens_per_second", median(test.rates)},
         {"least", *least},
         {"most", *most},
         {"fraction_of_limit", test.fractions.empty() ? ordered_json(nullptr) : ordered_json(median(test.fractions))}});
  }
  const ordered_json document = {
      {"model", engine_->model().name()},
      {"machine",
       {{"device", engine_->runner().device_description()},
        {"read_bandwidth", bandwidths_.empty() ? ordered_json(nullptr) : ordered_json(median(bandwidths_))}}},
      {"results", results}};
  std::printf("%s\n", document.dump().c_str());
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (options.model.model.empty() == options.shape.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[bench] either -m or --shape, found both or neither");
  }
  const auto some = [](const std::vector<int>& list) {
    return std::any_of(list.begin(), list.end(), [](int n) { return n > 0; });
  };
  if (!some(options.prompts) && !some(options.generations)) {
    throw Error(ErrorCode::kInvalidArgument, "[bench] something to measure: -p or -n above 0, found neither");
  }
  const auto file = options.shape.empty() ? GgufFile::open(options.model.model)
                                          : open_shape(options.shape, options.type, RandomWeights::kFill);
  Bench bench(load_model(file), options);
  if (!bench.run()) return 130;
  options.json ? bench.print_json() : bench.print_table();
  return 0;
}

}  // namespace infer
