// A plan turns a graph into something that runs: every node gets a device, values that cross devices get copies, and
// activations get places in one arena per device by liveness. The result is a list of segments (runs of nodes on one
// device) with borders between them. A plan is made once per bucket and device map and run for many steps.
//
// The host waits for a device only where values leave it: at a border to the host, at a border to a device that cannot
// copy from it, and at the end of a step for the outputs. Each is one wait, however many values there are. The step's
// inputs and borders from the host to a device cost none.
//
// Ownership: the plan owns the graph, prepared kernels, segments and bookkeeping; devices, streams, arenas, staging
// memory, weights and caches belong to the caller and outlive it. One thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ggml-like/backend.h"
#include "ggml-like/graph.h"
#include "ggml-like/profile.h"

namespace infer {

// Called when the node that produces a named value has run, with the rows that hold data, in host memory.
struct Observer {
  std::string value_name;
  std::function<void(const TensorDesc& desc, const float* data, int64_t rows, const StepView& step)> callback;
};

// The activations that a matmul has multiplied with a weight, in host memory; for importance matrices.
struct ProductInput {
  const Weight& weight;
  int64_t row_size = 0;
  std::span<const float> values;  // [tokens, row_size], or [tokens * n_used, row_size] where each expert has its own
  // The experts that each token uses, [tokens, n_used]; empty for a matmul without experts.
  std::span<const int32_t> experts;
  int n_used = 0;

  bool row_per_expert() const { return values.size() == experts.size() * static_cast<size_t>(row_size); }
};

struct BufferPlace {
  Buffer* buffer = nullptr;
  size_t offset = 0;  // bytes
};

// What a plan runs with on one device. Plans that do not run at the same time may share it.
struct PlanBinding {
  Stream* stream = nullptr;
  Buffer* arena = nullptr;  // at least Plan::arena_bytes(); may be null where that is 0
  // Null on host devices:
  Buffer* step = nullptr;     // for the step's inputs, StepLayout::bytes()
  Buffer* staging = nullptr;  // of Device::allocate_staging(), at least Plan::staging_bytes(); may be null where the
                              // host addresses the arena
};

struct PlanOptions {
  std::vector<Device*> devices;                // [0] is the host device, which runs what the others cannot
  std::function<int(int layer)> layer_device;  // index into devices; also called with kInputLayer and kOutputLayer
  std::function<CacheRef(const CacheDesc& cache)> cache;   // where it is; bind() may call it again
  std::function<int(const Weight& weight)> weight_device;  // index into devices; null: that of the node's layer
  // Where a weight is on a device other than a host device; called by bind(). REQUIRED if there is such a device.
  std::function<BufferPlace(const Weight& weight, int device)> weight;
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;  // called when a matmul has run
  Profile* profile = nullptr;  // gets the time of every node; null: none is measured
  bool strict = false;         // a missing kernel is Error(kUnsupported) instead of a fallback
};

// An operation that runs on the host because the device of its layers has no kernel for it.
struct Fallback {
  Op op;
  DataType type;  // of the weight, or of the first input
  std::string device;
  int first_layer, last_layer;  // kInputLayer and kOutputLayer too
  int n_nodes = 1;              // of the graph, each of which runs once per step
};

class Plan {
 public:
  Plan(Graph graph, PlanOptions options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  struct Step {
    enum class Kind { kSegment, kBorder, kObserve, kObserveProduct } kind;
    int device = 0;                 // kSegment: where; kBorder: to; kObserve: where the value is
    int from_device = 0;            // kBorder
    int first_node = 0, count = 0;  // kSegment: range of bound nodes; kObserveProduct: the node
    std::vector<ValueId> values;    // kBorder: all that cross here; kObserve: the one
    int observer = 0;               // kObserve
  };

  const Graph& graph() const { return graph_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Fallback>& fallbacks() const { return fallbacks_; }
  int device_of_node(int node) const { return node_device_[node]; }
  bool uses(int device) const {
    return std::find(node_device_.begin(), node_device_.end(), device) != node_device_.end();
  }
  // The weights that the nodes on a device read, each once.
  std::vector<const Weight*> weights_on(int device) const;
  // Bytes of activations and scratch on a device.
  size_t arena_bytes(int device) const { return arena_bytes_[device]; }

  // Bytes of staging memory that a device needs for its largest transfer to the host: a border's values, or the
  // outputs.
  size_t staging_bytes(int device) const { return staging_bytes_[device]; }

  // Gives the plan what it runs with, one binding per device; REQUIRED before run(). May be called again with other
  // memory. A segment is compiled when it first runs.
  void bind(std::span<const PlanBinding> devices, const StepLayout& layout);

  // Runs one step, whose layout is the one the plan is bound to. Its outputs are complete on return; a device may still
  // work on what no output needs. A plan has at most two steps queued on a device. Throws what kernels throw.
  void run(const StepInputs& step);

  // A value marked as output: its place on its device, and after run() its rows that hold data in host memory, with the
  // same row stride. Valid until the next run of a plan that is bound to the same memory.
  TensorRef output(ValueId value) const;
  // Brings these rows of an output on request to the host, where output_rows() then has them; one wait for its device.
  // REQUIRES: the rows hold data.
  void fetch(ValueId value, std::span<const int> rows);
  const std::byte* output_rows(ValueId value) const;

 private:
  struct Place;      // of one root value on one device
  struct NodeState;  // prepared kernel and argument storage of one node

  void assign_devices();
  int cheapest_device(const Node& node, const OpDesc& desc, int layer_device) const;
  void add_fallback(const Node& node, DataType type, const std::string& device);
  void build_steps();
  void place(ValueId root, int device, int first, int last);
  void bring(ValueId root, int device, int node);
  void add_observers(int node);
  void lay_out();
  void lay_out_staging();
  int device_of_value(ValueId value) const { return node_device_[graph_.value(graph_.root(value)).producer]; }
  TensorRef reference(ValueId value, int device) const;
  void bind_node(int node, const StepLayout& layout);

  void start(const StepInputs& step);
  void run_segment(size_t index, const Step& s, const StepView& step);
  void cross(const Step& s, const StepView& step);
  void cross_profiled(const Step& s, const StepView& step);
  void observe(const Step& s, const StepView& step);
  void observe_product(const Step& s, const StepView& step);
  void finish(const StepView& step);
  bool stages(int device) const;
  size_t place_in_staging(ValueId output) const;

  Graph graph_;
  PlanOptions options_;
  std::vector<int> node_device_;
  std::vector<Step> steps_;
  std::vector<Place> places_;
  std::vector<std::vector<int>> place_of_;  // [device][root value] -> place, -1 when not there
  std::vector<std::unique_ptr<NodeState>> states_;
  std::vector<size_t> arena_bytes_, scratch_at_, staging_bytes_;  // by device
  std::vector<size_t> output_at_;                                 // in staging memory, by marked output
  std::vector<std::unique_ptr<Buffer>> host_weights_;             // views of mapped weights
  std::vector<Buffer*> weight_buffer_;                            // by value, host side
  std::vector<Fallback> fallbacks_;

  // From bind() on.
  std::vector<PlanBinding> bindings_;
  std::optional<StepLayout> layout_;
  std::vector<BoundNode> bound_;                    // in execution order = node order
  std::vector<std::unique_ptr<Segment>> segments_;  // by step, with a profile by node; null until it first runs
  std::vector<CopyRange> ranges_;                   // of the border being crossed
  // By device: the ends of the last two steps, alternating; null if the host has waited for the step.
  std::vector<std::array<std::unique_ptr<Event>, 2>> ends_;
  size_t turn_ = 0;
};

}  // namespace infer
