// The one path from requests to tokens: the terminal chat is one request here, a server has many. Each step is
// schedule, run, sample, commit. Owned and called by one thread.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/engine/chunk_pacer.h"
#include "src/engine/load_runner.h"
#include "src/engine/scheduler.h"
#include "src/text/dry_breaker_cache.h"
#include "src/text/tokenizer.h"

namespace infer {

struct EngineOptions {
  std::vector<std::string> devices = {"cpu"};  // that take layers, see open_devices(); none: see default_accelerator()
  std::shared_ptr<DeviceSet> opened;           // those, where they are open already; null: opened as asked for above
  PlacementOptions placement;
  bool strict_offload = false;  // a missing kernel, or too little memory on a device, is an error
  // Gets a line for what was not done as asked: fewer layers on a device, operations that run on the CPU for want of a
  // kernel. At construction, and later when a step of another size brings something new.
  std::function<void(const std::string& line)> note;
  int n_threads = 0, n_threads_batch = 0;  // see DeviceOptions, as the next
  std::vector<int> processors;
  bool deterministic = false, blas = false;
  int64_t blas_min_rows = 0;
  int64_t context = 0;             // tokens per sequence; 0: what the model was trained with, at most kDefaultContext
  int max_sequences = 1;           // computed side by side
  int max_waiting = 1024;          // requests in the queue
  int64_t cache_tokens = 0;        // of all sequences together; 0: a whole context for each
  int step_tokens = 512;           // token budget of a step
  std::vector<uint64_t> reserved;  // bytes left to others by kAutoLayers, per device of the set; missing ones are 0
  std::optional<DataType> key_type, value_type;  // of the KV cache; unset: that of the first device with layers
  double max_itl_ms = 0;    // bound of a step with prompt tokens while texts are being written, see ChunkPacer; 0: none
  bool all_logits = false;  // a step has room for the logits of every token, as for requests with logits_from
  // Otherwise rows of logits take up to so many bytes, and at least one row for each sequence: the prompts of requests
  // with logits_from are computed that many rows at a time.
  uint64_t logits_bytes = 0;
  // Results of a sequence that are not numbers, or from which no token can be drawn, end it with FinishReason::kError
  // and its choices with it; otherwise step() throws.
  bool isolate_errors = false;
  bool embeddings = false;  // requests may ask for pooled hidden states
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;  // see PlanOptions
  bool profile = false;                                             // time every operation; steps take a little longer
};
inline constexpr int64_t kDefaultContext = 4096;

// What a step brought for one sequence.
struct Progress {
  RequestId id = 0;             // of a request, or of one of its choices
  std::vector<TokenId> tokens;  // newly generated
  FinishReason finished = FinishReason::kNone;
  int64_t prompt_tokens = 0, cached_tokens = 0;  // of the prompt: its length, and how much of it was not computed again
  double queue_seconds = 0;                      // from submit() to its first step
  std::vector<float> pooled;                     // [n_embd], with the last step of a request for pooling
  std::string error;                             // why, with FinishReason::kError
};

// Time and work since the engine was made.
struct EngineStats {
  int64_t prompt_tokens = 0, prompt_steps = 0;     // steps that computed any prompt token
  int64_t generated_tokens = 0, decode_steps = 0;  // steps that only generated
  double prompt_seconds = 0, decode_seconds = 0;
};

// The devices that the options name, or those that are open.
std::shared_ptr<DeviceSet> open_devices(const EngineOptions& options);
// What an engine with these options would take on each device, with nothing allocated. Throws as the Engine does.
std::vector<DeviceUse> plan_memory(std::shared_ptr<Model> model, const EngineOptions& options);
// Tokens of context that the options ask for, or the model's own.
int64_t choose_context(const Model& model, int64_t asked);

class Engine {
 public:
  Engine(std::shared_ptr<Model> model, const EngineOptions& options);
  ~Engine();

