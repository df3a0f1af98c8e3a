// What the conformance cases cannot test in the Vulkan backend: drivers' limits, also small simulated ones, staging
// buffers instead of shared memory, devices without subgroup operations, failing allocations.
#include "backends/vulkan/vulkan_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>

#include "backends/vulkan/shaders.h"
#include "ggml-like/error.h"
#include "tests/unit/vulkan/products.h"

using namespace infer;
using namespace infer::test;

namespace {

std::vector<std::byte> pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  uint32_t state = seed;
  for (std::byte& b : data) {
    state = state * 1664525 + 1013904223;
    b = static_cast<std::byte>(state >> 24);
  }
  return data;
}

}  // namespace

TEST_CASE("every weight type has its shaders, and block sizes equal those in blocks.h") {
  std::string text;
  for (const char* name : {"weights.glsl", "weights_codebook.glsl"}) {
    std::ifstream file(concat(INFER_SOURCE_DIR, "/backends/vulkan/glsl/", name));
    REQUIRE(file);
    text.append(std::istreambuf_iterator<char>(file), {});
  }
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
    if (!t.quantized) continue;
    for (const char* name : {"matmul_dot.", "matmul_matrix.", "matmul_matrix_emulated."}) {
      CHECK(vulkan::find_shader(concat(name, t.name)));
    }
  }
}

TEST_CASE("uploaded data comes back through shared memory, staging buffers and several pieces") {
  const std::string name = device_name("uploads");
  if (name.empty()) return;
  for (const bool unified : {true, false}) {
    for (const uint64_t largest : {uint64_t{0}, uint64_t{4} << 20}) {
      CAPTURE(unified);
      CAPTURE(largest);
      const std::unique_ptr<Device> device = create_vulkan_device(
          name, {.max_allocation = largest, .unified_memory = unified, .coherent_memory = unified});
      const std::unique_ptr<Stream> stream = device->create_stream();
      const std::vector<std::byte> data = pattern((13 << 20) + 5, 1), patch = pattern(3 << 20, 2);
      const std::unique_ptr<Buffer> buffer = device->allocate(data.size());
      stream->upload(*buffer, 0, data.data(), data.size());
      stream->upload(*buffer, (2 << 20) + 3, patch.data(), patch.size());  // across the borders of pieces
      std::vector<std::byte> expected = data, found(data.size());
      std::memcpy(expected.data() + (2 << 20) + 3, patch.data(), patch.size());
      stream->download(found.data(), *buffer, 0, 1000);
      stream->download(found.data() + 1000, *buffer, 1000, found.size() - 1000);
      stream->synchronize();
      CHECK(found == expected);
    }
  }
}

TEST_CASE("copies within the device and to staging memory keep their order, without the host") {
  const std::string name = device_name("copies");
  if (name.empty()) return;
  for (const bool unified : {true, false}) {
    CAPTURE(unified);
    const std::unique_ptr<Device> device =
        create_vulkan_device(name, {.unified_memory = unified, .coherent_memory = unified});
    const std::unique_ptr<Stream> stream = device->create_stream();
    constexpr size_t kBytes = 3 << 20, kPart = 1 << 20;
    const std::vector<std::byte> data = pattern(kBytes, 3), later = pattern(kPart, 4);
    const std::unique_ptr<Buffer> buffer = device->allocate(kBytes), staging = device->allocate_staging(2 * kPart);
    REQUIRE(staging->host());
    stream->upload(*buffer, 0, data.data(), kBytes);
    // The last part becomes the first, and the one before it the last: each copy sees the writes of earlier ones.
    const CopyRange first[] = {{buffer.get(), 0, buffer.get(), 2 * kPart, kPart}};
    const CopyRange second[] = {{buffer.get(), 2 * kPart, buffer.get(), kPart, kPart}};
    stream->copy(first);
    stream->copy(second);
    const CopyRange out[] = {{staging.get(), kPart, buffer.get(), 0, kPart},
                             {staging.get(), 0, buffer.get(), 2 * kPart, kPart}};
    stream->copy(out);
    const std::unique_ptr<Event> copied = stream->record();
    stream->upload(*buffer, 0, later.data(), kPart);  // after the event, so not seen
    copied->wait();
    CHECK(std::memcmp(staging->host() + kPart, data.data() + 2 * kPart, kPart) == 0);
    CHECK(std::memcmp(staging->host(), data.data() + kPart, kPart) == 0);
    std::vector<std::byte> found(kPart);
    stream->download(found.data(), *buffer, 0, kPart);
    stream->synchronize();
    CHECK(found == later);
  }
}

