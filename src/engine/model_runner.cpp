#include "src/engine/model_runner.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "backends/registry.h"
#include "ggml-like/error.h"

namespace infer {
namespace {

std::string gib(uint64_t bytes) {
  std::ostringstream out;
  out.precision(3);
  out << static_cast<double>(bytes) / (1u << 30) << " GiB";
  return out.str();
}

}  // namespace

ModelRunner::~ModelRunner() = default;

ModelRunner::ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options, PlanOnly)
    : model_(std::move(model)), options_(options) {
  open_devices();
  place_layers();
  sum_up();
}

ModelRunner::ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options)
    : ModelRunner(std::move(model), options, PlanOnly{}) {
  upload_weights();
  allocate_cache();
  // The largest bucket comes first: its arenas hold every other plan's activations.
  entry(largest());
}

std::vector<DeviceUse> ModelRunner::plan(std::shared_ptr<Model> model, const RunnerOptions& options) {
  return ModelRunner(std::move(model), options, PlanOnly{}).use_;
}

void ModelRunner::open_devices() {
  const DeviceOptions threads = {options_.n_threads, options_.n_threads_batch, options_.processors,
                                 options_.deterministic};
  devices_.push_back(open_device("cpu", threads));
  if (options_.device != "cpu") devices_.push_back(open_device(options_.device, threads));
  for (const auto& device : devices_) streams_.push_back(device->create_stream());
  arenas_.resize(devices_.size());
  step_buffers_.resize(devices_.size());
}

// The last N of the n_layer + 1 layers (the head is the last) are on the second device. The embedding is a row look-up
// and stays where the input is, unless everything is on the second device.
int ModelRunner::device_of_layer(int layer) const {
  if (devices_.size() == 1) return 0;
  const int n = model_->n_layer() + 1;
  const int on_device = options_.n_gpu_layers == kAllLayers ? n + 1 : options_.n_gpu_layers;
  if (layer == kInputLayer) return on_device > n ? 1 : 0;
  const int index = layer == kOutputLayer ? n - 1 : layer;
  return index >= n - on_device ? 1 : 0;
}

void ModelRunner::place_layers() {
  std::vector<int> layers = {kInputLayer, kOutputLayer};
  for (int i = 0; i < model_->n_layer(); ++i) layers.push_back(i);
  for (const int layer : layers) {
    for (Weight* weight : model_->weights_of_layer(layer)) weight->device = device_of_layer(layer);
  }
  const DataType own = devices_.back()->default_cache_type();
  model_->set_cache_types(options_.default_cache_types ? own : options_.key_type,
                          options_.default_cache_types ? own : options_.value_type);
}

void ModelRunner::sum_up() {
  use_.resize(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    use_[d].device = devices_[d]->name();
    use_[d].is_host = devices_[d]->is_host();
    use_[d].memory = devices_[d]->memory();
  }
  std::set<std::pair<int, const void*>> counted;  // the embedding may be the output matrix as well
  const auto add_weights = [&](int layer) {
    DeviceUse& use = use_[device_of_layer(layer)];
    for (const Weight* weight : model_->weights_of_layer(layer)) {
      if (!counted.emplace(device_of_layer(layer), weight->host).second) continue;
      use.weights += weight->desc.bytes();
      use.weights_by_type[weight->desc.type] += weight->desc.bytes();
    }
  };
  add_weights(kInputLayer);
  add_weights(kOutputLayer);
  use_[device_of_layer(kInputLayer)].has_input = true;
  use_[device_of_layer(kOutputLayer)].has_output = true;
  for (int layer = 0; layer < model_->n_layer(); ++layer) {
    add_weights(layer);
    DeviceUse& use = use_[device_of_layer(layer)];
    ++use.n_layers;
    use.cache_block += devices_[device_of_layer(layer)]->cache_block_bytes(model_->cache_desc(layer));
  }
  for (DeviceUse& use : use_) {
    if (use.cache_block != 0 && static_cast<uint64_t>(options_.n_blocks) > (uint64_t{1} << 62) / use.cache_block) {
      throw Error(ErrorCode::kOutOfMemory, "[memory] the context is larger than any memory");
    }
    use.cache = use.cache_block * static_cast<uint64_t>(options_.n_blocks);
  }
  const Entry entry = make_entry(largest());
  for (size_t d = 0; d < devices_.size(); ++d) use_[d].activations = entry.plan->arena_bytes(static_cast<int>(d));
  // The inputs lie on the host and are copied to each device of its own memory; results come back to the host.
  const StepCapacity& capacity = options_.capacity;
  const uint64_t inputs = StepInputs::bytes(capacity);
  for (size_t d = 0; d < devices_.size(); ++d) use_[d].staging = d == 0 || !use_[d].is_host ? inputs : 0;
  const auto rows_of = [](int rows, int64_t width) { return sizeof(float) * static_cast<uint64_t>(rows) * width; };
  use_[0].staging += rows_of(capacity.logits > 0 ? capacity.logits : capacity.outputs, model_->n_vocab()) +
                     rows_of(capacity.outputs, model_->n_embd());
}

