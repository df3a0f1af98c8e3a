#include "tools/bench/bench.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <set>

#include "ggml-like/clock.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "src/engine/draft/load_draft.h"
#include "src/engine/engine.h"
#include "src/engine/roofline.h"
#include "src/text/ordered_json.h"
#include "tools/input.h"
#include "tools/interrupt.h"
#include "tools/profile_table.h"
#include "tools/status_line.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

// One row of the table.
struct Test {
  bool decode = false, drafts = false;
  int n_prompt = 0, n_gen = 0, batch = 1;
  std::vector<double> rates = {};      // tokens per second, all sequences together, one per repetition
  std::vector<double> fractions = {};  // fractions of the limits measured with each repetition
  Profile profile = {};                // of all repetitions, if requested
  DraftCounts counts = {};             // of all repetitions
  int64_t n_tokens = 0, n_rounds = 0;  // as EngineStats::decode_tokens and decode_rounds

  std::string name() const { return drafts ? "drafts" : decode ? "decode" : "prefill"; }
  double tokens_per_step() const {
    return n_rounds > 0 ? static_cast<double>(n_tokens) / static_cast<double>(n_rounds) : 0;
  }
  double acceptance() const {
    return counts.proposed > 0 ? static_cast<double>(counts.accepted) / static_cast<double>(counts.proposed) : 0;
  }
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
        if (n > 0) tests_.push_back({.n_prompt = n, .batch = batch});
      }
    }
    EngineOptions engine = options.model.engine_options();
    engine.speculation = options.speculation.options();
    engine = with_prediction(engine, *model);
    for (const int n : options.generations) {
      for (const int batch : options.batches) {
        if (n > 0) tests_.push_back({.decode = true, .n_gen = n, .batch = batch});
        if (n > 0 && engine.speculation.any()) {
          tests_.push_back({.decode = true, .drafts = true, .n_gen = n, .batch = batch});
        }
      }
    }
    for (const Test& test : tests_) {
      engine.context = std::max<int64_t>(engine.context, test.n_prompt + test.n_gen + options.depth + 2);
      engine.max_sequences = std::max(engine.max_sequences, test.batch);
    }
    engine.profile = options.operations;
    engine_ = std::make_unique<Engine>(std::move(model), engine);
    if (!options.text_file.empty())
      text_ = engine_->tokenizer().encode(read_text_file(options.text_file), false, false);
    if (!options.text_file.empty() && text_.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "The file of --file is empty. Name a file with text.");
    }
  }

  // The repetitions of the tests are interleaved, so that changes in the machine's speed affect all tests alike.
  bool run() {
    const InterruptGuard guard;
    StatusLine progress;
    for (int repetition = -1; repetition < options_.repetitions; ++repetition) {
      for (Test& test : tests_) {
        const std::string round =
            repetition < 0 ? "warm-up" : concat("round ", repetition + 1, " of ", options_.repetitions);
        progress.show(
            concat(round, ": ", test.name(), ", ", test.n_prompt + test.n_gen, " tokens, batch of ", test.batch));
        const double rate = measure(test, guard);
        if (guard.interrupted()) return false;
        if (repetition < 0) {  // the first pass reads the file and warms the caches
          test.counts = {};
          test.n_tokens = test.n_rounds = 0;
          continue;
        }
        test.rates.push_back(rate);
        if (engine_->profile()) test.profile.add(*engine_->profile());
        const MachineLimits limits = infer::measure_limits(engine_->runner().placed());
        const double least = least_seconds_per_token(test, limits);
        if (least > 0) test.fractions.push_back(least * rate);
        bandwidths_.push_back(limits.read_bytes);
        int8_peaks_.push_back(limits.int8_operations);
        float_peaks_.push_back(limits.float_operations);
      }
    }
    return true;
  }

  void print_table() const;
  void print_json() const;

 private:
  double measure(Test& test, const InterruptGuard& guard);
  double least_seconds_per_token(const Test& test, const MachineLimits& limits);
  MachineLimits median_limits() const;
  void submit(const Test& test);
  std::vector<TokenId> prompt_of(RequestId id, int length) const;

  const BenchOptions& options_;
  std::unique_ptr<Engine> engine_;
  std::vector<Test> tests_;
  std::vector<TokenId> text_;                                  // empty: prompts are random
  std::vector<double> bandwidths_, int8_peaks_, float_peaks_;  // one per measurement
  RequestId next_id_ = 1;
};