TEST_CASE("a segment can be run again before it is done, and destroyed while it runs") {
  const std::string name = device_name("segments under way");
  if (name.empty()) return;
  const std::unique_ptr<Device> device = create_vulkan_device(name);
  const std::unique_ptr<Stream> stream = device->create_stream();
  constexpr int64_t kValues = 1 << 20;
  const TensorDesc desc = make_desc(DataType::kF32, {1, kValues});
  const TensorDesc* const descs[] = {&desc};
  const std::unique_ptr<Buffer> x = device->allocate(desc.bytes()), step = device->allocate(64);
  const std::vector<float> ones(kValues, 1.0f);
  stream->upload(*x, 0, ones.data(), desc.bytes());
  const TensorRef refs[] = {{&desc, x.get(), 0}};
  const OpParams params = ScaleParams{2};
  BoundNode node;
  node.record = device->find(Op::kScale);
  node.launch.op = {Op::kScale, &params, descs, descs, nullptr};
  node.launch.inputs = node.launch.outputs = refs;
  node.launch.step_buffer = step.get();
  const std::unique_ptr<Prepared> prepared = node.record->prepare(node.launch.op, *device);
  node.prepared = prepared.get();
  std::unique_ptr<Segment> segment = stream->compile({&node, 1});
  for (int i = 0; i < 10; ++i) stream->run(*segment);
  segment.reset();
  std::vector<float> found(kValues);
  stream->download(found.data(), *x, 0, desc.bytes());
  stream->synchronize();
  CHECK(std::all_of(found.begin(), found.end(), [](float v) { return v == 1024; }));
}

TEST_CASE("a weight in ranges of rows and in pieces gives the same bits as in one piece") {
  const std::string name = device_name("row ranges");
  if (name.empty()) return;
  for (const DataType type : {DataType::kQ6_K, DataType::kF16}) {
    const Problem p = problem(type, type == DataType::kF16 ? 12000 : 16000, 256, 9);
    for (const int tokens : {1, 9}) {
      std::vector<float> expected;
      for (const auto& [binding, allocation] : {std::pair<uint64_t, uint64_t>{0, 0}, {1 << 20, 0}, {0, 5 << 19}}) {
        CAPTURE(binding);
        CAPTURE(allocation);
        const std::unique_ptr<Device> device =
            create_vulkan_device(name, {.max_allocation = allocation, .max_binding = binding});
        const std::vector<float> found = multiply(*device, type, p.n, p.k, p.weight, p.x, tokens);
        if (expected.empty()) expected = found;
        CHECK(std::memcmp(found.data(), expected.data(), found.size() * 4) == 0);
      }
    }
  }
}

TEST_CASE("a weight larger than a binding: 137 MB, where lavapipe's limit is 128 MiB") {
  const std::string name = device_name("a large weight");
  if (name.empty()) return;
  const std::unique_ptr<Device> device = create_vulkan_device(name);
  constexpr int64_t kRows = 31500, kColumns = 4096;
  const size_t row = row_bytes(DataType::kQ8_0, kColumns);
  std::vector<std::byte> weight(row * kRows);
  const std::vector<float> x(kColumns, 1.0f);
  // All zero except for rows at the borders, which hold their own numbers.
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

TEST_CASE("more rows than workgroups in a dispatch: a vocabulary of 140,000, where most drivers allow 65,535 groups") {
  const std::string name = device_name("many rows");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ8_0, 140000, 32, 9);
  const std::vector<float> all = multiply(*create_vulkan_device(name), DataType::kQ8_0, p.n, p.k, p.weight, p.x, 1);
  const int64_t last = p.n - 100;  // only these
  const std::vector<std::byte> end(p.weight.begin() + last * row_bytes(DataType::kQ8_0, p.k), p.weight.end());
  const std::vector<float> few = multiply(*create_vulkan_device(name), DataType::kQ8_0, 100, p.k, end, p.x, 1);
  CHECK(std::memcmp(all.data() + last, few.data(), few.size() * 4) == 0);
}

