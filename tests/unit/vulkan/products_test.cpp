// The shaders of products: which are taken on which device, and what they have in common with the CPU's.
#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "backends/vulkan/instance.h"
#include "backends/vulkan/kernels.h"
#include "backends/vulkan/shaders.h"
#include "backends/vulkan/spirv.h"
#include "backends/vulkan/vulkan_device.h"
#include "ggml-like/error.h"
#include "ggml-like/quant/activation.h"
#include "tests/support/skip.h"
#include "tests/unit/vulkan/products.h"

using namespace infer;
using namespace infer::test;
using vulkan::PhysicalDevice;
using vulkan::product_features;
using vulkan::product_kernel;
using vulkan::ProductKernel;

namespace {

// A device of the machine that can do integer dot products, by option; null after counting a skip.
std::unique_ptr<Device> dot_device(const std::string& test, VulkanOptions options = {}) {
  const std::string name = device_name(test);
  if (name.empty()) return nullptr;
  options.kernels = "dot";
  try {
    return create_vulkan_device(name, options);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    test::skip(test, "a device without integer dot products");
    return nullptr;
  }
}

// The product as the scalar definition has it: rows of activations as int8.
std::vector<float> by_formula(DataType type, const Problem& p, int tokens) {
  const TypeTraits& t = traits(type);
  std::vector<float> y;
  for (int token = 0; token < tokens; ++token) {
    const float* x = p.x.data() + token * p.k;
    std::vector<Activation256> large(p.k / 256);
    std::vector<Activation32> small(p.k / 32);
    quantize_activations(x, large.data(), p.k / 256);
    quantize_activations(x, small.data(), p.k / 32);
    const void* rounded = t.activation == ActivationFormat::kInt8Per256 ? static_cast<const void*>(large.data())
                                                                        : static_cast<const void*>(small.data());
    for (int64_t row = 0; row < p.n; ++row) {
      y.push_back(t.dot(p.weight.data() + row * row_bytes(type, p.k), rounded, p.k));
    }
  }
  return y;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - b[i]));
  return most;
}

PhysicalDevice plain_device() {
  PhysicalDevice device;
  device.properties.limits.maxComputeSharedMemorySize = 32 << 10;
  device.name = "vulkan7";
  device.subgroup_arithmetic = true;
  return device;
}

ProductKernel kernel_of(const PhysicalDevice& device, const char* wanted, DataType type, int64_t rows,
                        bool deterministic = false) {
  return product_kernel(product_features(device, {}, wanted), deterministic, type, rows, 8);
}

}  // namespace

TEST_CASE("which shader multiplies follows from the device, the type and the number of rows") {
  PhysicalDevice device = plain_device();
  const auto kernel = [&](const char* wanted, DataType type, int64_t rows, bool deterministic = false) {
    return kernel_of(device, wanted, type, rows, deterministic);
  };
  CHECK(kernel("", DataType::kQ4_K, 1) == ProductKernel::kVector);
  CHECK(kernel("", DataType::kQ4_K, 9) == ProductKernel::kTiled);
  CHECK(kernel("", DataType::kQ4_K, 9, true) == ProductKernel::kVector);
  CHECK_THROWS_WITH_AS(kernel("dot", DataType::kQ4_K, 1), doctest::Contains("vulkan7"), Error);
  CHECK_THROWS_WITH_AS(kernel("fast", DataType::kQ4_K, 1), doctest::Contains("found fast"), Error);

  device.integer_dot = true;  // present, but not in one instruction
  CHECK(kernel("", DataType::kQ4_K, 1) == ProductKernel::kVector);
  CHECK(kernel("dot", DataType::kQ4_K, 1) == ProductKernel::kDot);

  device.integer_dot_fast = true;
  CHECK(kernel("", DataType::kQ4_K, 1) == ProductKernel::kDot);
  CHECK(kernel("", DataType::kQ4_K, 8) == ProductKernel::kDot);
  CHECK(kernel("", DataType::kQ4_K, 9) == ProductKernel::kTiled);
  CHECK(kernel("", DataType::kQ4_K, 512, true) == ProductKernel::kDot);
  CHECK(kernel("", DataType::kF16, 1) == ProductKernel::kVector);
  CHECK(kernel("plain", DataType::kQ4_K, 1) == ProductKernel::kVector);
  CHECK_FALSE(product_features(device, {.subgroup_arithmetic = false}, "").dot);

  // Where a driver chooses the size of subgroups for each shader, sums over them are not the same in all.
  CHECK(vulkan::uses_subgroups(device, {}));
  CHECK_FALSE(vulkan::uses_subgroups(device, {.deterministic = true}));
  CHECK_FALSE(product_features(device, {.deterministic = true}, "").dot);
  CHECK_THROWS_AS(product_features(device, {.deterministic = true}, "dot"), Error);
  device.subgroup_least = device.subgroup_most = 64;
  CHECK(vulkan::uses_subgroups(device, {.deterministic = true}));
  CHECK(vulkan::reduction_subgroup(device, {.deterministic = true}) == 0);
  CHECK(product_features(device, {.deterministic = true}, "").dot);
}

