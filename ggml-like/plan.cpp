#include "ggml-like/plan.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ggml-like/error.h"

namespace infer {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Bytes of the rows that hold data in this step.
size_t live_bytes(const TensorDesc& desc, const StepInputs& step) {
  const TypeTraits& t = traits(desc.type);
  const int64_t rows = step.row_count(desc.rows, desc.shape[0]);
  return static_cast<size_t>(rows * desc.shape.row_elements()) / t.block_size * t.type_size;
}

}  // namespace

// A root value lies on a device from `first` to `last` (node indices, both included).
struct Plan::Place {
  ValueId root;
  int device;
  int first, last;
  size_t bytes;
  size_t offset;
};

struct Plan::NodeState {
  std::unique_ptr<Prepared> prepared;
  std::vector<const TensorDesc*> input_descs, output_descs;
  std::vector<TensorRef> inputs, outputs;
};

Plan::~Plan() = default;

Plan::Plan(Graph graph, PlanOptions options) : graph_(std::move(graph)), options_(std::move(options)) {
  CHECK_INTERNAL(!options_.devices.empty() && options_.devices[0]->is_host());
  weight_buffer_.assign(graph_.values().size(), nullptr);
  for (size_t id = 0; id < graph_.values().size(); ++id) {
    const Weight* weight = graph_.values()[id].weight;
    if (!weight) continue;
    host_weights_.push_back(wrap_host(const_cast<std::byte*>(weight->host), weight->desc.bytes()));
    weight_buffer_[id] = host_weights_.back().get();
  }
  assign_devices();
  build_steps();
  lay_out();
}

// A node runs where its weight lives, or where its layer lives; on the host when that device has no kernel for it.
void Plan::assign_devices() {
  for (const Node& node : graph_.nodes()) {
    auto state = std::make_unique<NodeState>();
    for (const ValueId id : node.inputs)
      state->input_descs.push_back(id == kNoValue ? nullptr : &graph_.value(id).desc);
    for (const ValueId id : node.outputs) state->output_descs.push_back(&graph_.value(id).desc);
    const OpInfo& info = op_info(node.op);
    const OpDesc desc{node.op, &node.params, state->input_descs, state->output_descs,
                      info.has_cache ? &node.cache : nullptr};

    const ValueId weight_id = !info.has_weight ? kNoValue : node.op == Op::kEmbed ? node.inputs[0] : node.inputs[1];
    int device = weight_id == kNoValue ? options_.layer_device(node.layer) : device_of(*graph_.value(weight_id).weight);
    CHECK_INTERNAL(device >= 0 && device < static_cast<int>(options_.devices.size()));
    if (!options_.devices[device]->supports(desc)) {
      const DataType type = weight_id != kNoValue                                  ? graph_.value(weight_id).desc.type
                            : state->input_descs.empty() || !state->input_descs[0] ? DataType::kF32
                                                                                   : state->input_descs[0]->type;
      const std::string where = options_.devices[device]->name();
      const bool can_fall_back = device != 0 && !info.has_cache && options_.devices[0]->supports(desc);
      if (!can_fall_back || options_.strict) {
        throw Error(ErrorCode::kUnsupported, concat("[plan] operation ", info.name, " of ", traits(type).name, " in ",
                                                    layers_text(node.layer, node.layer), ": a kernel on device ", where,
                                                    ", found none", options_.strict ? " (strict offload)" : ""));
      }
      add_fallback(node, type, where);
      device = 0;
    } else if (weight_id == kNoValue && !info.has_cache) {
      device = cheapest_device(node, desc, device);
    }
    Device& target = *options_.devices[device];
    state->prepared = target.find(node.op)->prepare(desc, target);
    node_device_.push_back(device);
    states_.push_back(std::move(state));
  }
}

