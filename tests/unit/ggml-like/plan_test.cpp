// Plans: memory shared by liveness, copies between devices, fallbacks, observers. Random graphs run on ref with shared
// memory, with memory of their own for every value, and spread over a second device whose memory the host cannot see;
// all must agree to the bit.
#include "ggml-like/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#include "ggml-like/ref/ref_ops.h"
#include "tests/support/quant_reference.h"

using namespace infer;

namespace {

constexpr int kBucket = 6, kTokens = 5, kWidth = 8;

// ---- A device with memory of its own, which only scales, adds, and multiplies with F32 weights ----

class HiddenBuffer final : public Buffer {
 public:
  explicit HiddenBuffer(size_t bytes) : memory_(allocate_host(bytes)) {}
  size_t size() const override { return memory_->size(); }
  std::byte* host() const override { return nullptr; }
  Buffer& memory() const { return *memory_; }

 private:
  std::unique_ptr<Buffer> memory_;
};

Buffer* visible(Buffer* b) { return b ? &static_cast<HiddenBuffer*>(b)->memory() : nullptr; }

// Runs the reference operation on the memory behind the hidden buffers.
template <void (*kLaunch)(const Prepared&, const Launch&, Stream&)>
void on_hidden(const Prepared& prepared, const Launch& launch, Stream& stream) {
  std::vector<TensorRef> inputs(launch.inputs.begin(), launch.inputs.end());
  std::vector<TensorRef> outputs(launch.outputs.begin(), launch.outputs.end());
  for (TensorRef& t : inputs) t.buffer = visible(t.buffer);
  for (TensorRef& t : outputs) t.buffer = visible(t.buffer);
  Launch shown = launch;
  shown.inputs = inputs;
  shown.outputs = outputs;
  kLaunch(prepared, shown, stream);
}

bool always(const OpDesc&, const Device&) { return true; }
bool f32_weight(const OpDesc& op, const Device&) { return op.inputs[1]->type == DataType::kF32; }
std::unique_ptr<Prepared> prepare(const OpDesc&, Device&) {
  auto prepared = std::make_unique<Prepared>();
  prepared->scratch_bytes = 100;
  return prepared;
}

const OpRecord kFakeRecords[] = {{Op::kScale, always, prepare, on_hidden<ref::scale>},
                                 {Op::kAdd, always, prepare, on_hidden<ref::add>},
                                 {Op::kMatMul, f32_weight, prepare, on_hidden<ref::matmul>}};

struct Traffic {
  int uploads = 0, downloads = 0;
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(Traffic& traffic) : traffic_(traffic) {}
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    ++traffic_.uploads;
    CHECK(offset + bytes <= to.size());
    std::memcpy(visible(&to)->host() + offset, from, bytes);
  }
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    ++traffic_.downloads;
    CHECK(offset + bytes <= from.size());
    std::memcpy(to, static_cast<const HiddenBuffer&>(from).memory().host() + offset, bytes);
  }
  std::unique_ptr<Event> record() override { return std::make_unique<Event>(); }
  void wait(const Event&) override {}
  void synchronize() override {}

 private:
  Traffic& traffic_;
};

class FakeDevice final : public Device {
 public:
  Traffic traffic;
  std::string name() const override { return "fake0"; }
  std::string description() const override { return "a device for tests"; }
  DeviceMemory memory() const override { return {}; }
  bool is_host() const override { return false; }
  std::unique_ptr<Buffer> allocate(size_t bytes) override { return std::make_unique<HiddenBuffer>(bytes); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<FakeStream>(traffic); }
  std::span<const OpRecord> operations() const override { return kFakeRecords; }
};

// ---- Running ----

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

Machine only_ref() {
  Machine m;
  m.add(create_ref_device());
  return m;
}
Machine two_refs() {
  Machine m = only_ref();
  m.add(create_ref_device());
  return m;
}
Machine ref_and_fake() {
  Machine m = only_ref();
  m.add(std::make_unique<FakeDevice>());
  return m;
}

StepInputs five_tokens() {
  StepInputs step({kBucket, 0, 1, 1, 1});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, kTokens);
  for (int t = 0; t < kTokens; ++t) step.add_token(0, (t * 3) % 7, t, false);
  return step;
}

// Weights that live as long as the tests' graphs, each on a given device as well.
class Weights {
 public:
  Weight& add(const Shape& shape, test::Random& random, DataType type = DataType::kF32) {
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
    w.device = index;
    w.device_buffer = buffers_.back().get();
  }
  void stay_on_host() {
    for (Weight& w : weights_) w.device = 0, w.device_buffer = nullptr;
  }
  std::deque<Weight>& all() { return weights_; }

