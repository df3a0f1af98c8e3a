// Runs a model through Graph, Plan and StepInputs without an engine: one sequence, with its own caches, arenas and a
// shuffled block table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ggml-like/plan.h"
#include "src/model/model.h"

namespace infer::test {

struct RunSetup {
  std::vector<Device*> devices;                                        // as PlanOptions::devices
  std::function<int(int layer)> layer_device = [](int) { return 0; };  // weights and caches follow
  std::vector<Observer> observers = {};
  CacheTypes cache = {DataType::kF32, DataType::kF32};
  std::function<bool(int position)> is_output = [](int) { return true; };
  std::span<const float> hidden = {};  // that comes with the tokens of a prediction layer, [n_tokens, n_embd]
};

// The results of all outputs.
struct RunResult {
  std::vector<float> logits;  // [n_outputs, n_vocab]
  std::vector<float> hidden;  // [n_outputs, n_embd]
  std::vector<float> states;  // [n_outputs, n_embd], what a prediction layer takes
  int n_copies = 0;           // between devices, of the last chunk
};

// Computes `tokens` from position 0 in chunks of the given sizes, which add up to their number; none: one chunk.
RunResult run_model(const Model& model, std::span<const int32_t> tokens, const RunSetup& setup,
                    std::span<const int> chunks = {});

// Natural logarithms of the softmax of one row.
std::vector<double> log_softmax(std::span<const float> logits);

}  // namespace infer::test
