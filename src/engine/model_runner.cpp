#include "src/engine/model_runner.h"

#include <algorithm>
#include <set>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer {
ModelRunner::ModelRunner(std::shared_ptr<Model> model, const RunnerOptions& options)
    : model_(std::move(model)), options_(options), devices_(options.devices->list()) {
  place();
  largest_ = make_entry(largest());
  sum_up(*largest_.plan);
}

ModelRunner::~ModelRunner() {
  try {
    synchronize();
  } catch (const std::exception&) {
    // A device that is lost has no use for the memory either.
  }
}

std::vector<int> ModelRunner::all_layers() const {
  std::vector<int> layers = {kInputLayer, kOutputLayer};
  for (int i = 0; i < model_->n_layer(); ++i) layers.push_back(i);
  return layers;
}

void ModelRunner::place() {
  const DeviceSet& set = *options_.devices;
  const PlacementOptions& o = options_.placement;
  const int most = placeable_parts(model_->n_layer());
  std::vector<double> shares = o.tensor_split;
  if (shares.empty()) {
    for (const int d : set.of_layers) shares.push_back(static_cast<double>(devices_[d]->memory().free) + 1);
  }
  if (shares.size() != set.of_layers.size()) {
    throw Error(ErrorCode::kInvalidArgument, concat("[offload] --tensor-split: a share for each of the ",
                                                    set.of_layers.size(), " devices, found ", shares.size()));
  }
  const int parts = o.n_gpu_layers == kAllLayers ? most : std::min(o.n_gpu_layers, most);
  placement_ = place_parts(model_->n_layer(), parts, set.of_layers, shares);
  place_weights();
  const DataType own = devices_[set.of_layers.front()]->default_cache_type();
  model_->set_cache_types(options_.default_cache_types ? own : options_.key_type,
                          options_.default_cache_types ? own : options_.value_type);
}

void ModelRunner::place_weights() {
  const DeviceSet& set = *options_.devices;
  const PlacementOptions& o = options_.placement;
  const auto find = [&](const std::string& name) { return set.find(name); };
  for (const TensorRule& rule : o.tensor_rules) {
    if (find(rule.device) >= 0) continue;
    throw Error(ErrorCode::kInvalidArgument, concat("[offload] --tensor-device ", rule.text, ": one of the devices ",
                                                    set.names(), ", found ", rule.device));
  }
  std::vector<bool> used(o.tensor_rules.size(), false);
  for (const int layer : all_layers()) {
    for (const ModelWeight* weight : model_->weights_of_layer(layer)) {
      weight_device_[weight] = place_weight(*weight, layer, placement_, o, find);
      if (weight->desc.shape.rank < 2) continue;
      for (size_t r = 0; r < used.size(); ++r) used[r] = used[r] || o.tensor_rules[r].matches(weight->name);
    }
  }
  for (size_t r = 0; r < used.size(); ++r) {
    if (used[r]) continue;
    throw Error(ErrorCode::kInvalidArgument,
                concat("[offload] --tensor-device ", o.tensor_rules[r].text,
                       ": a pattern that is the whole name of a matrix of the model, found none (infer inspect "
                       "--tensors lists them)"));
  }
}