 private:
  std::deque<std::vector<std::byte>> data_;
  std::deque<Weight> weights_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

struct Ran {
  std::vector<std::vector<float>> outputs;
  std::vector<size_t> arena_bytes;
  std::vector<Fallback> fallbacks;
  std::vector<Plan::Step> steps;
};

Ran run(Machine& machine, Graph graph, const std::vector<ValueId>& wanted, PlanOptions options = {}) {
  for (const ValueId id : wanted) graph.mark_output(id);
  options.devices = machine.list();
  if (!options.layer_device) options.layer_device = [](int) { return 0; };
  Plan plan(std::move(graph), std::move(options));
  std::vector<std::unique_ptr<Buffer>> arenas;
  std::vector<Buffer*> list;
  Ran result;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    result.arena_bytes.push_back(plan.arena_bytes(static_cast<int>(d)));
    arenas.push_back(machine.devices[d]->allocate(result.arena_bytes.back()));
    const std::vector<std::byte> garbage(result.arena_bytes.back(), std::byte{0xff});
    if (!garbage.empty()) machine.streams[d]->upload(*arenas.back(), 0, garbage.data(), garbage.size());
    list.push_back(arenas.back().get());
  }
  plan.bind(list);
  const StepInputs step = five_tokens();
  const std::vector<Stream*> streams = machine.stream_list();
  // Twice: nothing may be left over from the first run that the second one needs.
  for (int repeat = 0; repeat < 2; ++repeat) plan.run(step, streams, {});
  for (const ValueId id : wanted) {
    result.outputs.emplace_back(static_cast<size_t>(kTokens * plan.graph().value(id).desc.shape.row_elements()));
    plan.read_output(id, step, streams, result.outputs.back().data());
  }
  result.fallbacks = plan.fallbacks();
  result.steps = plan.steps();
  return result;
}

bool same(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * 4) != 0) return false;
  }
  return true;
}

struct RandomGraph {
  Graph graph{kBucket, 0};
  std::vector<ValueId> values;  // all of width kWidth
  std::set<int> layers;
};

// Nodes that take earlier values, mostly recent ones, views among them; layers ascend.
RandomGraph random_graph(uint64_t seed, Weights& weights, int nodes) {
  test::Random random(seed);
  if (weights.all().empty()) {
    weights.add({7, kWidth}, random);
    weights.add({kWidth, kWidth}, random);
    weights.add({kWidth, kWidth}, random, DataType::kF16);
    weights.add({2 * kWidth, kWidth}, random);
    weights.add({kWidth}, random);
  }
  RandomGraph r;
  Graph& g = r.graph;
  const auto pick = [&] {
    const size_t n = r.values.size();
    return r.values[random.next() % 3 == 0 ? random.next() % n : n - 1 - random.next() % std::min<size_t>(3, n)];
  };
  r.values.push_back(g.embed(weights.all()[0]));
  for (int i = 0; i < nodes; ++i) {
    g.set_layer(i / 4);
    r.layers.insert(i / 4);
    switch (random.next() % 8) {
      case 0:
        r.values.push_back(g.scale(pick(), 0.75f));
        break;
      case 1:
      case 2:
        r.values.push_back(g.add(pick(), pick()));
        break;
      case 3:
        r.values.push_back(g.mul(pick(), g.weight(weights.all()[4])));
        break;
      case 4:
        r.values.push_back(g.unary(pick(), UnaryKind::kTanh));
        break;
      case 5:
        r.values.push_back(g.rms_norm(pick(), nullptr, 1e-5f));
        break;
      case 6:
        r.values.push_back(g.matmul(pick(), weights.all()[1 + random.next() % 2]));
        break;
      default: {  // two halves of a wide product, as views
        const ValueId wide = g.matmul(pick(), weights.all()[3]);
        const ValueId a = g.view_columns(wide, 0, kWidth), b = g.view_columns(wide, kWidth, kWidth);
        r.values.push_back(random.next() % 2 ? g.gated_activation(a, b, UnaryKind::kSilu) : b);
        break;
      }
    }
  }
  return r;
}

}  // namespace

TEST_CASE("plan: sharing memory by liveness changes no result") {
  int smaller = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 5 + static_cast<int>(seed % 40));
    Machine machine = only_ref();
    const std::vector<ValueId> last{r.values.back(), r.values[r.values.size() / 2]};
    const Ran shared = run(machine, r.graph, last);
    Graph separate = r.graph;
    for (const ValueId id : r.values) separate.mark_output(id);
    const Ran alone = run(machine, separate, last);
    CAPTURE(seed);
    CHECK(same(shared.outputs, alone.outputs));
    for (const auto& output : shared.outputs) {
      for (const float v : output) CHECK(std::isfinite(v));
    }
    smaller += shared.arena_bytes[0] < alone.arena_bytes[0];
  }
  CHECK(smaller > 40);
}

