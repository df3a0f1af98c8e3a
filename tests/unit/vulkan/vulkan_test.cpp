// What the conformance cases cannot ask of the Vulkan backend: limits of drivers, pretended small ones, staging instead
// of shared memory, devices without operations on subgroups, allocations that fail.
#include "backends/vulkan/vulkan_device.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>

#include "backends/vulkan/shaders.h"
#include "ggml-like/error.h"
#include "ggml-like/graph.h"
#include "ggml-like/plan.h"
#include "ggml-like/ref/ref_device.h"
#include "tests/support/skip.h"

using namespace infer;

namespace {

// The first device, or "" after counting a skip.
std::string device_name(const std::string& test) {
  const std::vector<std::string> names = vulkan_device_names();
  if (!names.empty()) return names[0];
  const char* required = std::getenv("INFER_REQUIRE");
  if (required && std::string(required).find("vulkan") != std::string::npos) FAIL("no Vulkan device was found");
  else test::skip(test, "no Vulkan device");
  return "";
}

std::vector<std::byte> pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  uint32_t state = seed;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(state >> 24);
  }
  return data;
}

// x [tokens, k] times a weight [n, k] on the device, on tensors of its own.
std::vector<float> multiply(Device& device, DataType type, int64_t n, int64_t k, const std::vector<std::byte>& weight,
                            const std::vector<float>& x, int tokens) {
  const std::unique_ptr<Device> host = create_ref_device();
  const std::unique_ptr<Stream> host_stream = host->create_stream(), stream = device.create_stream();
  const auto upload = [&](const void* data, size_t bytes) {
    std::unique_ptr<Buffer> buffer = device.allocate(bytes);
    stream->upload(*buffer, 0, data, bytes);
    return buffer;
  };
  const std::unique_ptr<Buffer> w = upload(weight.data(), weight.size()), in = upload(x.data(), x.size() * 4);
  Weight matrix{"w", make_desc(type, {n, k}), weight.data(), 1, w.get(), 0};
  Weight input{"x",
               make_desc(DataType::kF32, {tokens, k}, RowKind::kTokens),
               reinterpret_cast<const std::byte*>(x.data()),
               1,
               in.get(),
               0};
  Graph graph(tokens, 0);
  const ValueId y = graph.matmul(graph.weight(input), matrix);
  graph.mark_output(y);
  PlanOptions options;
  options.devices = {host.get(), &device};
  options.layer_device = [](int) { return 1; };
  options.strict = true;
  Plan plan(std::move(graph), std::move(options));
  const std::unique_ptr<Buffer> arena = device.allocate(plan.arena_bytes(1));
  Buffer* const arenas[] = {nullptr, arena.get()};
  plan.bind(arenas);
  StepInputs step({tokens, 0, 1, 1, 1});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, tokens);
  for (int t = 0; t < tokens; ++t) step.add_token(0, 0, t, false);
  const std::unique_ptr<Buffer> inputs = upload(step.raw().data(), step.raw().size_bytes());
  Stream* const streams[] = {host_stream.get(), stream.get()};
  Buffer* const step_buffers[] = {nullptr, inputs.get()};
  plan.run(step, streams, step_buffers);
  std::vector<float> out(static_cast<size_t>(tokens) * n);
  plan.read_output(y, step, streams, out.data());
  return out;
}

struct Problem {
  int64_t n, k;
  std::vector<std::byte> weight;
  std::vector<float> x;
};

Problem problem(DataType type, int64_t n, int64_t k, int tokens) {
  Problem p{n, k, std::vector<std::byte>(row_bytes(type, k) * n), std::vector<float>(k * tokens)};
  std::vector<float> values(static_cast<size_t>(n * k));
  uint32_t state = 7;
  const auto next = [&] { return static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24f - 0.5f; };
  for (float& v : values) v = next();
  for (float& v : p.x) v = next();
  traits(type).from_float(values.data(), p.weight.data(), n * k);
  return p;
}

}  // namespace