TEST_CASE("matrices multiply where the size of subgroups is known and a workgroup has the memory for them") {
  PhysicalDevice device = plain_device();
  device.integer_dot = device.integer_dot_fast = true;
  device.subgroup_least = device.subgroup_most = 64;
  const auto kernel = [&](const char* wanted, DataType type, int64_t rows, bool deterministic = false) {
    return kernel_of(device, wanted, type, rows, deterministic);
  };
  device.half_matrices = true;
  CHECK(kernel("", DataType::kQ4_K, 512) == ProductKernel::kTiled);
  CHECK_THROWS_AS(kernel("matrix", DataType::kQ4_K, 512), Error);
  device.subgroup_least = 32;  // 32 or 64, and a shader may not say which
  CHECK(kernel("", DataType::kQ4_K, 512) == ProductKernel::kTiled);
  device.subgroup_most = 32;
  CHECK(vulkan::matrix_subgroup(device) == 0);
  CHECK(kernel("", DataType::kQ4_K, 512) == ProductKernel::kMatrix);
  CHECK(kernel("", DataType::kQ4_K, 8) == ProductKernel::kDot);
  CHECK(kernel("matrix", DataType::kQ4_K, 8) == ProductKernel::kVector);
  CHECK(kernel("dot,matrix", DataType::kQ4_K, 8) == ProductKernel::kDot);
  CHECK(kernel("dot,matrix", DataType::kQ4_K, 9) == ProductKernel::kMatrix);
  CHECK(kernel("plain", DataType::kQ4_K, 512) == ProductKernel::kTiled);
  CHECK(kernel("", DataType::kQ4_K, 512, true) == ProductKernel::kDot);
  // Of memory for a workgroup Vulkan promises 16 KiB.
  device.properties.limits.maxComputeSharedMemorySize = 16 << 10;
  CHECK(kernel("plain", DataType::kQ4_K, 512) == ProductKernel::kVector);
  CHECK(kernel("", DataType::kQ4_K, 512) == ProductKernel::kDot);
  CHECK_THROWS_AS(kernel("matrix", DataType::kQ4_K, 512), Error);
  CHECK_THROWS_AS(kernel("matrix-emulated", DataType::kQ4_K, 512), Error);
  device.properties.limits.maxComputeSharedMemorySize = 24 << 10;
  CHECK(kernel("", DataType::kQ4_K, 512) == ProductKernel::kTiled);
  device.properties.limits.maxComputeSharedMemorySize = 32 << 10;
  for (const DataType wide : {DataType::kF32, DataType::kBF16, DataType::kF16, DataType::kMXFP4}) {
    CHECK(kernel("", wide, 512) == ProductKernel::kTiled);
  }
}