TEST_CASE("without subgroup operations the sums are nearly the same") {
  const std::string name = device_name("plain reductions");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ4_K, 70, 1024, 3);
  const std::vector<float> a = multiply(*create_vulkan_device(name), DataType::kQ4_K, p.n, p.k, p.weight, p.x, 3);
  const std::vector<float> b = multiply(*create_vulkan_device(name, {.subgroup_arithmetic = false}), DataType::kQ4_K,
                                        p.n, p.k, p.weight, p.x, 3);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

TEST_CASE("deterministic: a row alone has the same bits as among others") {
  const std::string name = device_name("deterministic products");
  if (name.empty()) return;
  const std::unique_ptr<Device> device = create_vulkan_device(name, {.deterministic = true});
  for (const DataType type : {DataType::kQ4_K, DataType::kQ8_0, DataType::kF32}) check_rows_alone(*device, type);
}

// Conformance does not notice that a device lacks a kernel for some shape of a cache.
TEST_CASE("latent caches and index keys are in the device's memory, of any size that the shaders take") {
  const std::string name = device_name("latent caches");
  if (name.empty()) return;
  for (const uint32_t shared : {0u, 16u << 10}) {  // 16 KiB is what Vulkan guarantees
    CAPTURE(shared);
    const std::unique_ptr<Device> device = create_vulkan_device(name, {.max_shared = shared});
    CacheDesc cache{.n_kv_head = 1, .key_dim = 576, .value_dim = 512, .latent = true};
    for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16, DataType::kQ8_0, DataType::kQ4_0,
                                DataType::kQ4_1, DataType::kQ5_0, DataType::kQ5_1, DataType::kIQ4_NL}) {
      CAPTURE(traits(type).name);
      cache.key_type = type;
      for (const CacheUse use : {CacheUse::kAttention, CacheUse::kSparseAttention, CacheUse::kIndex}) {
        cache.use = use;
        CHECK(device->keeps(cache));
      }
    }
    cache.key_type = DataType::kQ4_K;
    CHECK_FALSE(device->keeps(cache));
    cache.key_type = DataType::kQ8_0;
    cache.key_dim = 40;
    CHECK_FALSE(device->keeps(cache));
    cache = {.n_kv_head = 1, .key_dim = 1024, .value_dim = 1024, .latent = true};
    CHECK(device->keeps(cache));
    cache.key_dim = cache.value_dim = 1025;
    CHECK_FALSE(device->keeps(cache));
    cache.latent = false;
    cache.use = CacheUse::kSparseAttention;
    cache.key_dim = cache.value_dim = 128;
    CHECK(device->keeps(cache));
  }
}

TEST_CASE("any failing allocation is an error, after which the device still works") {
  const std::string name = device_name("failing allocations");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ8_0, 40, 64, 2);
  int failures = 0;
  for (int nth = 1;; ++nth) {
    REQUIRE(nth < 50);
    VulkanOptions options;
    options.fail_allocation = nth;
    options.unified_memory = false;  // staging buffers are allocations too
    options.budget = 256 << 20;      // so that the host's free memory does not matter
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
    CHECK(device->memory().free + (8 << 20) >= free);  // the shared allocation of small buffers may remain
    CHECK(multiply(*device, DataType::kQ8_0, p.n, p.k, p.weight, p.x, 2).size() == 80);
  }
  CHECK(failures >= 3);
}

TEST_CASE("a simulated budget is the memory that the device reports") {
  const std::string name = device_name("budget");
  if (name.empty()) return;
  const std::unique_ptr<Device> device = create_vulkan_device(name, {.budget = 20 << 20});
  CHECK(device->memory().total == 20 << 20);
  const std::unique_ptr<Buffer> first = device->allocate(15 << 20);
  CHECK(device->memory().free <= 5 << 20);
  CHECK_THROWS_AS(device->allocate(10 << 20), Error);
}
