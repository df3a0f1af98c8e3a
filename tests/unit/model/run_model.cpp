#include "tests/unit/model/run_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "ggml-like/error.h"
#include "tests/support/plan_memory.h"

namespace infer::test {
namespace {

// The caches of all layers for one sequence. Block ids descend and leave gaps, so that a wrong table is noticed; the
// first is also the slot of recurrent states.
struct Caches {
  std::map<std::tuple<int, int, CacheUse>, std::unique_ptr<Buffer>> buffers;  // by layer, cache group and use
  std::vector<int32_t> table;
  int64_t n_blocks;

  Caches(const Model& model, const RunSetup& setup, size_t n_tokens) {
    const auto used = static_cast<int>((n_tokens + kBlockTokens - 1) / kBlockTokens);
    n_blocks = 2 * used + 1;
    for (int i = 0; i < used; ++i) table.push_back(2 * (used - i));
    for (int l = 0; l < model.n_layer(); ++l) {
      Device& device = *setup.devices[setup.layer_device(l)];
      for (const CacheDesc& desc : model.caches(l, setup.cache)) {
        buffers[{l, desc.group, desc.use}] = device.allocate(n_blocks * device.cache_block_bytes(desc));
      }
    }
  }
};

struct Chunk {
  int position, n, n_outputs;
};

StepInputs make_step(const Model& model, const RunSetup& setup, std::span<const int32_t> tokens,
                     const std::vector<int32_t>& table, const Chunk& chunk) {
  const int width = setup.hidden.empty() ? 0 : model.n_embd();
  StepInputs step({.tokens = chunk.n,
                   .outputs = chunk.n_outputs,
                   .sequences = 1,
                   .groups = static_cast<int>(model.cache_groups().size()),
                   .blocks_per_sequence = static_cast<int>(table.size()),
                   .hidden = width});
  const std::vector<std::span<const int32_t>> tables(model.cache_groups().size(), table);
  const int sequence = step.add_sequence(tables, chunk.position + chunk.n);
  for (int i = 0; i < chunk.n; ++i) {
    const int position = chunk.position + i;
    step.add_token(sequence, tokens[position], position, setup.is_output(position));
    if (width > 0) step.set_hidden(i, setup.hidden.subspan(static_cast<size_t>(position) * width, width));
  }
  return step;
}

}  // namespace

RunResult run_model(const Model& model, std::span<const int32_t> tokens, const RunSetup& setup,
                    std::span<const int> chunks) {
  const int whole[] = {static_cast<int>(tokens.size())};
  if (chunks.empty()) chunks = whole;
  CHECK_INTERNAL(std::accumulate(chunks.begin(), chunks.end(), 0) == whole[0]);

  std::map<const Weight*, int> weight_device;
  for (const int l : model.all_layers()) {
    for (const Weight* weight : model.weights_of_layer(l)) weight_device[weight] = setup.layer_device(l);
  }

  Caches caches(model, setup, tokens.size());
  std::vector<std::unique_ptr<Stream>> owned;
  std::vector<Stream*> streams;
  for (Device* device : setup.devices) streams.push_back(owned.emplace_back(device->create_stream()).get());

  RunResult result;
  int position = 0;
  for (const int n : chunks) {
    int n_outputs = 0;
    for (int i = 0; i < n; ++i) n_outputs += setup.is_output(position + i);
    Graph graph(bucket_size(n), bucket_size(n_outputs));
    const ModelOutputs outputs = model.build(graph, setup.cache);
    graph.mark_output(outputs.hidden);
    if (outputs.logits != kNoValue) graph.mark_output(outputs.logits);
    if (outputs.state != kNoValue) graph.mark_output(outputs.state);
    PlanOptions options;
    options.devices = setup.devices;
    options.layer_device = setup.layer_device;
    options.weight_device = [&](const Weight& weight) { return weight_device.at(&weight); };
    options.cache = [&](const CacheDesc& desc) {
      return CacheRef{nullptr, caches.buffers.at({desc.layer, desc.group, desc.use}).get(), 0, caches.n_blocks};
    };
    options.observers = setup.observers;
    Plan plan(std::move(graph), std::move(options));
    result.n_copies = 0;
    for (const Plan::Step& s : plan.steps()) {
      if (s.kind == Plan::Step::Kind::kBorder) result.n_copies += static_cast<int>(s.values.size());
    }

    const StepInputs step = make_step(model, setup, tokens, caches.table, {position, n, n_outputs});
    position += n;
    const PlanMemory memory(plan, setup.devices, streams, step.layout());
    plan.run(step);

    const auto read = [&](ValueId value, std::vector<float>& to) {
      const std::vector<float> values = output_values(plan, value, step.view());
      to.insert(to.end(), values.begin(), values.end());
    };
    if (outputs.logits != kNoValue) read(outputs.logits, result.logits);
    read(outputs.hidden, result.hidden);
    read(outputs.state == kNoValue ? outputs.hidden : outputs.state, result.states);
  }
  return result;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float v : logits) sum += std::exp(v - best);
  std::vector<double> result;
  for (const float v : logits) result.push_back(v - best - std::log(sum));
  return result;
}

}  // namespace infer::test