TEST_CASE("a device with too few lanes or bindings is refused in one line") {
  PhysicalDevice device;
  device.name = "vulkan7";
  VkPhysicalDeviceLimits& limits = device.properties.limits;
  limits.maxComputeWorkGroupInvocations = limits.maxComputeWorkGroupSize[0] = 256;
  limits.maxPerStageDescriptorStorageBuffers = limits.maxDescriptorSetStorageBuffers = limits.maxPerStageResources = 8;
  vulkan::check_limits(device);
  limits.maxPerStageDescriptorStorageBuffers = 4;  // what Vulkan promises
  CHECK_THROWS_WITH_AS(vulkan::check_limits(device), doctest::Contains("found 256 and 4"), Error);
  limits.maxPerStageDescriptorStorageBuffers = 8;
  limits.maxComputeWorkGroupInvocations = 128;
  CHECK_THROWS_WITH_AS(vulkan::check_limits(device), doctest::Contains("found 128 and 8"), Error);
  for (const vulkan::Shader& shader : vulkan::all_shaders()) {
    CAPTURE(shader.name);
    const bool on_states = shader.name == "selective_scan" || shader.name == "delta_rule" || shader.name == "wkv";
    CHECK(vulkan::count_bindings(shader.code) <= (on_states ? int{vulkan::kStateBindings} : 7));
  }
  limits.maxPerStageDescriptorStorageBuffers = 11;
  CHECK_FALSE(vulkan::can_bind_states(device));
  limits.maxDescriptorSetStorageBuffers = limits.maxPerStageResources = 11;
  CHECK(vulkan::can_bind_states(device));
}

TEST_CASE("with the 16 KiB for a workgroup that Vulkan promises products come from other shaders") {
  const std::string name = device_name("little shared memory");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ4_K, 70, 512, 40);
  const std::unique_ptr<Device> small = create_vulkan_device(name, {.max_shared = 16 << 10}),
                                plain = create_vulkan_device(name, {.kernels = "plain"});
  const std::vector<float> few = multiply(*small, DataType::kQ4_K, p.n, p.k, p.weight, p.x, 40);
  CHECK(largest_difference(few, multiply(*plain, DataType::kQ4_K, p.n, p.k, p.weight, p.x, 40)) < 2e-5);
}

TEST_CASE("shaders ask for the size of subgroups where a driver would choose it") {
  PhysicalDevice device;
  device.properties.limits.maxComputeSharedMemorySize = 32 << 10;
  device.subgroup_arithmetic = device.integer_dot = device.integer_dot_fast = device.half_matrices = true;
  struct Case {
    uint32_t least, most, control, asked;
    bool matrices;
  };
  for (const Case& c : {Case{8, 32, 64, 16, true},     // Intel before Xe2
                        Case{16, 32, 64, 16, true},    // Xe2
                        Case{32, 64, 1024, 32, true},  // AMD since RDNA
                        Case{64, 64, 1024, 0, false},  // AMD before
                        Case{32, 32, 1024, 0, true},   // NVIDIA
                        Case{4, 8, 32, 8, false},      // a small one
                        Case{4, 8, 16, 0, false},      // 256 lanes are more than 16 subgroups
                        Case{8, 32, 0, 0, false}}) {   // it chooses, and cannot be asked
    CAPTURE(c.least);
    CAPTURE(c.most);
    CAPTURE(c.control);
    device.subgroup_least = c.least;
    device.subgroup_most = c.most;
    device.subgroup_control = c.control;
    const bool sure = c.asked != 0 || c.least == c.most;
    CHECK(vulkan::uses_subgroups(device, {}));
    CHECK(vulkan::reduction_subgroup(device, {}) == 0);  // the driver knows best
    CHECK(vulkan::reduction_subgroup(device, {.deterministic = true}) == c.asked);
    CHECK(vulkan::uses_subgroups(device, {.deterministic = true}) == sure);
    CHECK(product_features(device, {.deterministic = true}, "").dot == sure);
    CHECK(product_features(device, {}, "").matrices == c.matrices);
    if (c.matrices) CHECK(vulkan::matrix_subgroup(device) == 32);
  }
}

TEST_CASE("deterministic: sums over subgroups of a size that was asked for do not depend on the other rows") {
  const std::string test = "subgroups of a size that was asked for", name = device_name(test);
  if (name.empty()) return;
  // As if the driver chose: then shaders ask, where they may.
  const VulkanOptions options = {.deterministic = true, .subgroups_vary = true};
  const std::unique_ptr<Device> device = create_vulkan_device(name, options);
  if (device->description().find("(not used)") != std::string::npos) return test::skip(test, "a device without them");
  for (const DataType type : {DataType::kQ4_K, DataType::kF32}) check_rows_alone(*device, type);
  const std::unique_ptr<Device> dot = dot_device(test, options);
  if (dot) check_rows_alone(*dot, DataType::kQ6_K);
}

