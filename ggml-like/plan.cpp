#include "ggml-like/plan.h"

#include <algorithm>

#include "ggml-like/error.h"
#include "ggml-like/plan_parts.h"

namespace infer {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

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
  lay_out_staging();
}

// A node runs where its weight lives, or where the layer of its cache or its own layer lives; on the host when that
// device has no kernel for it.
void Plan::assign_devices() {
  for (const Node& node : graph_.nodes()) {
    auto state = std::make_unique<NodeState>();
    for (const ValueId id : node.inputs)
      state->input_descs.push_back(id == kNoValue ? nullptr : &graph_.value(id).desc);
    for (const ValueId id : node.outputs) state->output_descs.push_back(&graph_.value(id).desc);
    const OpInfo& info = op_info(node.op);
    const OpDesc desc{node.op, &node.params, state->input_descs, state->output_descs,
                      info.has_cache ? &node.cache : nullptr};

    const ValueId weight_id = info.has_weight ? node.inputs[static_cast<size_t>(weight_input(node.op))] : kNoValue;
    int device = weight_id != kNoValue && options_.weight_device
                     ? options_.weight_device(*graph_.value(weight_id).weight)
                     : options_.layer_device(info.has_cache ? node.cache.layer : node.layer);
    CHECK_INTERNAL(device >= 0 && device < static_cast<int>(options_.devices.size()));
    const bool kept_elsewhere = info.has_cache && !options_.devices[device]->keeps(node.cache);
    if (kept_elsewhere || !options_.devices[device]->supports(desc)) {
      const DataType type = weight_id != kNoValue                                  ? graph_.value(weight_id).desc.type
                            : state->input_descs.empty() || !state->input_descs[0] ? DataType::kF32
                                                                                   : state->input_descs[0]->type;
      const std::string where = options_.devices[device]->name();
      const bool can_fall_back =
          device != 0 && (kept_elsewhere || !info.has_cache) && options_.devices[0]->supports(desc);
      if (!can_fall_back || options_.strict) {
        throw Error(ErrorCode::kUnsupported,
                    concat("[plan] operation ", info.name, " of ", traits(type).name, " in ",
                           layers_text(node.layer, node.layer), ": expected a kernel on device ", where, ", found none",
                           options_.strict ? " (strict offload)" : ""));
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

// The device on which a node without a weight costs the least copying. A node whose inputs were computed elsewhere, say
// by experts that stay on the CPU, runs there too unless its result is larger than they are. Ties go to the device of
// the layer. Costs are in bytes per row, so that every bucket gets the same choice.
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

void Plan::place(ValueId root, int device, int first, int last) {
  int& index = place_of_[device][root];
  if (index < 0) {
    index = static_cast<int>(places_.size());
    places_.push_back({root, device, first, first, aligned(graph_.value(root).desc.bytes()), 0});
  }
  places_[index].last = std::max(places_[index].last, last);
}

// Adds a value of another device to the border before the segment that is open on `device`. It has been computed by
// then, since all nodes from the segment's first one on run on this device.
void Plan::bring(ValueId root, int device, int node) {
  const int from = node_device_[graph_.value(root).producer], opened = steps_.back().first_node;
  place(root, from, opened, opened);
  place(root, device, opened, node);
  auto at = steps_.end() - 1;
  while (at != steps_.begin() && (at - 1)->kind == Step::Kind::kBorder && (at - 1)->device == device) {
    --at;
    if (at->from_device == from) return at->values.push_back(root);
  }
  steps_.insert(steps_.end() - 1, {Step::Kind::kBorder, device, from, 0, 0, {root}, 0});
}

void Plan::add_observers(int n) {
  const Node& node = graph_.nodes()[n];
  const int device = node_device_[n];
  const bool product = node.op == Op::kMatMul || node.op == Op::kMatMulExperts;
  if (product && options_.product_observer) {
    steps_.push_back({Step::Kind::kObserveProduct, device, 0, n, 0, {}, 0});
  }
  for (const ValueId id : node.outputs) {
    for (size_t o = 0; o < options_.observers.size(); ++o) {
      // A view or a reshape of the value may carry the name as well.
      for (ValueId v = 0; v < static_cast<ValueId>(graph_.values().size()); ++v) {
        if (graph_.value(v).name != options_.observers[o].value_name || graph_.root(v) != id) continue;
        steps_.push_back({Step::Kind::kObserve, device, 0, 0, 0, {v}, static_cast<int>(o)});
      }
    }
  }
}

// Walks the nodes once: opens a segment whenever the device changes, brings what the nodes need from elsewhere to its
// border, and records how long each value must stay.
void Plan::build_steps() {
  place_of_.assign(options_.devices.size(), std::vector<int>(graph_.values().size(), -1));
  for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
    const Node& node = graph_.nodes()[n];
    const int device = node_device_[n];
    if (steps_.empty() || steps_.back().kind != Step::Kind::kSegment || steps_.back().device != device) {
      steps_.push_back({Step::Kind::kSegment, device, 0, n, 0, {}, 0});
    }
    ++steps_.back().count;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const ValueId root = graph_.root(id);
      if (graph_.value(root).weight) continue;  // stays where the model put it
      if (place_of_[device][root] < 0) bring(root, device, n);
      place(root, device, n, n);
    }
    for (const ValueId id : node.outputs) place(id, device, n, n);
    add_observers(n);
  }
  const int end = static_cast<int>(graph_.nodes().size());
  for (const ValueId id : graph_.marked_outputs()) place(graph_.root(id), device_of_value(id), end, end);
}

// Places values in order of their first use, each in the lowest gap that is free during its whole life.
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

void Plan::lay_out_staging() {
  staging_bytes_.assign(options_.devices.size(), 0);
  for (const Step& s : steps_) {
    if (s.kind != Step::Kind::kBorder || options_.devices[s.from_device]->is_host()) continue;
    size_t bytes = 0;
    for (const ValueId root : s.values) bytes += aligned(graph_.value(root).desc.bytes());
    staging_bytes_[s.from_device] = std::max(staging_bytes_[s.from_device], bytes);
  }
  std::vector<size_t> outputs(options_.devices.size(), 0);
  for (const ValueId id : graph_.marked_outputs()) {
    const int device = device_of_value(id);
    const TensorDesc& desc = graph_.value(id).desc;
    output_at_.push_back(outputs[device]);
    outputs[device] += aligned(bytes_of_rows(desc, desc.shape[0]));
  }
  for (size_t d = 0; d < outputs.size(); ++d) {
    if (!options_.devices[d]->is_host()) staging_bytes_[d] = std::max(staging_bytes_[d], outputs[d]);
  }
}

}  // namespace infer
