#include "src/engine/model_runner.h"

#include "ggml-like/error.h"

namespace infer {
namespace {

std::vector<std::unique_ptr<Stream>> create_streams(const std::vector<Device*>& devices) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (Device* device : devices) streams.push_back(device->create_stream());
  return streams;
}

std::span<const float> row_of(std::span<const float> rows, int row, int width) {
  return rows.subspan(static_cast<size_t>(row) * static_cast<size_t>(width), static_cast<size_t>(width));
}

}  // namespace

std::vector<DeviceUse> plan_memory_use(std::shared_ptr<const Model> model, const RunnerOptions& options) {
  const PlacedModel placed(std::move(model), options);
  const BucketPlan largest = make_plan(placed, largest_bucket(options.capacity), nullptr);
  return memory_use(placed, *largest.plan);
}

ModelRunner::ModelRunner(std::shared_ptr<const Model> model, const RunnerOptions& options)
    : placed_(std::move(model), options),
      streams_(create_streams(placed_.devices())),
      memory_(placed_, streams_),
      plans_(placed_, memory_, streams_) {
  const Bucket bucket = largest_bucket(options.capacity);
  BucketPlan largest = make_plan(placed_, bucket, &memory_);
  use_ = infer::memory_use(placed_, *largest.plan);
  memory_.allocate(*largest.plan, use_);
  plans_.keep(bucket, std::move(largest));
  memory_.upload_weights();
}

ModelRunner::~ModelRunner() {
  try {
    for (const auto& stream : streams_) stream->synchronize();
  } catch (const std::exception&) {
    // A device that is lost has no use for the memory either.
  }
}

void ModelRunner::run(const StepInputs& step) {
  PlanCache::Entry& entry = plans_.get(bucket_of(step));
  Plan& plan = *entry.made.plan;
  plan.run(step);
  plans_.count_run(entry);
  const auto rows_of = [&](ValueId value, int n, int width) {
    CHECK_INTERNAL(plan.graph().value(value).desc.row_stride == width);
    const auto* data = reinterpret_cast<const float*>(plan.output_rows(value));
    return std::span<const float>(data, static_cast<size_t>(n) * static_cast<size_t>(width));
  };
  logits_ = rows_of(entry.made.outputs.logits, step.n_logits(), model().n_vocab());
  hidden_ = rows_of(entry.made.outputs.hidden, step.n_outputs(), model().n_embd());
}

std::span<const float> ModelRunner::logits(int output) const { return row_of(logits_, output, model().n_vocab()); }

std::span<const float> ModelRunner::hidden(int output) const { return row_of(hidden_, output, model().n_embd()); }

}  // namespace infer