TEST_CASE("of the matrices that a device lists only 16 x 16 x 16 halves with F32 sums are taken") {
  VkCooperativeMatrixPropertiesNV good = {};
  good.MSize = good.NSize = good.KSize = 16;
  good.AType = good.BType = VK_COMPONENT_TYPE_FLOAT16_NV;
  good.CType = good.DType = VK_COMPONENT_TYPE_FLOAT32_NV;
  good.scope = VK_SCOPE_SUBGROUP_NV;
  VkCooperativeMatrixPropertiesNV half_sums = good, narrow = good, wide_scope = good;
  half_sums.CType = half_sums.DType = VK_COMPONENT_TYPE_FLOAT16_NV;
  narrow.NSize = 8;
  wide_scope.scope = VK_SCOPE_WORKGROUP_NV;
  CHECK_FALSE(vulkan::has_half_matrices({}));
  CHECK_FALSE(vulkan::has_half_matrices(std::array{half_sums, narrow, wide_scope}));
  CHECK(vulkan::has_half_matrices(std::array{half_sums, good}));
}

TEST_CASE("all shaders are valid SPIR-V, those that no device here runs too") {
  if (std::system("spirv-val --version >/dev/null 2>&1") != 0) {
    test::skip("valid SPIR-V", "no spirv-val (package spirv-tools)");
    return;
  }
  const std::filesystem::path file = std::filesystem::temp_directory_path() / concat("infer_shader_", getpid(), ".spv");
  for (const vulkan::Shader& shader : vulkan::all_shaders()) {
    CAPTURE(shader.name);
    const std::vector<uint32_t> reduced = vulkan::without_inf_nan_preserve(shader.code);
    for (const std::span<const uint32_t> code : {shader.code, std::span<const uint32_t>(reduced)}) {
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(code.data()), static_cast<std::streamsize>(code.size_bytes()));
      CHECK(std::system(concat("spirv-val --target-env vulkan1.2 ", file.string()).c_str()) == 0);
    }
  }
  std::filesystem::remove(file);
}

TEST_CASE("matrices of halves, spelled out: as exact as halves are, activations of any size") {
  const std::string name = device_name("products of halves");
  if (name.empty()) return;
  const std::unique_ptr<Device> a = create_vulkan_device(name, {.kernels = "matrix-emulated"}),
                                b = create_vulkan_device(name, {.kernels = "plain"});
  CHECK(a->description().find("faulty") == std::string::npos);
  for (const TypeTraits& t : all_types()) {
    if (!t.dot || t.activation == ActivationFormat::kF32 || t.type == DataType::kMXFP4) continue;
    CAPTURE(t.name);
    REQUIRE(vulkan::find_shader(concat("matmul_matrix.", t.name)));
    // Beyond 65504 and below 2^-24 no half is.
    for (const float size : {1.0f, 1e6f, 1e-12f}) {
      CAPTURE(size);
      Problem p = problem(t.type, 70, 256, 67);
      for (float& v : p.x) v *= size;
      const double off = largest_difference(multiply(*a, t.type, p.n, p.k, p.weight, p.x, 67),
                                            multiply(*b, t.type, p.n, p.k, p.weight, p.x, 67));
      CHECK(off / size < 256 * 0.25 * 0x1p-10);  // every product is off by two roundings at most
      CHECK(off > 0);
    }
  }
}

TEST_CASE("a device with faulty matrices reports them and multiplies without them") {
  const std::string name = device_name("wrong matrices");
  if (name.empty()) return;
  const std::unique_ptr<Device> a = create_vulkan_device(name, {.emulated_matrices = true, .fail_matrices = true}),
                                b = create_vulkan_device(name, {.kernels = "plain"});
  CHECK(a->description().find("faulty fp16 matrices") != std::string::npos);
  // Asked for by name, as the conformance cases do, they are an error.
  CHECK_THROWS_WITH_AS(create_vulkan_device(name, {.fail_matrices = true, .kernels = "matrix-emulated"}),
                       doctest::Contains("expected correct fp16 matrices"), Error);
  const Problem p = problem(DataType::kQ4_K, 20, 256, 40);
  CHECK(multiply(*a, DataType::kQ4_K, p.n, p.k, p.weight, p.x, 40) ==
        multiply(*b, DataType::kQ4_K, p.n, p.k, p.weight, p.x, 40));
}

