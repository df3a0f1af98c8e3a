// Running a plan: memory for its nodes, the steps of one run, borders between devices, observers, outputs.
#include <chrono>
#include <cstring>

#include "ggml-like/error.h"
#include "ggml-like/plan_parts.h"

namespace infer {
namespace {

size_t live_bytes(const TensorDesc& desc, const StepView& step) {
  return bytes_of_rows(desc, step.row_count(desc.rows, desc.shape[0]));
}

// Waits for the stream and returns the rows of a value that hold data, without gaps between them.
template <typename T>
std::vector<T> read_rows(const TensorRef& ref, const StepView& step, Stream& stream) {
  const size_t rows = static_cast<size_t>(step.row_count(ref.desc->rows, ref.desc->shape[0]));
  const size_t row = static_cast<size_t>(ref.desc->shape.row_elements());
  const size_t stride = static_cast<size_t>(ref.desc->row_stride);
  std::vector<T> data(live_bytes(*ref.desc, step) / sizeof(T));
  stream.download(data.data(), *ref.buffer, ref.offset, data.size() * sizeof(T));
  stream.synchronize();
  for (size_t r = 1; r < rows && stride != row; ++r)
    std::copy_n(data.begin() + r * stride, row, data.begin() + r * row);
  data.resize(rows * row);
  return data;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

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
    const BufferPlace place = options_.weight(*weight, device);
    return {&v.desc, place.buffer, place.offset + offset};
  }
  const int at = place_of_[device][root];
  CHECK_INTERNAL(at >= 0);
  return {&v.desc, bindings_[device].arena, places_[at].offset + offset};
}

// Whether values leave the device's memory through staging memory.
bool Plan::stages(int device) const { return !bindings_[device].arena->host(); }

void Plan::bind(std::span<const PlanBinding> devices, const StepLayout& layout) {
  CHECK_INTERNAL(devices.size() == options_.devices.size());
  segments_.clear();
  segments_.resize(options_.profile ? graph_.nodes().size() : steps_.size());
  ends_.clear();
  ends_.resize(devices.size());
  bindings_.assign(devices.begin(), devices.end());
  layout_ = layout;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!uses(static_cast<int>(d))) continue;
    const PlanBinding& b = bindings_[d];
    CHECK_INTERNAL(b.stream && b.arena && b.arena->size() >= arena_bytes_[d]);
    if (options_.devices[d]->is_host()) continue;
    CHECK_INTERNAL(b.step && b.step->size() >= layout.bytes());
    CHECK_INTERNAL(staging_bytes_[d] == 0 || b.arena->host() || (b.staging && b.staging->size() >= staging_bytes_[d]));
  }
  bound_.assign(graph_.nodes().size(), {});
  for (size_t n = 0; n < graph_.nodes().size(); ++n) bind_node(static_cast<int>(n), *layout_);
}

void Plan::bind_node(int n, const StepLayout& layout) {
  const Node& node = graph_.nodes()[n];
  const OpInfo& info = op_info(node.op);
  const int device = node_device_[n];
  NodeState& state = *states_[n];
  state.inputs.clear();
  state.outputs.clear();
  for (const ValueId id : node.inputs) state.inputs.push_back(reference(id, device));
  for (const ValueId id : node.outputs) state.outputs.push_back(reference(id, device));

  BoundNode& bound = bound_[n];
  bound.record = options_.devices[device]->find(node.op);
  bound.prepared = state.prepared.get();
  bound.launch.op = {node.op, &node.params, state.input_descs, state.output_descs,
                     info.has_cache ? &node.cache : nullptr};
  bound.launch.inputs = state.inputs;
  bound.launch.outputs = state.outputs;
  if (info.has_cache) {
    bound.launch.cache = options_.cache(node.cache);
    bound.launch.cache.desc = &node.cache;
  }
  bound.launch.scratch = {nullptr, bindings_[device].arena, scratch_at_[device]};
  bound.launch.step_layout = &layout;
  bound.launch.step_buffer = bindings_[device].step;
}