  // Queues a request, with the DRY breakers of dry_breakers() where it has none; false when the queue is full. Throws
  // what Scheduler::add throws, and Error(kInvalidArgument) for token ids outside the vocabulary.
  [[nodiscard]] bool submit(Request request);
  // Tokens that may follow the known ones of a sequence, verified by its next step; the text does not depend on them.
  void propose(RequestId id, std::span<const TokenId> drafts) { scheduler_->propose(id, drafts); }
  // Drops every request and all that the cache holds. The way on after std::bad_alloc has left submit(), cancel() or
  // step() half done; throws it too, and may then be called again.
  void reset();
  // Ends a request at once, of whatever stage; unknown ids are ignored. While its prompt is being computed, a request
  // takes its choices with it; afterwards each goes on alone. Not from within a LogitsCallback.
  void cancel(RequestId id, FinishReason reason = FinishReason::kCancelled);
  bool idle() const;
  // Gives back what the last request of a conversation left (Request::conversation).
  void forget(uint64_t conversation) { scheduler_->forget(conversation); }

  // Runs one step and says what became of every sequence that took part or ended. Empty when there is nothing to do.
  std::vector<Progress> step();

  // Any thread: what submit() would otherwise have to build on the engine's.
  DryBreakerCache& dry_breakers() { return dry_breakers_; }

  // Called for every row with logits, before sampling: position is that of the token the row belongs to. The row that
  // several choices begin with is reported to each. The logits are valid until the next step().
  using LogitsCallback = std::function<void(RequestId id, int64_t position, std::span<const float> logits)>;
  void on_logits(LogitsCallback callback) { on_logits_ = std::move(callback); }

  const Model& model() const { return runner_->model(); }
  ModelRunner& runner() { return *runner_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const EngineStats& stats() const { return stats_; }
  Profile* profile() { return profile_.get(); }  // null unless asked for
  const StepRecord& last_step() const { return last_step_; }
  int64_t context() const { return scheduler_->config().max_context; }
  // FNV-1a of the bits of the last row of logits: equal runs give equal hashes.
  uint64_t last_logits_hash() const;

 private:
  void fill(const StepPlan& plan);
  struct Drawn {
    std::vector<std::vector<TokenId>> tokens;  // one after another, for each sequence of the plan
    std::vector<Choice> choices;
    struct Failure {
      RequestId id;
      std::string error;
    };
    std::vector<Failure> failures;
  };
  // The sampling of one sequence, or of the first token of one of its choices.
  struct Draw {
    const ScheduledSequence* scheduled = nullptr;
    int output = 0;                  // row of the logits of the first sampled position
    std::optional<Sampler> sampler;  // of a choice; else the sequence's own counts
    std::vector<TokenId> tokens;
    std::exception_ptr failure;
  };
  Drawn draw(const StepPlan& plan);
  void check_rows(const StepPlan& plan, std::vector<std::exception_ptr>& failures);
  void report_logits(const ScheduledSequence& s, int output) const;
  void draw_tokens(Draw& draw, SamplerScratch& scratch) const;
  void collect(const StepPlan& plan, std::vector<Draw>& draws, std::vector<std::exception_ptr>& failures, Drawn& drawn);
  void fail(const Sequence& s, const std::exception_ptr& failure, Drawn& drawn);
  void pool(const StepPlan& plan);
  std::vector<float> take_pooled(const Sequence& s);
  Progress describe(const Sequence& s, int64_t known_before);
  void note_fallbacks();

  Tokenizer tokenizer_;
  DryBreakerCache dry_breakers_;
  std::unique_ptr<Profile> profile_;  // outlives the runner
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<StepInputs> inputs_;
  std::vector<SamplerScratch> scratch_;  // one per thread
  LogitsCallback on_logits_;
  EngineStats stats_;
  StepRecord last_step_;
  ChunkPacer pacer_;
  const bool isolate_errors_;
  const std::function<void(const std::string& line)> note_;
  size_t n_noted_ = 0;  // fallbacks
  struct Times {
    double submitted, started;  // seconds of a steady clock; started: 0 before the first step
  };
  std::unordered_map<RequestId, Times> times_;
  std::unordered_map<RequestId, std::vector<double>> pooled_;  // [n_embd]: sums over the positions computed
  std::vector<float> last_logits_;
};

}  // namespace infer