TEST_CASE("reductions add all lanes, whatever the size of a subgroup") {
  const std::string name = device_name("sizes of subgroups");
  if (name.empty()) return;
  const Problem p = problem(DataType::kQ6_K, 21, 1280, 5);
  const std::vector<float> expected =
      multiply(*create_vulkan_device(name), DataType::kQ6_K, p.n, p.k, p.weight, p.x, 5);
  const auto norm = [](Graph& g, const Weight& x, const Weight&) { return g.rms_norm(g.weight(x), nullptr, 1e-5f); };
  const std::vector<float> normed = multiply(*create_vulkan_device(name), DataType::kQ6_K, p.k, p.k, {}, p.x, 5, norm);
  for (const bool arithmetic : {true, false}) {
    for (const uint32_t size : {1u, 4u, 8u, 16u, 32u, 64u, 128u}) {
      CAPTURE(arithmetic);
      CAPTURE(size);
      const std::unique_ptr<Device> device =
          create_vulkan_device(name, {.subgroup_arithmetic = arithmetic, .subgroup_size = size});
      CHECK(largest_difference(multiply(*device, DataType::kQ6_K, p.n, p.k, p.weight, p.x, 5), expected) < 2e-5);
      CHECK(largest_difference(multiply(*device, DataType::kQ6_K, p.k, p.k, {}, p.x, 5, norm), normed) < 2e-6);
    }
  }
}

TEST_CASE("products of quantized activations are those of the CPU but for roundings of floats") {
  for (const TypeTraits& t : all_types()) {
    if (!t.dot || t.activation == ActivationFormat::kF32) continue;
    CAPTURE(t.name);
    REQUIRE(vulkan::find_shader(concat("matmul_dot.", t.name)));
    const std::unique_ptr<Device> device = dot_device("int8 products");
    if (!device) return;
    const Problem p = problem(t.type, 37, 768, 5);
    const std::vector<float> expected = by_formula(t.type, p, 5);
    // Without the rounding to int8 the results differ by some 1e-2.
    CHECK(largest_difference(multiply(*device, t.type, p.n, p.k, p.weight, p.x, 5), expected) < 2e-5);
    const std::unique_ptr<Device> other = create_vulkan_device(device->name(), {.kernels = "plain"});
    CHECK(largest_difference(multiply(*other, t.type, p.n, p.k, p.weight, p.x, 5), expected) > 1e-4);
  }
}

TEST_CASE("deterministic: with quantized activations too a row alone has the bits it has among others") {
  const std::unique_ptr<Device> device = dot_device("deterministic int8 products", {.deterministic = true});
  if (!device) return;
  for (const DataType type : {DataType::kQ4_K, DataType::kQ6_K, DataType::kQ8_0}) check_rows_alone(*device, type);
}

TEST_CASE("activations that take the place of others are quantized again") {
  const std::unique_ptr<Device> device = dot_device("quantized again");
  if (!device) return;
  // Of two products in a row the second reads what lies where the first one's activations were.
  const auto twice = [](Graph& g, const Weight& x, const Weight& weight) {
    const ValueId y = g.matmul(g.scale(g.weight(x), 0.5f), weight);
    return g.matmul(g.scale(y, 0.5f), weight);
  };
  const Problem p = problem(DataType::kQ8_0, 256, 256, 3);
  Problem second = p;
  second.x = by_formula(DataType::kQ8_0, p, 3);
  for (float& v : second.x) v *= 0.25f;
  const std::vector<float> expected = by_formula(DataType::kQ8_0, second, 3);
  double size = 0;
  for (const float v : expected) size = std::max(size, std::abs(static_cast<double>(v)));
  const std::vector<float> found = multiply(*device, DataType::kQ8_0, p.n, p.k, p.weight, p.x, 3, twice);
  CHECK(largest_difference(found, expected) < 0.02 * size);
}