void ModelRunner::sum_up(const Plan& plan) {
  use_.resize(devices_.size());
  for (size_t d = 0; d < devices_.size(); ++d) {
    use_[d].device = devices_[d]->name();
    use_[d].is_host = devices_[d]->is_host();
    use_[d].memory = devices_[d]->memory();
    use_[d].activations = plan.arena_bytes(static_cast<int>(d));
  }
  std::map<const Weight*, int> home;  // device of the weight's layer
  for (const int layer : all_layers()) {
    for (const Weight* weight : model_->weights_of_layer(layer)) home[weight] = placement_.of_layer(layer);
  }
  for (size_t d = 0; d < devices_.size(); ++d) {
    std::set<const void*> counted;  // the embedding may be the output matrix as well
    for (const Weight* weight : plan.weights_on(static_cast<int>(d))) {
      if (!counted.insert(weight->host).second) continue;
      const uint64_t bytes = weight->desc.bytes();
      use_[d].weights += bytes;
      use_[d].weights_by_type[weight->desc.type] += bytes;
      if (weight->desc.shape.rank > 1 && home[weight] != static_cast<int>(d)) use_[d].guest_weights += bytes;
    }
  }
  use_[placement_.input].has_input = true;
  use_[placement_.output].has_output = true;
  for (const LayerRange& range : placement_.ranges()) {
    DeviceUse& use = use_[range.device];
    use.layers.push_back(range);
    use.n_layers += range.last - range.first + 1;
    for (int layer = range.first; layer <= range.last; ++layer) {
      use.cache_block += devices_[range.device]->cache_block_bytes(model_->cache_desc(layer));
    }
  }
  for (DeviceUse& use : use_) {
    if (use.cache_block != 0 && static_cast<uint64_t>(options_.n_blocks) > (uint64_t{1} << 62) / use.cache_block) {
      throw Error(ErrorCode::kOutOfMemory, "[memory] the context is larger than any memory");
    }
    use.cache = use.cache_block * static_cast<uint64_t>(options_.n_blocks);
  }
  // The inputs lie on the host and are copied to each device of its own memory; results come back to the host.
  const StepCapacity& capacity = options_.capacity;
  const uint64_t inputs = StepInputs::bytes(capacity);
  for (size_t d = 0; d < devices_.size(); ++d) {
    const bool has_own = !devices_[d]->is_host() && plan.uses(static_cast<int>(d));
    use_[d].staging = d == 0 || has_own ? inputs : 0;
  }
  const auto rows_of = [](int rows, int64_t width) { return sizeof(float) * static_cast<uint64_t>(rows) * width; };
  use_[0].staging += rows_of(capacity.logits > 0 ? capacity.logits : capacity.outputs, model_->n_vocab()) +
                     rows_of(capacity.outputs, model_->n_embd());
}

void ModelRunner::load() {
  for (Device* device : devices_) streams_.push_back(device->create_stream());
  arenas_.resize(devices_.size());
  step_buffers_.resize(devices_.size());
  allocate_weights();
  allocate_cache();
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->is_host() || !largest_.plan->uses(static_cast<int>(d))) continue;
    step_buffers_[d] = allocate(d, StepInputs::bytes(options_.capacity));
  }
  // The largest bucket comes first: its arenas hold nearly every other plan's activations.
  keep(largest(), std::move(largest_));
  upload_weights();
}

std::unique_ptr<Buffer> ModelRunner::allocate(size_t device, size_t bytes) {
  try {
    return devices_[device]->allocate(bytes);
  } catch (const Error& error) {
    fails_on_host_ = error.code() == ErrorCode::kOutOfMemory && devices_[device]->is_host();
    throw;
  }
}

void ModelRunner::allocate_weights() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->is_host()) continue;
    for (const Weight* weight : largest_.plan->weights_on(static_cast<int>(d))) {
      std::unique_ptr<Buffer>& buffer = weights_[{static_cast<int>(d), weight->host}];
      if (!buffer) buffer = allocate(d, weight->desc.bytes());
    }
  }
}

void ModelRunner::upload_weights() {
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->is_host()) continue;
    std::set<const void*> uploaded;
    for (const Weight* weight : plans_.at(largest()).plan->weights_on(static_cast<int>(d))) {
      if (!uploaded.insert(weight->host).second) continue;
      streams_[d]->upload(*weights_.at({static_cast<int>(d), weight->host}), 0, weight->host, weight->desc.bytes());
    }
    streams_[d]->synchronize();
  }
}

// A plan of another bucket may place a node where the first did not, if a device supports it in one size only.
BufferPlace ModelRunner::weight_on(const Weight& weight, int device) {
  std::unique_ptr<Buffer>& buffer = weights_[{device, weight.host}];
  if (!buffer) {
    buffer = allocate(static_cast<size_t>(device), weight.desc.bytes());
    streams_[device]->upload(*buffer, 0, weight.host, weight.desc.bytes());
  }
  return {buffer.get(), 0};
}