// The device on which a node without a weight costs the least copying: a node whose inputs were computed elsewhere, by
// experts that stay on the CPU say, follows them unless its result is larger than they are. Its layer's device where
// nothing is won. Counted are bytes per row, so that the choice is the same for every bucket.
int Plan::cheapest_device(const Node& node, const OpDesc& desc, int layer_device) const {
  const auto row_bytes = [&](ValueId id) {
    const TensorDesc& d = graph_.value(id).desc;
    const TypeTraits& t = traits(d.type);
    return static_cast<size_t>(d.shape.row_elements()) / t.block_size * t.type_size;
  };
  const auto origin = [&](ValueId id) {
    const Value& root = graph_.value(graph_.root(id));
    return root.weight ? -1 : node_device_[static_cast<size_t>(root.producer)];
  };
  const auto cost = [&](int device) {
    size_t bytes = 0;
    for (const ValueId id : node.inputs) {
      if (id != kNoValue && origin(id) >= 0 && origin(id) != device) bytes += row_bytes(id);
    }
    for (const ValueId id : node.outputs) bytes += device == layer_device ? 0 : row_bytes(id);
    return bytes;
  };
  int best = layer_device;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue || origin(id) < 0 || origin(id) == best) continue;
    if (cost(origin(id)) < cost(best) && options_.devices[origin(id)]->supports(desc)) best = origin(id);
  }
  return best;
}

void Plan::add_fallback(const Node& node, DataType type, const std::string& device) {
  const auto known = std::find_if(fallbacks_.begin(), fallbacks_.end(), [&](const Fallback& f) {
    return f.op == node.op && f.type == type && f.device == device;
  });
  if (known == fallbacks_.end()) {
    fallbacks_.push_back({node.op, type, device, node.layer, node.layer});
  } else {
    known->last_layer = node.layer;
    ++known->n_nodes;
  }
}

std::vector<const Weight*> Plan::weights_on(int device) const {
  std::vector<const Weight*> weights;
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    if (node_device_[n] != device) continue;
    for (const ValueId id : graph_.nodes()[n].inputs) {
      const Weight* weight = id == kNoValue ? nullptr : graph_.value(graph_.root(id)).weight;
      if (weight && std::find(weights.begin(), weights.end(), weight) == weights.end()) weights.push_back(weight);
    }
  }
  return weights;
}

// Walks the nodes once: opens a segment whenever the device changes, copies what the node needs from elsewhere first,
// and records how long each value must stay.
void Plan::build_steps() {
  const int n_devices = static_cast<int>(options_.devices.size());
  place_of_.assign(n_devices, std::vector<int>(graph_.values().size(), -1));

  const auto place = [&](ValueId root, int device, int node) {
    int& index = place_of_[device][root];
    if (index < 0) {
      index = static_cast<int>(places_.size());
      places_.push_back({root, device, node, node, aligned(graph_.value(root).desc.bytes()), 0});
    }
    places_[index].last = std::max(places_[index].last, node);
  };

  for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
    const Node& node = graph_.nodes()[n];
    const int device = node_device_[n];
    bool copied = false;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const ValueId root = graph_.root(id);
      if (graph_.value(root).weight) continue;  // lies where the model put it
      if (place_of_[device][root] < 0) {
        const int from = node_device_[graph_.value(root).producer];
        place(root, from, n);
        steps_.push_back({Step::Kind::kCopy, device, from, 0, 0, root, 0});
        copied = true;
      }
      place(root, device, n);
    }
    for (const ValueId id : node.outputs) place(id, device, n);

    const bool opens =
        steps_.empty() || copied || steps_.back().kind != Step::Kind::kSegment || steps_.back().device != device;
    if (opens) steps_.push_back({Step::Kind::kSegment, device, 0, n, 0, kNoValue, 0});
    ++steps_.back().count;

    const bool product = node.op == Op::kMatMul || node.op == Op::kMatMulExperts;
    if (product && options_.product_observer) {
      steps_.push_back({Step::Kind::kObserveProduct, device, 0, n, 0, kNoValue, 0});
    }
    for (const ValueId id : node.outputs) {
      for (size_t o = 0; o < options_.observers.size(); ++o) {
        // A view or a reshape of the value may carry the name as well.
        for (size_t v = 0; v < graph_.values().size(); ++v) {
          if (graph_.values()[v].name != options_.observers[o].value_name || graph_.root(static_cast<ValueId>(v)) != id)
            continue;
          steps_.push_back({Step::Kind::kObserve, device, 0, 0, 0, static_cast<ValueId>(v), static_cast<int>(o)});
        }
      }
    }
  }
  const int end = static_cast<int>(graph_.nodes().size());
  for (const ValueId id : graph_.marked_outputs()) {
    const ValueId root = graph_.root(id);
    place(root, node_device_[graph_.value(root).producer], end);
  }
}