// Uploads the inputs to every device that the plan uses. First waits until the step before the last one has finished
// there, so that the host does not run ahead without bound.
void Plan::start(const StepInputs& step) {
  turn_ = 1 - turn_;
  for (size_t d = 0; d < bindings_.size(); ++d) {
    if (!uses(static_cast<int>(d))) continue;
    if (options_.devices[d]->is_host()) {
      static_cast<HostStream&>(*bindings_[d].stream).set_step(step.view());
      continue;
    }
    if (const std::unique_ptr<Event> end = std::move(ends_[d][turn_])) end->wait();
    bindings_[d].stream->upload(*bindings_[d].step, 0, step.raw().data(), step.raw().size_bytes());
  }
}

void Plan::run(const StepInputs& step) {
  CHECK_INTERNAL(bound_.size() == graph_.nodes().size() && layout_ && step.layout() == *layout_);
  CHECK_INTERNAL(step.n_tokens() <= graph_.token_bucket() && step.n_outputs() <= graph_.output_bucket() &&
                 step.n_logits() <= graph_.logits_bucket());
  const StepView view = step.view();
  start(step);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    switch (s.kind) {
      case Step::Kind::kSegment:
        run_segment(i, s, view);
        break;
      case Step::Kind::kBorder:
        if (options_.profile) cross_profiled(s, view);
        else cross(s, view);
        break;
      case Step::Kind::kObserve:
        observe(s, view);
        break;
      case Step::Kind::kObserveProduct:
        observe_product(s, view);
        break;
    }
  }
  finish(view);
}

// With a profile, every node is a segment of its own, and the host waits for each.
void Plan::run_segment(size_t index, const Step& s, const StepView& step) {
  Stream& stream = *bindings_[s.device].stream;
  const auto segment = [&](size_t i, int first, int count) -> Segment& {
    if (!segments_[i]) segments_[i] = stream.compile({bound_.data() + first, static_cast<size_t>(count)});
    return *segments_[i];
  };
  if (!options_.profile) return stream.run(segment(index, s.first_node, s.count));
  for (int n = s.first_node; n < s.first_node + s.count; ++n) {
    Segment& one = segment(static_cast<size_t>(n), n, 1);
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    stream.run(one);
    stream.synchronize();
    options_.profile->add(graph_, graph_.nodes()[n], step, seconds_since(start));
  }
}

// All values of a border cross together: directly if the target can copy from the source, else through memory that the
// host addresses, in which case the host waits for them.
void Plan::cross(const Step& s, const StepView& step) {
  Device &from = *options_.devices[s.from_device], &to = *options_.devices[s.device];
  Stream &source = *bindings_[s.from_device].stream, &target = *bindings_[s.device].stream;
  ranges_.clear();
  for (const ValueId root : s.values) {
    const TensorRef a = reference(root, s.from_device), b = reference(root, s.device);
    const size_t bytes = live_bytes(*a.desc, step);
    if (bytes > 0) ranges_.push_back({b.buffer, b.offset, a.buffer, a.offset, bytes});
  }
  if (ranges_.empty()) return;
  if (to.can_copy_from(from)) {
    target.wait(*source.record());
    target.copy(ranges_);
    source.wait(*target.record());  // before it reuses that memory
    return;
  }
  if (!from.is_host() && stages(s.from_device)) {
    Buffer* staging = bindings_[s.from_device].staging;
    std::vector<CopyRange> leaving = ranges_;
    size_t at = 0;
    for (size_t i = 0; i < leaving.size(); ++i) {
      leaving[i].to = staging;
      leaving[i].to_offset = at;
      ranges_[i].from = staging;
      ranges_[i].from_offset = at;
      at += leaving[i].bytes;
    }
    source.copy(leaving);
  }
  source.synchronize();
  for (const CopyRange& r : ranges_) target.upload(*r.to, r.to_offset, r.from->host() + r.from_offset, r.bytes);
}

void Plan::cross_profiled(const Step& s, const StepView& step) {
  bindings_[s.from_device].stream->synchronize();
  bindings_[s.device].stream->synchronize();
  const auto start = std::chrono::steady_clock::now();
  cross(s, step);
  bindings_[s.device].stream->synchronize();
  const double seconds = seconds_since(start);
  size_t bytes = 0;
  for (const ValueId root : s.values) bytes += live_bytes(graph_.value(root).desc, step);
  options_.profile->add_copies(static_cast<int64_t>(s.values.size()), static_cast<int64_t>(bytes), seconds);
}