// The lower bound under these limits: a step reads the weights once and the keys and values of every sequence, and does
// the arithmetic of its matmuls. For prompts the output head is not counted: at most one row goes through it.
double Bench::least_seconds_per_token(const Test& test, const MachineLimits& limits) {
  const PlacedModel& placed = engine_->runner().placed();
  Operations work = operations_per_token(placed.model());
  const Operations head = operations_of_head(placed.model());
  if (test.decode) work = {work.quantized + head.quantized, work.floats + head.floats};
  double arithmetic = 0;
  if (limits.int8_operations > 0) arithmetic += work.quantized / limits.int8_operations;
  if (limits.float_operations > 0) arithmetic += work.floats / limits.float_operations;
  if (!test.decode) return arithmetic;
  const double context = std::max(options_.depth, 1) + test.n_gen / 2.0;
  const double bytes = static_cast<double>(bytes_per_token(placed)) +
                       test.batch * context * static_cast<double>(cache_bytes_per_token(placed));
  const double memory = limits.read_bytes > 0 ? bytes / limits.read_bytes / test.batch : 0;
  return std::max(arithmetic, memory);
}

MachineLimits Bench::median_limits() const {
  if (bandwidths_.empty()) return {};
  return {median(bandwidths_), median(int8_peaks_), median(float_peaks_)};
}

// Random tokens, or a piece of the text; past its end it continues from its start.
std::vector<TokenId> Bench::prompt_of(RequestId id, int length) const {
  std::vector<TokenId> prompt;
  for (size_t t = 0; t < static_cast<size_t>(length); ++t) {
    if (text_.empty()) prompt.push_back(static_cast<TokenId>((id * 7919 + t * 31) % engine_->model().n_vocab()));
    else prompt.push_back(text_[(id * 7919 + t) % text_.size()]);
  }
  return prompt;
}