void ModelRunner::allocate_cache() {
  for (const DeviceUse& use : use_) {
    if (use.cache > use.memory.free) {
      fails_on_host_ = use.is_host;
      throw Error(ErrorCode::kOutOfMemory, concat("[memory] a context of ", options_.n_blocks * kBlockTokens,
                                                  " tokens needs ", bytes_text(use.cache), " of KV cache, ", use.device,
                                                  " has ", bytes_text(use.memory.free), " free; choose a smaller -c"));
    }
  }
  for (int layer = 0; layer < model_->n_layer(); ++layer) {
    const size_t d = static_cast<size_t>(placement_.of_layer(layer));
    caches_.push_back(allocate(d, devices_[d]->cache_block_bytes(model_->cache_desc(layer)) * options_.n_blocks));
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

ModelRunner::Entry ModelRunner::make_entry(const Bucket& bucket) {
  Graph graph(bucket.tokens, bucket.outputs, bucket.logits);
  const ModelOutputs values = model_->build(graph);
  PlanOptions options;
  options.devices = devices_;
  options.layer_device = [this](int layer) { return placement_.of_layer(layer); };
  options.weight_device = [this](const Weight& weight) { return weight_device_.at(&weight); };
  // Only when a plan is bound, which is after load() has begun.
  options.weight = [this](const Weight& weight, int device) { return weight_on(weight, device); };
  options.cache = [this](int layer) { return cache_of_layer(layer); };
  options.observers = options_.observers;
  options.product_observer = options_.product_observer;
  options.profile = options_.profile;
  options.strict = options_.strict_offload;
  return {std::make_unique<Plan>(std::move(graph), std::move(options)), values, {}};
}

void ModelRunner::add_fallbacks(Entry& entry) {
  for (const Fallback& f : entry.plan->fallbacks()) {
    const auto known = std::find_if(fallbacks_.begin(), fallbacks_.end(), [&](const Fallback& k) {
      return k.op == f.op && k.type == f.type && k.device == f.device;
    });
    entry.fallbacks.emplace_back(known - fallbacks_.begin(), f.n_nodes);
    if (known != fallbacks_.end()) continue;
    fallbacks_.push_back(f);
    fallback_runs_.push_back(0);
  }
}

// Binds a plan to the arenas, larger ones where it needs them; all of them are there before any is given up.
ModelRunner::Entry& ModelRunner::keep(const Bucket& bucket, Entry made) {
  std::vector<std::unique_ptr<Buffer>> larger(devices_.size());
  bool grown = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const size_t needed = made.plan->arena_bytes(static_cast<int>(d));
    if (needed == 0 || (arenas_[d] && arenas_[d]->size() >= needed)) continue;
    const uint64_t free = devices_[d]->memory().free;
    if (needed > free) {
      fails_on_host_ = devices_[d]->is_host();
      throw Error(ErrorCode::kOutOfMemory,
                  concat("[memory] a step of ", bucket.tokens, " tokens needs ", bytes_text(needed), ", ",
                         devices_[d]->name(), " has ", bytes_text(free), " free"));
    }
    larger[d] = allocate(d, needed);
    grown = true;
  }
  add_fallbacks(made);
  Entry& kept = plans_.insert_or_assign(bucket, std::move(made)).first->second;
  if (grown) synchronize();
  std::vector<Buffer*> arenas;
  for (size_t d = 0; d < devices_.size(); ++d) arenas.push_back(larger[d] ? larger[d].get() : arenas_[d].get());
  try {
    kept.plan->bind(arenas);
  } catch (...) {
    plans_.erase(bucket);
    throw;
  }
  if (!grown) return kept;
  for (auto& [key, other] : plans_) other.plan->bind(arenas);
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (larger[d]) arenas_[d] = std::move(larger[d]);
  }
  return kept;
}

ModelRunner::Entry& ModelRunner::entry(const Bucket& bucket) {
  const auto found = plans_.find(bucket);
  return found != plans_.end() ? found->second : keep(bucket, make_entry(bucket));
}

void ModelRunner::synchronize() {
  for (const auto& stream : streams_) stream->synchronize();
}

void ModelRunner::run(const StepInputs& step) {
  Entry& e = entry({bucket_size(step.n_tokens()), bucket_size(step.n_outputs()), bucket_size(step.n_logits())});
  std::vector<Stream*> streams;
  for (const auto& stream : streams_) streams.push_back(stream.get());
  std::vector<Buffer*> step_buffers(devices_.size(), nullptr);
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d]->is_host() || !e.plan->uses(static_cast<int>(d))) continue;
    if (!step_buffers_[d]) step_buffers_[d] = allocate(d, StepInputs::bytes(options_.capacity));
    CHECK_INTERNAL(step.raw().size_bytes() <= step_buffers_[d]->size());
    step_buffers[d] = step_buffers_[d].get();
  }
  e.plan->run(step, streams, step_buffers);
  for (const auto& [index, n_nodes] : e.fallbacks) fallback_runs_[index] += n_nodes;
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