void ModelRunner::upload_weights() {
  std::vector<int> layers = {kInputLayer, kOutputLayer};
  for (int i = 0; i < model_->n_layer(); ++i) layers.push_back(i);
  std::map<std::pair<int, const void*>, Buffer*> uploaded;
  for (const int layer : layers) {
    const int device = device_of_layer(layer);
    if (devices_[device]->is_host()) continue;
    for (Weight* weight : model_->weights_of_layer(layer)) {
      Buffer*& buffer = uploaded[{device, weight->host}];
      if (!buffer) {
        weight_buffers_.push_back(devices_[device]->allocate(weight->desc.bytes()));
        buffer = weight_buffers_.back().get();
        streams_[device]->upload(*buffer, 0, weight->host, weight->desc.bytes());
      }
      weight->device_buffer = buffer;
      weight->device_offset = 0;
    }
  }
}

void ModelRunner::allocate_cache() {
  for (const DeviceUse& use : use_) {
    if (use.cache > use.memory.free) {
      throw Error(ErrorCode::kOutOfMemory,
                  concat("[memory] a context of ", options_.n_blocks * kBlockTokens, " tokens needs ", gib(use.cache),
                         " of KV cache, ", use.device, " has ", gib(use.memory.free), " free; choose a smaller -c"));
    }
  }
  for (int layer = 0; layer < model_->n_layer(); ++layer) {
    Device& device = *devices_[device_of_layer(layer)];
    caches_.push_back(device.allocate(device.cache_block_bytes(model_->cache_desc(layer)) * options_.n_blocks));
  }
}

// No buffer yet while the runner is only planned.
CacheRef ModelRunner::cache_of_layer(int layer) const {
  const size_t i = static_cast<size_t>(layer);
  return {nullptr, i < caches_.size() ? caches_[i].get() : nullptr, 0, options_.n_blocks};
}

ModelRunner::Bucket ModelRunner::largest() const {
  const StepCapacity& c = options_.capacity;
  return {bucket_size(c.tokens), bucket_size(c.outputs), bucket_size(c.logits > 0 ? c.logits : c.outputs)};
}

ModelRunner::Entry ModelRunner::make_entry(const Bucket& bucket) const {
  Graph graph(bucket.tokens, bucket.outputs, bucket.logits);
  const ModelOutputs values = model_->build(graph);
  PlanOptions options;
  for (const auto& device : devices_) options.devices.push_back(device.get());
  options.layer_device = [this](int layer) { return device_of_layer(layer); };
  options.cache = [this](int layer) { return cache_of_layer(layer); };
  options.observers = options_.observers;
  options.product_observer = options_.product_observer;
  options.profile = options_.profile;
  options.strict = options_.strict_offload;
  return {std::make_unique<Plan>(std::move(graph), std::move(options)), values};
}

ModelRunner::Entry& ModelRunner::entry(const Bucket& bucket) {
  const auto found = plans_.find(bucket);
  if (found != plans_.end()) return found->second;

  Entry made = make_entry(bucket);
  if (plans_.empty()) fallbacks_ = made.plan->fallbacks();

  std::vector<Buffer*> arenas;
  bool grown = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const size_t needed = made.plan->arena_bytes(static_cast<int>(d));
    if (needed > 0 && (!arenas_[d] || arenas_[d]->size() < needed)) {
      const uint64_t free = devices_[d]->memory().free;
      if (needed > free) {
        throw Error(ErrorCode::kOutOfMemory, concat("[memory] a step of ", bucket.tokens, " tokens needs ", gib(needed),
                                                    ", ", devices_[d]->name(), " has ", gib(free), " free"));
      }
      arenas_[d] = devices_[d]->allocate(needed);
      grown = true;
    }
    arenas.push_back(arenas_[d].get());
  }
  Entry& kept = plans_.emplace(bucket, std::move(made)).first->second;
  kept.plan->bind(arenas);
  if (grown) {
    for (auto& [key, other] : plans_) other.plan->bind(arenas);
  }
  return kept;
}