TEST_CASE("every weight type has its shaders, and blocks of the size that blocks.h says") {
  std::ifstream file(std::string(INFER_SOURCE_DIR) + "/backends/vulkan/glsl/weights.glsl");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(!text.empty());
  std::map<std::string, uint32_t> defined;
  const std::regex line(R"(#define (\w+_(?:BLOCK|BYTES)) (\d+))");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    defined[(*at)[1]] = static_cast<uint32_t>(std::stoul((*at)[2]));
  }
  for (const TypeTraits& t : all_types()) {
    if (!t.to_float) continue;
    CAPTURE(t.name);
    CHECK(defined[concat(t.name, "_BLOCK")] == t.block_size);
    CHECK(defined[concat(t.name, "_BYTES")] == t.type_size);
    CHECK(vulkan::find_shader(concat("embed.", t.name)));
    if (!t.dot) continue;
    for (const char* name : {"matmul_vector.", "matmul_vector_plain.", "matmul_tiled."}) {
      CHECK(vulkan::find_shader(concat(name, t.name)));
    }
  }
}

TEST_CASE("what is uploaded comes back, through shared memory, staging buffers and several pieces") {
  const std::string name = device_name("uploads");
  if (name.empty()) return;
  for (const bool unified : {true, false}) {
    for (const uint64_t largest : {uint64_t{0}, uint64_t{4} << 20}) {
      CAPTURE(unified);
      CAPTURE(largest);
      VulkanOptions options;
      options.unified_memory = unified;
      options.max_allocation = largest;
      const std::unique_ptr<Device> device = create_vulkan_device(name, options);
      const std::unique_ptr<Stream> stream = device->create_stream();
      const std::vector<std::byte> data = pattern((13 << 20) + 5, 1), patch = pattern(3 << 20, 2);
      const std::unique_ptr<Buffer> buffer = device->allocate(data.size());
      stream->upload(*buffer, 0, data.data(), data.size());
      stream->upload(*buffer, (2 << 20) + 3, patch.data(), patch.size());  // over borders of pieces
      std::vector<std::byte> expected = data, found(data.size());
      std::memcpy(expected.data() + (2 << 20) + 3, patch.data(), patch.size());
      stream->download(found.data(), *buffer, 0, 1000);
      stream->download(found.data() + 1000, *buffer, 1000, found.size() - 1000);
      stream->synchronize();
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a weight in ranges of rows and in pieces gives the bits it gives in one") {
  const std::string name = device_name("row ranges");
  if (name.empty()) return;
  for (const DataType type : {DataType::kQ6_K, DataType::kF16}) {
    const Problem p = problem(type, type == DataType::kF16 ? 12000 : 16000, 256, 9);
    for (const int tokens : {1, 9}) {
      std::vector<float> expected;
      for (const auto& [binding, allocation] : {std::pair<uint64_t, uint64_t>{0, 0}, {1 << 20, 0}, {0, 5 << 19}}) {
        CAPTURE(binding);
        CAPTURE(allocation);
        VulkanOptions options;
        options.max_binding = binding;
        options.max_allocation = allocation;
        const std::unique_ptr<Device> device = create_vulkan_device(name, options);
        const std::vector<float> found = multiply(*device, type, p.n, p.k, p.weight, p.x, tokens);
        if (expected.empty()) expected = found;
        CHECK(std::memcmp(found.data(), expected.data(), found.size() * 4) == 0);
      }
    }
  }
}

TEST_CASE("a weight beyond what the driver binds at once: 137 MB, where lavapipe's limit is 128 MiB") {
  const std::string name = device_name("a large weight");
  if (name.empty()) return;
  const std::unique_ptr<Device> device = create_vulkan_device(name);
  constexpr int64_t kRows = 31500, kColumns = 4096;
  const size_t row = row_bytes(DataType::kQ8_0, kColumns);
  std::vector<std::byte> weight(row * kRows);
  const std::vector<float> x(kColumns, 1.0f);
  // All zero but for rows at the borders, which count their number.
  const std::vector<int64_t> marked = {0, 1, 30838, 30839, 30840, 30841, 30842, kRows - 1};
  for (const int64_t r : marked) {
    std::vector<float> values(kColumns, 0.0f);
    values[static_cast<size_t>(r % kColumns)] = 127;
    traits(DataType::kQ8_0).from_float(values.data(), weight.data() + r * row, kColumns);
  }
  const std::vector<float> y = multiply(*device, DataType::kQ8_0, kRows, kColumns, weight, x, 1);
  int64_t found = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    if (y[static_cast<size_t>(r)] == 0) continue;
    ++found;
    CHECK(y[static_cast<size_t>(r)] == doctest::Approx(127));
  }
  CHECK(found == static_cast<int64_t>(marked.size()));
  for (const int64_t r : marked) CHECK(y[static_cast<size_t>(r)] != 0);
}

TEST_CASE("without operations on subgroups the sums are nearly the same") {
  const std::string name = device_name("plain reductions");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ4_K, 70, 1024, 3);
  VulkanOptions plain;
  plain.subgroup_arithmetic = false;
  const std::vector<float> a = multiply(*create_vulkan_device(name), DataType::kQ4_K, p.n, p.k, p.weight, p.x, 3);
  const std::vector<float> b =
      multiply(*create_vulkan_device(name, plain), DataType::kQ4_K, p.n, p.k, p.weight, p.x, 3);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

TEST_CASE("deterministic: a row alone has the bits it has among others") {
  const std::string name = device_name("deterministic products");
  if (name.empty()) return;
  VulkanOptions options;
  options.deterministic = true;
  const std::unique_ptr<Device> device = create_vulkan_device(name, options);
  for (const DataType type : {DataType::kQ4_K, DataType::kQ8_0, DataType::kF32}) {
    const Problem p = problem(type, 21, 512, 20);
    const std::vector<float> all = multiply(*device, type, p.n, p.k, p.weight, p.x, 20);
    for (const int count : {1, 3, 6}) {
      const std::vector<float> some =
          multiply(*device, type, p.n, p.k, p.weight, {p.x.begin(), p.x.begin() + count * p.k}, count);
      CHECK(std::memcmp(some.data(), all.data(), some.size() * 4) == 0);
    }
  }
}

TEST_CASE("an allocation that fails is an error, whichever it is, and the device goes on") {
  const std::string name = device_name("failing allocations");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ8_0, 40, 64, 2);
  int failures = 0;
  for (int nth = 1;; ++nth) {
    REQUIRE(nth < 50);
    VulkanOptions options;
    options.fail_allocation = nth;
    options.unified_memory = false;  // staging buffers are allocations too
    options.budget = 256 << 20;      // so that what others do with the host's memory does not show
    const std::unique_ptr<Device> device = create_vulkan_device(name, options);
    const uint64_t free = device->memory().free;
    bool failed = false;
    try {
      multiply(*device, DataType::kQ8_0, p.n, p.k, p.weight, p.x, 2);
    } catch (const Error& error) {
      failed = true;
      CHECK(error.code() == ErrorCode::kOutOfMemory);
      CHECK(std::string(error.what()).find("[" + name + "]") == 0);
    }
    if (!failed) break;
    ++failures;
    CHECK(device->memory().free + (8 << 20) >= free);  // the allocation that small buffers share may stay
    CHECK(multiply(*device, DataType::kQ8_0, p.n, p.k, p.weight, p.x, 2).size() == 80);
  }
  CHECK(failures >= 3);
}

TEST_CASE("a pretended budget is what the device has") {
  const std::string name = device_name("budget");
  if (name.empty()) return;
  VulkanOptions options;
  options.budget = 20 << 20;
  const std::unique_ptr<Device> device = create_vulkan_device(name, options);
  CHECK(device->memory().total == 20 << 20);
  const std::unique_ptr<Buffer> first = device->allocate(15 << 20);
  CHECK(device->memory().free <= 5 << 20);
  CHECK_THROWS_AS(device->allocate(10 << 20), Error);
}