// Lowest gap that is free during the whole life of the value, values in order of their first use.
void Plan::lay_out() {
  const size_t n_devices = options_.devices.size();
  arena_bytes_.assign(n_devices, 0);
  scratch_at_.assign(n_devices, 0);
  for (size_t device = 0; device < n_devices; ++device) {
    std::vector<Place*> done;  // ascending offset
    for (Place& p : places_) {
      if (p.device != static_cast<int>(device)) continue;
      size_t offset = 0;
      for (const Place* other : done) {
        if (other->last < p.first || other->first > p.last) continue;
        if (other->offset >= offset + p.bytes) break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      p.offset = offset;
      arena_bytes_[device] = std::max(arena_bytes_[device], offset + p.bytes);
      done.insert(std::upper_bound(done.begin(), done.end(), &p,
                                   [](const Place* a, const Place* b) { return a->offset < b->offset; }),
                  &p);
    }
    size_t scratch = 0;
    for (size_t n = 0; n < states_.size(); ++n) {
      if (node_device_[n] == static_cast<int>(device)) scratch = std::max(scratch, states_[n]->prepared->scratch_bytes);
    }
    scratch_at_[device] = arena_bytes_[device];
    arena_bytes_[device] += aligned(scratch);
  }
}

TensorRef Plan::reference(ValueId value, int device) const {
  if (value == kNoValue) return {};
  const Value& v = graph_.value(value);
  size_t elements = 0;
  ValueId root = value;
  for (; graph_.value(root).alias_of != kNoValue; root = graph_.value(root).alias_of)
    elements += graph_.value(root).offset;
  const TypeTraits& t = traits(v.desc.type);
  const size_t offset = elements / t.block_size * t.type_size;
  if (const Weight* weight = graph_.value(root).weight) {
    if (options_.devices[device]->is_host()) return {&v.desc, weight_buffer_[root], offset};
    if (options_.weight) {
      const BufferPlace place = options_.weight(*weight, device);
      return {&v.desc, place.buffer, place.offset + offset};
    }
    CHECK_INTERNAL(weight->device_buffer && device_of(*weight) == device);
    return {&v.desc, weight->device_buffer, weight->device_offset + offset};
  }
  const int at = place_of_[device][root];
  CHECK_INTERNAL(at >= 0);
  return {&v.desc, arenas_[device], places_[at].offset + offset};
}

void Plan::bind(std::span<Buffer* const> arenas) {
  CHECK_INTERNAL(arenas.size() == options_.devices.size());
  arenas_.assign(arenas.begin(), arenas.end());
  bound_.assign(graph_.nodes().size(), {});
  for (size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    const OpInfo& info = op_info(node.op);
    const int device = node_device_[n];
    NodeState& state = *states_[n];
    CHECK_INTERNAL(!arenas[device] ? arena_bytes_[device] == 0 : arenas[device]->size() >= arena_bytes_[device]);
    state.inputs.clear();
    state.outputs.clear();
    for (const ValueId id : node.inputs) state.inputs.push_back(reference(id, device));
    for (const ValueId id : node.outputs) state.outputs.push_back(reference(id, device));

    BoundNode& bound = bound_[n];
    bound.record = options_.devices[device]->find(node.op);
    bound.prepared = state.prepared.get();
    bound.node = static_cast<int>(n);
    bound.launch.op = {node.op, &node.params, state.input_descs, state.output_descs,
                       info.has_cache ? &node.cache : nullptr};
    bound.launch.inputs = state.inputs;
    bound.launch.outputs = state.outputs;
    if (info.has_cache) {
      bound.launch.cache = options_.cache(node.cache.layer);
      bound.launch.cache.desc = &node.cache;
    }
    bound.launch.scratch = {nullptr, arenas_[device], scratch_at_[device]};
  }
}

void Plan::run(const StepInputs& step, std::span<Stream* const> streams, std::span<Buffer* const> step_buffers) {
  CHECK_INTERNAL(bound_.size() == graph_.nodes().size() && streams.size() == options_.devices.size());
  CHECK_INTERNAL(step.n_tokens() <= graph_.token_bucket() && step.n_outputs() <= graph_.output_bucket() &&
                 step.n_logits() <= graph_.logits_bucket());
  for (size_t n = 0; n < bound_.size(); ++n) {
    bound_[n].launch.step = &step;
    bound_[n].launch.step_buffer = step_buffers.empty() ? nullptr : step_buffers[node_device_[n]];
  }
  // What the step before left under way on a device ends before new work is given to it: no more than one step waits.
  std::vector<bool> reached(options_.devices.size(), false);
  const auto reach = [&](int device) {
    if (reached[device]) return;
    reached[device] = true;
    streams[device]->synchronize();
    Buffer* inputs = step_buffers.empty() ? nullptr : step_buffers[device];
    if (inputs) streams[device]->upload(*inputs, 0, step.raw().data(), step.raw().size_bytes());
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    reach(s.device);
    switch (s.kind) {
      case Step::Kind::kSegment:
        if (options_.profile) run_profiled(s, step, *streams[s.device]);
        else streams[s.device]->run(i, {bound_.data() + s.first_node, static_cast<size_t>(s.count)});
        break;
      case Step::Kind::kCopy:
        reach(s.from_device);
        if (options_.profile) copy_profiled(s, step, streams);
        else copy_value(s, step, streams);
        break;
      case Step::Kind::kObserve:
        observe(s, step, streams);
        break;
      case Step::Kind::kObserveProduct:
        observe_product(s, step, streams);
        break;
    }
  }
  if (step.n_outputs() == 0) return;
  for (Stream* stream : streams) stream->synchronize();
}

// Keys of single nodes must not meet those of segments.
constexpr uint64_t kProfiledSegment = uint64_t{1} << 32;

void Plan::run_profiled(const Step& s, const StepInputs& step, Stream& stream) {
  stream.synchronize();
  for (int n = s.first_node; n < s.first_node + s.count; ++n) {
    BoundNode& node = bound_[n];
    const auto start = std::chrono::steady_clock::now();
    stream.run(kProfiledSegment + static_cast<uint64_t>(n), {&node, 1});
    stream.synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    options_.profile->add(graph_, graph_.nodes()[n], step, seconds);
  }
}

void Plan::copy_profiled(const Step& s, const StepInputs& step, std::span<Stream* const> streams) {
  streams[s.from_device]->synchronize();
  streams[s.device]->synchronize();
  const auto start = std::chrono::steady_clock::now();
  copy_value(s, step, streams);
  streams[s.device]->synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  options_.profile->add_copy(static_cast<int64_t>(live_bytes(graph_.value(s.value).desc, step)), seconds);
}

void Plan::copy_value(const Step& s, const StepInputs& step, std::span<Stream* const> streams) {
  const TensorRef from = reference(s.value, s.from_device), to = reference(s.value, s.device);
  const size_t bytes = live_bytes(*from.desc, step);
  if (bytes == 0) return;
  Stream &source = *streams[s.from_device], &target = *streams[s.device];
  if (const std::byte* data = from.buffer->host()) {
    source.synchronize();
    target.upload(*to.buffer, to.offset, data + from.offset, bytes);
    return;
  }
  std::byte* at = to.buffer->host();
  if (at) {
    at += to.offset;
  } else {
    staging_.resize(std::max(staging_.size(), bytes));
    at = staging_.data();
  }
  source.download(at, *from.buffer, from.offset, bytes);
  source.synchronize();
  if (!to.buffer->host()) target.upload(*to.buffer, to.offset, at, bytes);
}

// The inputs lie where they were: nothing that ran after the node may have taken their place.
void Plan::observe_product(const Step& s, const StepInputs& step, std::span<Stream* const> streams) {
  const Node& node = graph_.nodes()[s.first_node];
  const auto rows_of = [&](ValueId id, auto& data) {
    const TensorRef ref = reference(id, s.device);
    const int64_t rows = step.row_count(ref.desc->rows, ref.desc->shape[0]);
    const size_t row = static_cast<size_t>(ref.desc->shape.row_elements()), bytes = row * sizeof(data[0]);
    data.resize(static_cast<size_t>(rows) * row);
    for (int64_t r = 0; r < rows; ++r) {
      const size_t from = ref.offset + static_cast<size_t>(r * ref.desc->row_stride) * sizeof(data[0]);
      streams[s.device]->download(data.data() + r * row, *ref.buffer, from, bytes);
    }
  };
  std::vector<float> values;
  std::vector<int32_t> experts;
  rows_of(node.inputs[0], values);
  ProductInput input{*graph_.value(node.inputs[1]).weight, graph_.value(node.inputs[0]).desc.shape.last(), {}, {}, 0};
  if (node.op == Op::kMatMulExperts) {
    rows_of(node.inputs[2], experts);
    input.n_used = static_cast<int>(graph_.value(node.inputs[2]).desc.shape.last());
  }
  streams[s.device]->synchronize();
  input.values = values;
  input.experts = experts;
  options_.product_observer(input);
}

void Plan::observe(const Step& s, const StepInputs& step, std::span<Stream* const> streams) {
  const TensorRef ref = reference(s.value, s.device);
  const int64_t rows = step.row_count(ref.desc->rows, ref.desc->shape[0]);
  const int64_t row = ref.desc->shape.row_elements();
  const size_t stride = static_cast<size_t>(ref.desc->row_stride) * sizeof(float);
  std::vector<float> data(static_cast<size_t>(rows * row));
  for (int64_t r = 0; r < rows; ++r) {
    streams[s.device]->download(data.data() + r * row, *ref.buffer, ref.offset + r * stride, row * sizeof(float));
  }
  streams[s.device]->synchronize();
  options_.observers[s.observer].callback(*ref.desc, data.data(), rows, step);
}

TensorRef Plan::output(ValueId value) const {
  return reference(value, node_device_[graph_.value(graph_.root(value)).producer]);
}

void Plan::read_output(ValueId value, const StepInputs& step, std::span<Stream* const> streams, void* to) const {
  const TensorRef ref = output(value);
  const TypeTraits& t = traits(ref.desc->type);
  const int64_t rows = step.row_count(ref.desc->rows, ref.desc->shape[0]);
  const size_t row = static_cast<size_t>(ref.desc->shape.row_elements()) / t.block_size * t.type_size;
  const size_t stride = static_cast<size_t>(ref.desc->row_stride) / t.block_size * t.type_size;
  Stream& stream = *streams[node_device_[graph_.value(graph_.root(value)).producer]];
  for (int64_t r = 0; r < rows; ++r) {  // a view has its parent's columns between its rows
    stream.download(static_cast<std::byte*>(to) + r * row, *ref.buffer, ref.offset + r * stride, row);
  }
  stream.synchronize();
}

}  // namespace infer