void ModelRunner::run(const StepInputs& step) {
  Entry& e = entry({bucket_size(step.n_tokens()), bucket_size(step.n_outputs()), bucket_size(step.n_logits())});
  std::vector<Stream*> streams;
  for (const auto& stream : streams_) streams.push_back(stream.get());
  std::vector<Buffer*> step_buffers(devices_.size(), nullptr);
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->is_host()) continue;
    const size_t bytes = step.raw().size_bytes();
    if (!step_buffers_[d] || step_buffers_[d]->size() < bytes) step_buffers_[d] = devices_[d]->allocate(bytes);
    streams_[d]->upload(*step_buffers_[d], 0, step.raw().data(), bytes);
    step_buffers[d] = step_buffers_[d].get();
  }
  e.plan->run(step, streams, step_buffers);
  if (step.n_outputs() == 0) return;
  logits_.resize(static_cast<size_t>(step.n_logits()) * model_->n_vocab());
  hidden_.resize(static_cast<size_t>(step.n_outputs()) * model_->n_embd());
  e.plan->read_output(e.outputs.logits, step, streams, logits_.data());
  e.plan->read_output(e.outputs.hidden, step, streams, hidden_.data());
}

std::span<const float> ModelRunner::logits(int output) const {
  const size_t n = static_cast<size_t>(model_->n_vocab());
  return std::span<const float>(logits_).subspan(output * n, n);
}

std::span<const float> ModelRunner::hidden(int output) const {
  const size_t n = static_cast<size_t>(model_->n_embd());
  return std::span<const float>(hidden_).subspan(output * n, n);
}

void ModelRunner::copy_block(int32_t from, int32_t to) {
  for (int layer = 0; layer < model_->n_layer(); ++layer) {
    const int d = device_of_layer(layer);
    const size_t bytes = devices_[d]->cache_block_bytes(model_->cache_desc(layer));
    std::vector<std::byte> block(bytes);
    streams_[d]->download(block.data(), *caches_[layer], from * bytes, bytes);
    streams_[d]->synchronize();
    streams_[d]->upload(*caches_[layer], to * bytes, block.data(), bytes);
    streams_[d]->synchronize();
  }
}

uint64_t ModelRunner::bytes_per_token() const {
  uint64_t bytes = 0;
  const auto count = [&](int layer) {
    for (const Weight* weight : model_->weights_of_layer(layer)) {
      const uint64_t all = weight->desc.bytes();
      const bool experts = weight->desc.shape.rank == 3;
      bytes += experts ? all / weight->desc.shape[0] * model_->config().n_expert_used : all;
    }
  };
  for (int layer = 0; layer < model_->n_layer(); ++layer) count(layer);
  count(kOutputLayer);
  return bytes;
}

ModelRunner::Operations ModelRunner::operations_of(int layer) const {
  Operations sum;
  for (const Weight* weight : model_->weights_of_layer(layer)) {
    const Shape& shape = weight->desc.shape;
    if (shape.rank < 2) continue;
    const double share = shape.rank == 3 ? static_cast<double>(model_->config().n_expert_used) / shape[0] : 1;
    const bool floats = traits(weight->desc.type).activation == ActivationFormat::kF32;
    (floats ? sum.floats : sum.quantized) += 2 * share * static_cast<double>(shape.elements());
  }
  return sum;
}

ModelRunner::Operations ModelRunner::operations_per_token() const {
  Operations sum;
  for (int layer = 0; layer < model_->n_layer(); ++layer) {
    const Operations of_layer = operations_of(layer);
    sum.quantized += of_layer.quantized;
    sum.floats += of_layer.floats;
  }
  return sum;
}

ModelRunner::Operations ModelRunner::operations_of_head() const { return operations_of(kOutputLayer); }

uint64_t ModelRunner::cache_bytes_per_token() const {
  uint64_t block = 0;
  for (const DeviceUse& use : use_) block += use.cache_block;
  return block / kBlockTokens;
}

MachineLimits ModelRunner::measure_limits() { return devices_.back()->measure_limits(); }

double ModelRunner::read_bandwidth() { return devices_.back()->read_bandwidth(); }

std::string ModelRunner::device_description() const {
  return devices_.size() == 1
             ? devices_[0]->description()
             : concat(devices_[1]->name(), " (", devices_[1]->description(), ") and ", devices_[0]->description());
}

}  // namespace infer
