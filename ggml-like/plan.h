// A plan turns a graph into something that runs: every node gets a device, values that cross devices get copies, and
// activations get places in one arena per device by liveness. The result is a list of segments (runs of nodes on one
// device) with copies between them. A plan is made once per bucket and device map and run for many steps.
//
// Ownership: the plan owns the graph, prepared kernels and bookkeeping; devices, streams, arenas, weights and caches
// belong to the caller and outlive it. One thread at a time.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"
#include "ggml-like/graph.h"
#include "ggml-like/profile.h"

namespace infer {

// Called after the node that produces a named value has run: the value's rows that hold data, in host memory.
struct Observer {
  std::string value_name;
  std::function<void(const TensorDesc& desc, const float* data, int64_t rows, const StepInputs& step)> callback;
};

// What a product with a weight is about to multiply, in host memory: for importance matrices.
struct ProductInput {
  const Weight& weight;
  int64_t row_size = 0;
  std::span<const float> values;  // [tokens, row_size], or [tokens * n_used, row_size] where each expert has its own
  // Of products with experts: which ones each token uses, [tokens, n_used]; else empty.
  std::span<const int32_t> experts;
  int n_used = 0;

  bool row_per_expert() const { return values.size() == experts.size() * static_cast<size_t>(row_size); }
};

struct BufferPlace {
  Buffer* buffer = nullptr;
  size_t offset = 0;  // bytes
};

struct PlanOptions {
  std::vector<Device*> devices;                // [0] is the host device that takes what others cannot do
  std::function<int(int layer)> layer_device;  // index into devices; also called with kInputLayer and kOutputLayer
  std::function<CacheRef(int layer)> cache;    // where the layer's keys and values lie; may be called again by bind()
  std::function<int(const Weight& weight)> weight_device;  // index into devices; null: Weight::device
  // Where a weight lies on a device that is no host device, asked by bind(). Null: Weight::device_buffer.
  std::function<BufferPlace(const Weight& weight, int device)> weight;
  std::vector<Observer> observers;
  std::function<void(const ProductInput& input)> product_observer;  // called for every product after it has run
  Profile* profile = nullptr;  // gets the time of every node; null: none is measured
  bool strict = false;         // a missing kernel is Error(kUnsupported) instead of a fallback
};

// An operation that runs on the host although its layers are on another device, for want of a kernel there.
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
    enum class Kind { kSegment, kCopy, kObserve, kObserveProduct } kind;
    int device = 0;                 // kSegment: where; kCopy: to; kObserve: where the value lies
    int from_device = 0;            // kCopy
    int first_node = 0, count = 0;  // kSegment: range of bound nodes; kObserveProduct: the node
    ValueId value = kNoValue;       // kCopy, kObserve
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

  // Gives the plan its memory: one arena per device, each at least arena_bytes(); REQUIRED before run(). May be called
  // again with other arenas.
  void bind(std::span<Buffer* const> arenas);

  // Runs one step. `streams` has one stream per device, `step_buffers` a place for the step's inputs on each device
  // that is no host device (null for host devices), where run() brings them. On return all outputs are complete. After
  // a step without outputs a device of its own memory may still be at work, while the host goes on with the next step;
  // a run waits for the one before when it first comes to a device, and whatever is downloaded is complete. Throws what
  // kernels throw.
  void run(const StepInputs& step, std::span<Stream* const> streams, std::span<Buffer* const> step_buffers);

  // A value marked as output: where it lies after run().
  TensorRef output(ValueId value) const;
  // Copies the rows of an output that hold data to host memory.
  void read_output(ValueId value, const StepInputs& step, std::span<Stream* const> streams, void* to) const;

 private:
  struct Place;      // of one root value on one device
  struct NodeState;  // prepared kernel and argument storage of one node

  int device_of(const Weight& weight) const {
    return options_.weight_device ? options_.weight_device(weight) : weight.device;
  }
  void assign_devices();
  int cheapest_device(const Node& node, const OpDesc& desc, int layer_device) const;
  void add_fallback(const Node& node, DataType type, const std::string& device);
  void build_steps();
  void lay_out();
  int place_index(ValueId root, int device) const;
  TensorRef reference(ValueId value, int device) const;
  void run_profiled(const Step& s, const StepInputs& step, Stream& stream);
  void copy_profiled(const Step& step, const StepInputs& inputs, std::span<Stream* const> streams);
  void copy_value(const Step& step, const StepInputs& inputs, std::span<Stream* const> streams);
  void observe(const Step& step, const StepInputs& inputs, std::span<Stream* const> streams);
  void observe_product(const Step& step, const StepInputs& inputs, std::span<Stream* const> streams);

  Graph graph_;
  PlanOptions options_;
  std::vector<int> node_device_;
  std::vector<Step> steps_;
  std::vector<Place> places_;
  std::vector<std::vector<int>> place_of_;  // [device][root value] -> place, -1 when not there
  std::vector<std::unique_ptr<NodeState>> states_;
  std::vector<BoundNode> bound_;  // in execution order = node order
  std::vector<size_t> arena_bytes_, scratch_at_;
  std::vector<Buffer*> arenas_;
  std::vector<std::unique_ptr<Buffer>> host_weights_;  // views of mapped weights
  std::vector<Buffer*> weight_buffer_;                 // by value, host side
  std::vector<Fallback> fallbacks_;
  std::vector<std::byte> staging_;  // of a copy between two devices of their own memory
};

}  // namespace infer