// The inputs have not been overwritten: nothing has run since the node.
void Plan::observe_product(const Step& s, const StepView& step) {
  const Node& node = graph_.nodes()[s.first_node];
  Stream& stream = *bindings_[s.device].stream;
  const std::vector<float> values = read_rows<float>(reference(node.inputs[0], s.device), step, stream);
  std::vector<int32_t> experts;
  ProductInput input{*graph_.value(node.inputs[1]).weight, graph_.value(node.inputs[0]).desc.shape.last(), {}, {}, 0};
  if (node.op == Op::kMatMulExperts) {
    input.n_used = static_cast<int>(graph_.value(node.outputs[0]).desc.shape[1]);
    if (node.inputs[2] != kNoValue) {
      experts = read_rows<int32_t>(reference(node.inputs[2], s.device), step, stream);
    } else {
      for (size_t i = 0; i < values.size() / static_cast<size_t>(input.row_size); ++i) {
        experts.push_back(static_cast<int32_t>(i % static_cast<size_t>(input.n_used)));
      }
    }
  }
  input.values = values;
  input.experts = experts;
  options_.product_observer(input);
}

void Plan::observe(const Step& s, const StepView& step) {
  const TensorRef ref = reference(s.values[0], s.device);
  const std::vector<float> data = read_rows<float>(ref, step, *bindings_[s.device].stream);
  const int64_t rows = step.row_count(ref.desc->rows, ref.desc->shape[0]);
  options_.observers[s.observer].callback(*ref.desc, data.data(), rows, step);
}

// Waits for the outputs, once per device that has some. On the other devices it records an event at the end of the
// step.
void Plan::finish(const StepView& step) {
  for (size_t d = 0; d < bindings_.size(); ++d) {
    if (options_.devices[d]->is_host() || !uses(static_cast<int>(d))) continue;
    bool has_outputs = false;
    ranges_.clear();
    for (size_t i = 0; i < output_at_.size(); ++i) {
      const ValueId id = graph_.marked_outputs()[i];
      if (device_of_value(id) != static_cast<int>(d) || graph_.is_on_request(id)) continue;
      const TensorRef ref = output(id);
      const size_t bytes = live_bytes(*ref.desc, step);
      if (bytes > 0) ranges_.push_back({bindings_[d].staging, output_at_[i], ref.buffer, ref.offset, bytes});
      has_outputs = has_outputs || bytes > 0;
    }
    if (has_outputs && stages(static_cast<int>(d))) bindings_[d].stream->copy(ranges_);
    if (has_outputs) bindings_[d].stream->synchronize();
    else ends_[d][turn_] = bindings_[d].stream->record();
  }
}

TensorRef Plan::output(ValueId value) const { return reference(value, device_of_value(value)); }

void Plan::fetch(ValueId value, std::span<const int> rows) {
  CHECK_INTERNAL(graph_.is_on_request(value));
  const TensorRef ref = output(value);
  const int device = device_of_value(value);
  const PlanBinding& b = bindings_[device];
  if (rows.empty() || options_.devices[device]->is_host()) return;
  if (stages(device)) {
    const size_t to = place_in_staging(value), bytes = bytes_of_rows(*ref.desc, 1);
    ranges_.clear();
    for (const int row : rows) {
      const size_t at = row_bytes(ref.desc->type, row * ref.desc->row_stride);
      ranges_.push_back({b.staging, to + at, ref.buffer, ref.offset + at, bytes});
    }
    b.stream->copy(ranges_);
  }
  b.stream->synchronize();
}

size_t Plan::place_in_staging(ValueId output) const {
  const std::vector<ValueId>& marked = graph_.marked_outputs();
  const auto at = std::find(marked.begin(), marked.end(), output);
  CHECK_INTERNAL(at != marked.end());
  return output_at_[static_cast<size_t>(at - marked.begin())];
}

const std::byte* Plan::output_rows(ValueId value) const {
  const TensorRef ref = output(value);
  if (const std::byte* data = ref.buffer->host()) return data + ref.offset;
  return bindings_[device_of_value(value)].staging->host() + place_in_staging(value);
}

}  // namespace infer
