#include "backends/registry.h"

#include <algorithm>

#ifdef INFER_BLAS
#include "backends/blas/blas_device.h"
#endif
#include "backends/cpu/cpu_device.h"
#ifdef INFER_CUDA
#include "backends/cuda/cuda_device.h"
#endif
#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#ifdef INFER_VULKAN
#include "backends/vulkan/vulkan_device.h"
#endif

namespace infer {
namespace {

#ifdef INFER_BLAS
std::unique_ptr<Device> with_blas(std::unique_ptr<Device> cpu, const DeviceOptions& options) {
  // Measured with infer bench --blas: our AVX-512 kernels are slower only for large matmuls with F32 weights, our AVX2
  // kernels for all large ones.
  const bool avx512 = cpu_levels().back().starts_with("avx512");
  BlasOptions blas;
  blas.min_rows_f32 = avx512 ? 256 : 64;
  blas.min_rows_converted = avx512 ? kNeverBlas : 64;
  if (options.blas_min_rows > 0) blas.min_rows_f32 = blas.min_rows_converted = options.blas_min_rows;
  // Large matmuls occur in prompts, so OpenBLAS uses their number of threads.
  blas.n_threads = options.n_threads_batch > 0 ? options.n_threads_batch : options.n_threads;
  if (blas.n_threads <= 0) blas.n_threads = physical_cores();
  return create_blas_device(std::move(cpu), blas);
}
#else
std::unique_ptr<Device> with_blas(std::unique_ptr<Device>, const DeviceOptions&) {
  throw Error(ErrorCode::kUnsupported, "[blas] expected a program built with INFER_BLAS, found one built without it");
}
#endif

[[maybe_unused]] [[noreturn]] void refuse_absent(const std::string& name, std::string_view backend) {
  throw Error(ErrorCode::kUnsupported, concat("[", name, "] This program was built without ", backend,
                                              ". Build it again where there is a driver, or use another device."));
}

bool is_numbered(const std::string& name, std::string_view kind) {
  return name.starts_with(kind) && name.find_first_not_of("0123456789", kind.size()) == std::string::npos;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names = {"cpu", "ref"};
#ifdef INFER_CUDA
  for (std::string& name : cuda_device_names()) names.push_back(std::move(name));
#endif
#ifdef INFER_VULKAN
  for (std::string& name : vulkan_device_names()) names.push_back(std::move(name));
#endif
  return names;
}

std::string default_accelerator() {
#ifdef INFER_CUDA
  if (const std::string gpu = first_cuda_gpu(); !gpu.empty()) return gpu;
#endif
#ifdef INFER_VULKAN
  return first_vulkan_gpu();
#else
  return "";
#endif
}

std::string device_card([[maybe_unused]] const std::string& name) {
  std::string card;
#ifdef INFER_CUDA
  card = cuda_card(name);
#endif
#ifdef INFER_VULKAN
  if (card.empty()) card = vulkan_card(name);
#endif
  return card;
}

std::vector<std::string> device_problems() {
#ifdef INFER_CUDA
  return cuda_problems();
#else
  return {};
#endif
}

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "cpu") {
    auto cpu = create_cpu_device({options.n_threads, "", options.n_threads_batch, options.processors});
    return options.blas ? with_blas(std::move(cpu), options) : std::move(cpu);
  }
  if (name == "ref") return create_ref_device();
  const std::vector<std::string> names = device_names();
  const bool is_cuda = is_numbered(name, "cuda"), is_vulkan = is_numbered(name, "vulkan");
#ifdef INFER_CUDA
  if (is_cuda && std::find(names.begin(), names.end(), name) != names.end()) {
    CudaOptions cuda;
    cuda.deterministic = options.deterministic;
    return create_cuda_device(name, cuda);
  }
  if (is_cuda) {
    if (const std::string problem = cuda_problem(name); !problem.empty()) throw Error(ErrorCode::kUnsupported, problem);
  }
#else
  if (is_cuda) refuse_absent(name, "CUDA");
#endif
#ifdef INFER_VULKAN
  if (is_vulkan && std::find(names.begin(), names.end(), name) != names.end()) {
    VulkanOptions vulkan;
    vulkan.deterministic = options.deterministic;
    return create_vulkan_device(name, vulkan);
  }
#else
  if (is_vulkan) refuse_absent(name, "Vulkan");
#endif
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  throw Error(ErrorCode::kInvalidArgument, concat("[device] expected one of ", known, ", found ", name));
}

std::string blas_description() {
#ifdef INFER_BLAS
  return openblas_description();
#else
  return "";
#endif
}

std::vector<std::string> cpu_level_names() { return cpu_levels(); }

}  // namespace infer