TEST_CASE("plan: a chain needs the memory of two values") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  ValueId x = r.values[0];
  for (int i = 0; i < 50; ++i) x = r.graph.scale(x, 0.9f);
  Machine machine = only_ref();
  CHECK(run(machine, r.graph, {x}).arena_bytes[0] == 2 * ((kBucket * kWidth * 4 + 63) / 64 * 64));
}

TEST_CASE("plan: two host devices give what one gives, and a value crosses once") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 30);
    const std::vector<ValueId> wanted{r.values.back(), r.values[10]};
    Machine one = only_ref(), two = two_refs();
    const Ran expected = run(one, r.graph, wanted);
    PlanOptions options;
    options.layer_device = [&](int layer) { return layer < 0 ? 0 : static_cast<int>((seed >> (layer % 6)) & 1); };
    const Ran split = run(two, r.graph, wanted, options);
    CAPTURE(seed);
    CHECK(same(expected.outputs, split.outputs));
    std::set<std::pair<ValueId, int>> crossed;
    for (const Plan::Step& s : split.steps) {
      if (s.kind != Plan::Step::Kind::kCopy) continue;
      CHECK(s.device != s.from_device);
      CHECK(crossed.insert({s.value, s.device}).second);
    }
    CHECK(split.fallbacks.empty());
  }
}

TEST_CASE("plan: a device with its own memory, kernels that it lacks run on the host") {
  int copies = 0, fallbacks = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Weights weights;
    const RandomGraph r = random_graph(seed, weights, 30);
    const std::vector<ValueId> wanted{r.values.back(), r.values[12]};
    Machine one = only_ref(), both = ref_and_fake();
    const Ran expected = run(one, r.graph, wanted);
    // The products' weights live on the device; the F16 one falls back, and so do the other operations.
    for (int w = 1; w <= 3; ++w) weights.move_to(weights.all()[w], 1, *both.devices[1], *both.streams[1]);
    PlanOptions options;
    options.layer_device = [](int layer) { return layer >= 1 && layer % 3 != 0; };
    const Ran split = run(both, r.graph, wanted, options);
    CAPTURE(seed);
    CHECK(same(expected.outputs, split.outputs));
    for (const Plan::Step& s : split.steps) copies += s.kind == Plan::Step::Kind::kCopy;
    fallbacks += static_cast<int>(split.fallbacks.size());
    for (const Fallback& f : split.fallbacks) {
      CHECK(f.device == "fake0");
      CHECK(f.op != Op::kScale);
      CHECK((f.op != Op::kMatMul || f.type == DataType::kF16));
      CHECK(f.first_layer <= f.last_layer);
    }
    std::set<std::pair<Op, DataType>> reported;
    for (const Fallback& f : split.fallbacks) CHECK(reported.insert({f.op, f.type}).second);
    weights.stay_on_host();
  }
  CHECK(copies > 40);
  CHECK(fallbacks > 40);
}

TEST_CASE("plan: a missing kernel is an error when offload is strict, and always where the cache is") {
  Weights weights;
  RandomGraph r = random_graph(1, weights, 0);
  r.graph.set_layer(4);
  const ValueId y = r.graph.unary(r.values[0], UnaryKind::kTanh);
  Machine both = ref_and_fake();
  PlanOptions options;
  options.layer_device = [](int layer) { return layer == 4; };
  const Ran loose = run(both, r.graph, {y}, options);
  REQUIRE(loose.fallbacks.size() == 1);
  CHECK(loose.fallbacks[0].op == Op::kUnary);
  CHECK(loose.fallbacks[0].first_layer == 4);
  options.strict = true;
  const auto error_of = [&](const Graph& graph) -> std::string {
    try {
      run(both, graph, {}, options);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUnsupported);
      return error.what();
    }
    return "";
  };
  CHECK(error_of(r.graph) ==
        "[plan] operation unary of F32 in layer 4: a kernel on device fake0, found none (strict offload)");
  options.strict = false;
  Graph cached(kBucket, 0);
  cached.set_layer(4);
  CacheDesc cache;
  cache.n_kv_head = 1, cache.key_dim = cache.value_dim = kWidth;
  const ValueId x = cached.reshape(cached.embed(weights.all()[0]), {kBucket, 1, kWidth});
  cached.kv_store(x, x, cache);
  CHECK(error_of(cached) == "[plan] operation kv_store of F32 in layer 4: a kernel on device fake0, found none");
}

