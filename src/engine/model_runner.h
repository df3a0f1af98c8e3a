// Runs steps of a model: allocates memory on the devices that its parts are placed on, and turns StepInputs into logits
// and hidden states. Knows nothing about requests or sequences. One thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "src/engine/plan_cache.h"
#include "src/text/best_logits.h"

namespace infer {

// The bytes a runner with these options would take on each device; allocates nothing. Throws as PlacedModel and Plan
// do.
std::vector<DeviceUse> plan_memory_use(std::shared_ptr<const Model> model, const RunnerOptions& options);

class ModelRunner {
 public:
  // Places the model, allocates all memory and uploads the weights. Throws what PlacedModel, Plan and ModelMemory
  // throw.
  ModelRunner(std::shared_ptr<const Model> model, const RunnerOptions& options);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  // Computes one step. Output row i has logits(i), if requested, and hidden(i), valid until the next run. If the step
  // has no outputs, a device with its own memory may still be working when this returns.
  // If the best `n_deciding` logits of each row suffice (0: all are needed), a device may return only those; best(i)
  // then replaces logits(i).
  void run(const StepInputs& step, int64_t n_deciding = 0);
  bool has_logits(int output) const { return has_logits_[static_cast<size_t>(output)]; }
  std::span<const float> logits(int output) const;  // [n_vocab]; REQUIRES: has_logits(output)
  BestLogits best(int output) const;                // at least n_deciding; REQUIRES: only those were returned
  // Brings the logits of these rows as well, if they are not here yet.
  void fetch_logits(std::span<const int> outputs);
  std::span<const float> hidden(int output) const;  // [n_embd], after the final norm
  std::span<const float> state(int output) const;   // [n_embd], the input of a prediction layer
  // See ModelMemory::copy_block().
  void copy_block(int group, int32_t from, int32_t to) { memory_.copy_block(group, from, to); }

  // The CPU's threads, for processing a step's results between two runs; see Stream::parallel_for().
  int n_threads() const { return streams_[0]->n_threads(); }
  void parallel_for(int64_t n, const std::function<void(int64_t piece, int thread)>& body) {
    streams_[0]->parallel_for(n, body);
  }

  const Model& model() const { return placed_.model(); }
  const PlacedModel& placed() const { return placed_; }
  const PlanCache& plans() const { return plans_; }  // for fallbacks to the CPU
  const std::vector<DeviceUse>& memory_use() const { return use_; }

 private:
  const PlacedModel placed_;
  std::vector<std::unique_ptr<Stream>> streams_;  // one per device
  ModelMemory memory_;
  PlanCache plans_;             // destroyed before the streams its segments were compiled for
  std::vector<DeviceUse> use_;  // one per device
  // Of the last step, in the plan's memory.
  BucketPlan* last_ = nullptr;
  std::span<const float> logits_, hidden_, states_, best_values_, log_sums_;
  std::span<const int32_t> best_ids_;
  int n_selected_ = 0;            // logits returned per row; 0: all
  std::vector<bool> has_logits_;  // by output row
};

}  // namespace infer
