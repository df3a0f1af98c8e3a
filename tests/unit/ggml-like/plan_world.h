// What the tests of plans share: machines of several devices, weights, random graphs, and a step to run them with.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "ggml-like/error.h"
#include "ggml-like/plan.h"
#include "tests/support/island_device.h"
#include "tests/support/quant_reference.h"

namespace infer::test {

inline constexpr int kBucket = 6, kTokens = 5, kWidth = 8;

// Devices with streams; [0] is ref.
struct Machine {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Stream>> streams;
  void add(std::unique_ptr<Device> device) {
    streams.push_back(device->create_stream());
    devices.push_back(std::move(device));
  }
  std::vector<Device*> list() const {
    std::vector<Device*> all;
    for (const auto& d : devices) all.push_back(d.get());
    return all;
  }
  std::vector<Stream*> stream_list() const {
    std::vector<Stream*> all;
    for (const auto& s : streams) all.push_back(s.get());
    return all;
  }
};

Machine only_ref();
Machine two_refs();
// ref and a device with memory of its own, which only scales, adds, and multiplies with F32 weights.
Machine ref_and_fake();
// ref and two devices that compute what ref computes and copy from each other.
struct Islands {
  Machine machine = only_ref();
  std::vector<std::shared_ptr<IslandState>> states;
};
Islands ref_and_islands();

// One sequence of kTokens tokens, in a step without outputs.
StepInputs five_tokens();

// Weights that live as long as the tests' graphs, each on a given device as well.
class Weights {
 public:
  Weight& add(const Shape& shape, Random& random, DataType type = DataType::kF32) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& v : values) v = random.normal() * 0.3f;
    data_.emplace_back(make_desc(type, shape).bytes());
    traits(type).from_float(values.data(), data_.back().data(), shape.elements());
    weights_.push_back({"weight" + std::to_string(weights_.size()), make_desc(type, shape), data_.back().data()});
    return weights_.back();
  }
  void move_to(Weight& w, int index, Device& device, Stream& stream) {
    buffers_.push_back(device.allocate(w.desc.bytes()));
    stream.upload(*buffers_.back(), 0, w.host, w.desc.bytes());
    homes_[&w] = {index, buffers_.back().get()};
  }
  // Weights that have not moved are on the host.
  void tell(PlanOptions& options) const {
    options.weight_device = [this](const Weight& w) { return homes_.contains(&w) ? homes_.at(&w).device : 0; };
    options.weight = [this](const Weight& w, int device) {
      CHECK_INTERNAL(homes_.at(&w).device == device);
      return BufferPlace{homes_.at(&w).buffer, 0};
    };
  }
  std::deque<Weight>& all() { return weights_; }

 private:
  std::deque<std::vector<std::byte>> data_;
  std::deque<Weight> weights_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  struct Home {
    int device;
    Buffer* buffer;
  };
  std::map<const Weight*, Home> homes_;
};

struct Ran {
  std::vector<std::vector<float>> outputs;
  std::vector<size_t> arena_bytes;
  std::vector<Fallback> fallbacks;
  std::vector<Plan::Step> steps;
};

// Runs a graph twice. Returns the rows of the values `wanted`.
Ran run(Machine& machine, Graph graph, const std::vector<ValueId>& wanted, PlanOptions options = {});
bool same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b);

struct RandomGraph {
  Graph graph{kBucket, 0};
  std::vector<ValueId> values;  // all of width kWidth
  std::set<int> layers;
};
// Nodes that use earlier values, mostly recent ones and also views; layers ascend.
RandomGraph random_graph(uint64_t seed, Weights& weights, int nodes);

}  // namespace infer::test