void Bench::submit(const Test& test) {
  for (int i = 0; i < test.batch; ++i) {
    Request request;
    request.id = next_id_++;
    // The same prompts with and without drafts.
    const auto number = static_cast<RequestId>(i) + 1;
    request.prompt =
        prompt_of(test.decode ? number : request.id, test.decode ? std::max(options_.depth, 1) : test.n_prompt);
    if (!test.drafts) request.max_drafts = 0;
    request.max_new_tokens = test.decode ? test.n_gen + 1 : 1;
    request.ignore_eog = true;
    request.reuse_prefix = false;
    request.sampling.temperature = 0;
    if (!engine_->submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[bench] the queue is full");
  }
}

// Tokens per second. The time of a prompt includes sampling the first token after it; otherwise an accelerator could
// still be at work when the clock is read. Generation is timed from when every sequence has its first token until the
// first of them has its last, so the batch is full all the time.
double Bench::measure(Test& test, const InterruptGuard& guard) {
  const RequestId first = next_id_;
  submit(test);
  const auto stop_if_interrupted = [&] {
    if (!guard.interrupted()) return;
    for (RequestId id = first; id < next_id_; ++id) engine_->cancel(id);
  };
  const size_t awaited = test.decode ? static_cast<size_t>(test.batch) : 0;
  for (std::set<RequestId> begun; begun.size() < awaited && !engine_->idle(); stop_if_interrupted()) {
    for (const Progress& p : engine_->step()) {
      if (!p.tokens.empty()) begun.insert(p.id);
    }
  }
  if (engine_->profile()) engine_->profile()->clear();
  const DraftCounts counts = engine_->scheduler().stats().drafts;
  const EngineStats stats = engine_->stats();
  int64_t generated = 0;
  const double start = steady_seconds();
  for (bool whole = true; whole && !engine_->idle(); stop_if_interrupted()) {
    for (const Progress& p : engine_->step()) {
      generated += static_cast<int64_t>(p.tokens.size());
      whole = whole && !(test.decode && p.finished != FinishReason::kNone);
    }
  }
  const double seconds = steady_seconds() - start;
  test.counts += engine_->scheduler().stats().drafts - counts;
  test.n_tokens += engine_->stats().decode_tokens - stats.decode_tokens;
  test.n_rounds += engine_->stats().decode_rounds - stats.decode_rounds;
  for (RequestId id = first; id < next_id_; ++id) engine_->cancel(id);
  while (!engine_->idle()) engine_->step();
  const int64_t tokens = test.decode ? generated : int64_t{test.n_prompt} * test.batch;
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void Bench::print_table() const {
  std::printf("%s, %s, context of %lld\n", printable(engine_->model().name()).c_str(),
              engine_->runner().placed().options().devices->description().c_str(),
              static_cast<long long>(engine_->context()));
  const MachineLimits limits = median_limits();
  std::printf("limits (median): read bandwidth %.1f GB/s, int8 dot products %.0f Gop/s, F32 %.0f Gop/s\n",
              limits.read_bytes / 1e9, limits.int8_operations / 1e9, limits.float_operations / 1e9);
  std::printf("\ntest     tokens  batch  tokens/s (least .. most)          of the limit\n");
  for (const Test& test : tests_) {
    const auto [least, most] = std::minmax_element(test.rates.begin(), test.rates.end());
    std::printf("%-8s %6d %6d  %8.2f (%.2f .. %.2f)", test.name().c_str(), test.n_prompt + test.n_gen, test.batch,
                median(test.rates), *least, *most);
    if (!test.fractions.empty()) std::printf("  %.0f %%", 100 * median(test.fractions));
    if (test.drafts) {
      std::printf("  %.0f %% accepted, %.2f tokens per step", 100 * test.acceptance(), test.tokens_per_step());
    }
    std::printf("\n");
  }
  for (const Test& test : tests_) {
    if (!options_.operations) break;
    std::printf("\n%s of %d, batch of %d, in %zu rounds:\n%s", test.name().c_str(), test.n_prompt + test.n_gen,
                test.batch, test.rates.size(), profile_table(test.profile, limits).c_str());
  }
}

void Bench::print_json() const {
  const MachineLimits limits = median_limits();
  const auto known = [](double limit) { return limit > 0 ? ordered_json(limit) : ordered_json(nullptr); };
  const int n_threads = options_.model.engine.n_threads;
  ordered_json results = ordered_json::array();
  for (const Test& test : tests_) {
    const auto [least, most] = std::minmax_element(test.rates.begin(), test.rates.end());
    results.push_back(
        {{"test", test.name()},
         {"n_prompt", test.n_prompt},
         {"n_gen", test.n_gen},
         {"depth", test.decode ? options_.depth : 0},
         {"batch", test.batch},
         {"threads", n_threads > 0 ? ordered_json(n_threads) : ordered_json("default")},
         {"tokens_per_second", median(test.rates)},
         {"least", *least},
         {"most", *most},
         {"fraction_of_limit", test.fractions.empty() ? ordered_json(nullptr) : ordered_json(median(test.fractions))}});
    if (test.drafts) {
      results.back()["drafted"] = test.counts.proposed;
      results.back()["accepted"] = test.counts.accepted;
      results.back()["tokens_per_step"] = test.tokens_per_step();
    }
    if (!options_.operations) continue;
    for (const ProfileLine& line : test.profile.lines()) {
      const double bound = least_seconds(line, limits);
      results.back()["operations"].push_back(
          {{"operation", op_info(line.op).name},
           {"type", traits(line.type).name},
           {"n", line.n},
           {"k", line.k},
           {"calls", line.calls},
           {"rows", line.rows},
           {"seconds", line.seconds},
           {"fraction_of_limit",
            bound > 0 && line.seconds > 0 ? ordered_json(bound / line.seconds) : ordered_json(nullptr)}});
    }
  }
  const ordered_json document = {{"model", engine_->model().name()},
                                 {"machine",
                                  {{"device", engine_->runner().placed().options().devices->description()},
                                   {"read_bandwidth", known(limits.read_bytes)},
                                   {"int8_operations_per_second", known(limits.int8_operations)},
                                   {"float_operations_per_second", known(limits.float_operations)}}},
                                 {"results", results}};
  std::printf("%s\n", document.dump().c_str());
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (options.model.model.empty() == options.shape.name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "Give either -m or --shape.");
  }
  const auto some = [](const std::vector<int>& list) {
    return std::any_of(list.begin(), list.end(), [](int n) { return n > 0; });
  };
  if (!some(options.prompts) && !some(options.generations)) {
    throw Error(ErrorCode::kInvalidArgument, "Nothing to measure. Give -p or -n a number above 0.");
  }
  const auto file = options.shape.name.empty()
                        ? options.model.open()
                        : open_shape(options.shape.name, options.shape.type, RandomWeights::kFill);
  Bench bench(load_model(file), options);
  if (!bench.run()) return kInterruptedCode;
  options.json ? bench.print_json() : bench.print_table();
  return 0;
}

}  // namespace infer
