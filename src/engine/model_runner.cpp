#include "src/engine/model_runner.h"

#include "ggml-like/error.h"

namespace infer {
namespace {

std::vector<std::unique_ptr<Stream>> create_streams(const std::vector<Device*>& devices) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (Device* device : devices) streams.push_back(device->create_stream());
  return streams;
}

template <class T>
std::span<const T> row_of(std::span<const T> rows, int row, int width) {
  return rows.subspan(static_cast<size_t>(row) * static_cast<size_t>(width), static_cast<size_t>(width));
}

// The first `n` rows of an output of the plan.
template <class T>
std::span<const T> rows_of(const Plan& plan, ValueId value, int n) {
  const TensorDesc& desc = plan.graph().value(value).desc;
  const int64_t width = desc.shape[1];
  CHECK_INTERNAL(desc.row_stride == width);
  return {reinterpret_cast<const T*>(plan.output_rows(value)), static_cast<size_t>(n * width)};
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
  memory_.upload_weights(options.loading);
}

ModelRunner::~ModelRunner() {
  try {
    for (const auto& stream : streams_) stream->synchronize();
  } catch (const std::exception&) {
    // A lost device needs no synchronization before its memory is freed.
  }
}

void ModelRunner::run(const StepInputs& step, int64_t n_deciding) {
  const Bucket bucket = bucket_of(step, placed_, n_deciding);
  PlanCache::Entry& entry = plans_.get(bucket);
  const BucketPlan& made = entry.made;
  last_ = &entry.made;
  made.plan->run(step);
  plans_.count_run(entry);
  const ModelOutputs& outputs = made.outputs;
  hidden_ = rows_of<float>(*made.plan, outputs.hidden, step.n_outputs());
  states_ = outputs.state == kNoValue ? hidden_ : rows_of<float>(*made.plan, outputs.state, step.n_outputs());
  n_selected_ = bucket.selected;
  has_logits_.assign(static_cast<size_t>(step.n_logits()), n_selected_ == 0);
  logits_ = {};  // an encoder has none
  if (step.n_logits() > 0) logits_ = rows_of<float>(*made.plan, outputs.logits, step.n_logits());
  if (n_selected_ == 0) return;
  best_ids_ = rows_of<int32_t>(*made.plan, made.best.ids, step.n_logits());
  best_values_ = rows_of<float>(*made.plan, made.best.values, step.n_logits());
  log_sums_ = rows_of<float>(*made.plan, made.best.log_sum_exp, step.n_logits());
}

std::span<const float> ModelRunner::logits(int output) const {
  CHECK_INTERNAL(has_logits(output));
  return row_of(logits_, output, model().n_vocab());
}

BestLogits ModelRunner::best(int output) const {
  CHECK_INTERNAL(n_selected_ > 0);
  return {row_of(best_ids_, output, n_selected_), row_of(best_values_, output, n_selected_),
          log_sums_[static_cast<size_t>(output)]};
}

void ModelRunner::fetch_logits(std::span<const int> outputs) {
  std::vector<int> missing;
  for (const int output : outputs) {
    if (has_logits(output)) continue;
    missing.push_back(output);
    has_logits_[static_cast<size_t>(output)] = true;
  }
  last_->plan->fetch(last_->outputs.logits, missing);
}

std::span<const float> ModelRunner::hidden(int output) const { return row_of(hidden_, output, model().n_embd()); }

std::span<const float> ModelRunner::state(int output) const { return row_of(states_, output, model().n_embd()); }

}  // namespace infer