void ModelRunner::copy_block(int group, int32_t from, int32_t to) {
  for (const int32_t layer : model_->cache_groups()[static_cast<size_t>(group)].layers) {
    const int d = placement_.of_layer(layer);
    const size_t bytes = devices_[d]->cache_block_bytes(model_->cache_desc(layer));
    std::vector<std::byte> block(bytes);
    streams_[d]->download(block.data(), *caches_[layer], from * bytes, bytes);
    streams_[d]->synchronize();
    streams_[d]->upload(*caches_[layer], to * bytes, block.data(), bytes);
    streams_[d]->synchronize();
  }
}

uint64_t ModelRunner::bytes_per_token(int device) const {
  uint64_t bytes = 0;
  for (const int layer : all_layers()) {
    if (layer == kInputLayer) continue;  // a row of it
    for (const ModelWeight* weight : model_->weights_of_layer(layer)) {
      if (weight_device_.at(weight) != device) continue;
      const uint64_t all = weight->desc.bytes();
      const bool experts = weight->role == WeightRole::kExpert;
      bytes += experts ? all / weight->desc.shape[0] * model_->config().n_expert_used : all;
    }
  }
  return bytes;
}

uint64_t ModelRunner::bytes_per_token() const {
  uint64_t bytes = 0;
  for (size_t d = 0; d < devices_.size(); ++d) bytes += bytes_per_token(static_cast<int>(d));
  return bytes;
}

ModelRunner::Operations ModelRunner::operations_of(int layer) const {
  Operations sum;
  for (const ModelWeight* weight : model_->weights_of_layer(layer)) {
    const Shape& shape = weight->desc.shape;
    if (shape.rank < 2) continue;
    const bool experts = weight->role == WeightRole::kExpert;
    const double share = experts ? static_cast<double>(model_->config().n_expert_used) / shape[0] : 1;
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

// One device after the other works on its share of a token; the shares are those of the weights' bytes.
MachineLimits ModelRunner::measure_limits() {
  const double all = static_cast<double>(bytes_per_token());
  MachineLimits seconds;  // of one token, if each limit were 1
  bool known[3] = {true, true, true};
  for (size_t d = 0; d < devices_.size(); ++d) {
    const double share = static_cast<double>(bytes_per_token(static_cast<int>(d))) / all;
    if (!(share > 0)) continue;
    const MachineLimits limits = devices_[d]->measure_limits();
    const auto add = [&](double limit, double& sum, bool& is_known) {
      is_known = is_known && limit > 0;
      if (is_known) sum += share / limit;
    };
    add(limits.read_bytes, seconds.read_bytes, known[0]);
    add(limits.int8_operations, seconds.int8_operations, known[1]);
    add(limits.float_operations, seconds.float_operations, known[2]);
  }
  const auto rate = [](bool is_known, double sum) { return is_known && sum > 0 ? 1 / sum : 0; };
  return {rate(known[0], seconds.read_bytes), rate(known[1], seconds.int8_operations),
          rate(known[2], seconds.float_operations)};
}

double ModelRunner::read_bandwidth() {
  const double all = static_cast<double>(bytes_per_token());
  double seconds = 0;  // of one token's share of one byte
  for (size_t d = 0; d < devices_.size(); ++d) {
    const double share = static_cast<double>(bytes_per_token(static_cast<int>(d))) / all;
    if (!(share > 0)) continue;
    const double rate = devices_[d]->read_bandwidth();
    if (rate <= 0) return 0;
    seconds += share / rate;
  }
  return seconds > 0 ? 1 / seconds : 0;
}

std::string ModelRunner::device_description() const {
  std::string text;
  for (size_t d = 1; d < devices_.size(); ++d) {
    text += concat(devices_[d]->name(), " (", devices_[d]->description(), "), ");
  }
  if (text.empty()) return devices_[0]->description();
  text.replace(text.size() - 2, 2, " and ");
  return text + devices_[0]->description();
}

}  // namespace infer
