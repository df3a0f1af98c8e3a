#include "src/engine/placed_model.h"

#include "ggml-like/error.h"

namespace infer {
namespace {

CacheTypes resolve_cache_types(const Model& model, const RunnerOptions& options) {
  const DeviceSet& set = *options.devices;
  const DataType own = set.devices[static_cast<size_t>(set.of_layers.front())]->default_cache_type();
  const CacheTypes types = {options.key_type.value_or(own), options.value_type.value_or(own)};
  model.check_cache_types(types);
  return types;
}

}  // namespace

PlacedModel::PlacedModel(std::shared_ptr<const Model> model, RunnerOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      devices_(options_.devices->list()),
      placement_(place_model(*model_, *options_.devices, options_.placement)),
      cache_types_(resolve_cache_types(*model_, options_)) {
  CHECK_INTERNAL(options_.n_blocks.size() == model_->cache_groups().size());
}

std::vector<LayerCache> PlacedModel::caches(int layer) const {
  std::vector<LayerCache> caches;
  for (const CacheDesc& desc : model_->caches(layer, cache_types_)) {
    LayerCache& cache = caches.emplace_back();
    cache.desc = desc;
    if (device_of_layer(layer).keeps(desc)) cache.device = placement_.of_layer(layer);
    cache.block_bytes = devices_[static_cast<size_t>(cache.device)]->cache_block_bytes(desc);
    cache.n_blocks = options_.n_blocks[static_cast<size_t>(desc.group)];
  }
  return caches;
}

// Sizes are rounded, so that few plans are made. A host device needs no selection: its logits are already in host
// memory.
Bucket bucket_of(const StepInputs& step, const PlacedModel& placed, int64_t n_deciding) {
  const bool near = step.n_logits() == 0 || placed.device_of_layer(kOutputLayer).is_host();
  const int selected = n_deciding == 1 ? 1 : kMostSelected;
  const bool enough = n_deciding > 0 && n_deciding <= selected && selected <= placed.model().n_vocab();
  return {bucket_size(step.n_tokens()), bucket_size(step.n_outputs()), bucket_size(step.n_logits()),
          enough && !near ? selected : 0};
}

Bucket largest_bucket(const StepCapacity& c) {
  return {bucket_size(c.tokens), bucket_size(c.outputs), bucket_size(c.logits > 0 ? c.logits : c.outputs), 0};
}

BucketPlan make_plan(const PlacedModel& placed, const Bucket& bucket, TensorMemory* memory) {
  Graph graph(bucket.tokens, bucket.outputs, bucket.logits);
  BucketPlan made;
  made.outputs = placed.model().build(graph, placed.cache_types());
  graph.mark_output(made.outputs.hidden);
  if (made.outputs.state != kNoValue) graph.mark_output(made.outputs.state);
  if (bucket.selected > 0) {
    made.best = graph.top_k(made.outputs.logits, bucket.selected);
    for (const ValueId part : {made.best.ids, made.best.values, made.best.log_sum_exp}) graph.mark_output(part);
    graph.mark_output_on_request(made.outputs.logits);
  } else if (made.outputs.logits != kNoValue) {
    graph.mark_output(made.outputs.logits);
  }
  const RunnerOptions& run = placed.options();
  PlanOptions options;
  options.devices = placed.devices();
  options.layer_device = [&placed](int layer) { return placed.placement().of_layer(layer); };
  options.weight_device = [&placed](const Weight& weight) { return placed.placement().of_weight(weight); };
  options.weight = [memory](const Weight& weight, int device) { return memory->weight(weight, device); };
  options.cache = [memory](const CacheDesc& desc) { return memory->cache(desc); };
  options.observers = run.observers;
  options.product_observer = run.product_observer;
  options.profile = run.profile;
  options.strict = run.strict_offload;
  made.plan = std::make_unique<Plan>(std::move(graph), std::move(options));
  return made;
}

}  // namespace infer