TEST_CASE("plan: observers see the rows with data of every value of their name, views and devices included") {
  Weights weights;
  test::Random random(3);
  for (const bool on_fake : {false, true}) {
    Graph g(kBucket, 0);
    RandomGraph r = random_graph(1, weights, 0);
    r.graph.set_layer(1);
    const ValueId y = r.graph.name(r.graph.scale(r.values[0], 2), "doubled");
    const ValueId part = r.graph.name(r.graph.view_columns(y, 3, 2), "part");
    const ValueId z = r.graph.add(y, y);
    Machine machine = on_fake ? ref_and_fake() : only_ref();
    std::vector<float> doubled, parts;
    int calls = 0;
    PlanOptions options;
    options.layer_device = [&](int layer) { return on_fake && layer == 1; };
    options.observers.push_back(
        {"doubled", [&](const TensorDesc& d, const float* data, int64_t rows, const StepInputs& s) {
           CHECK(rows == kTokens);
           CHECK(s.n_tokens() == kTokens);
           doubled.assign(data, data + rows * d.shape.row_elements());
           ++calls;
         }});
    options.observers.push_back({"part", [&](const TensorDesc& d, const float* data, int64_t rows, const StepInputs&) {
                                   parts.assign(data, data + rows * d.shape.row_elements());
                                 }});
    options.observers.push_back(
        {"nobody", [&](const TensorDesc&, const float*, int64_t, const StepInputs&) { FAIL("called"); }});
    const Ran ran = run(machine, r.graph, {y, part, z}, options);
    CHECK(calls == 2);  // the plan runs twice
    CHECK(doubled == ran.outputs[0]);
    CHECK(parts == ran.outputs[1]);
    for (int t = 0; t < kTokens; ++t) {
      for (int i = 0; i < 2; ++i) CHECK(ran.outputs[1][t * 2 + i] == ran.outputs[0][t * kWidth + 3 + i]);
    }
  }
}

TEST_CASE("plan: a product observer sees what every product multiplies, and which experts") {
  Weights weights;
  test::Random random(5);
  Weight& table = weights.add({7, kWidth}, random);
  Weight& square = weights.add({kWidth, kWidth}, random);
  Weight& router = weights.add({3, kWidth}, random);
  Weight& experts = weights.add({3, kWidth, kWidth}, random);
  square.name = "square", router.name = "router", experts.name = "experts";
  Graph g(kBucket, 0);
  const ValueId x = g.embed(table);
  const ValueId y = g.matmul(x, square);
  MoeRouteParams params;
  params.n_used = 2;
  const Graph::Route route = g.moe_route(g.matmul(y, router), params);
  const ValueId first = g.matmul_experts(y, experts, route.ids);
  const ValueId second = g.matmul_experts(first, experts, route.ids);
  std::map<std::string, int> calls;
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<int32_t>> used;
  PlanOptions options;
  options.product_observer = [&](const ProductInput& input) {
    ++calls[input.weight.name];
    CHECK(input.row_size == kWidth);
    inputs.emplace_back(input.values.begin(), input.values.end());
    used.emplace_back(input.experts.begin(), input.experts.end());
    CHECK(input.n_used == (input.experts.empty() ? 0 : 2));
  };
  Machine machine = only_ref();
  const Ran ran = run(machine, g, {x, y, first, second}, options);
  CHECK(calls == std::map<std::string, int>{{"square", 2}, {"router", 2}, {"experts", 4}});  // the plan runs twice
  REQUIRE(inputs.size() == 8);
  CHECK(inputs[0] == ran.outputs[0]);
  CHECK(inputs[1] == ran.outputs[1]);
  CHECK(inputs[2] == ran.outputs[1]);
  CHECK(inputs[3] == ran.outputs[2]);
  CHECK(used[2].size() == 2 * kTokens);
  CHECK(used[2] == used[3]);
}

TEST_CASE("plan: views of weights are read where the weight lies") {
  Weights weights;
  test::Random random(8);
  Weight& table = weights.add({7, kWidth}, random);
  Weight& pair = weights.add({kBucket, 2 * kWidth}, random);
  pair.desc.rows = RowKind::kTokens;
  Graph g(kBucket, 0);
  const ValueId x = g.embed(table), left = g.view_columns(g.weight(pair), 0, kWidth),
                right = g.view_columns(g.weight(pair), kWidth, kWidth);
  const ValueId y = g.add(g.add(x, left), right);
  Machine machine = only_ref();
  const Ran ran = run(machine, g, {y, x});
  const auto* values = reinterpret_cast<const float*>(pair.host);
  for (int t = 0; t < kTokens; ++t) {
    for (int i = 0; i < kWidth; ++i) {
      const float expected =
          ran.outputs[1][t * kWidth + i] + values[t * 2 * kWidth + i] + values[t * 2 * kWidth + kWidth + i];
      CHECK(ran.outputs[0][t * kWidth + i] == expected);
    }
  }
}

TEST_CASE("plan: adjacent nodes of one device make one segment") {
  Weights weights;
  const RandomGraph r = random_graph(2, weights, 20);
  Machine machine = only_ref();
  const Ran ran = run(machine, r.graph, {r.values.back()});
  REQUIRE(ran.steps.size() == 1);
  CHECK(ran.steps[0].count == static_cast<int>(r.graph.nodes().size()));
}
