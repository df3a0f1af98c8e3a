#include "backends/cuda/gpus.h"

#include <algorithm>
#include <charconv>

#include "ggml-like/error.h"

namespace infer::cuda {
namespace {

constexpr std::string_view kArchitectures = INFER_CUDA_ARCHITECTURES;

// One entry of the list of architectures.
bool entry_runs_on(std::string_view entry, int capability) {
  const bool real = entry.ends_with("-real"), virtual_only = entry.ends_with("-virtual");
  int built = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), built);
  if (error != std::errc()) return true;
  const char suffix = end < entry.data() + entry.size() ? *end : '-';
  if (suffix == 'a') return built == capability;  // for this capability only, also as PTX
  const bool same_family = built / 10 == capability / 10 && built <= capability;
  if (suffix == 'f') return same_family;
  return (same_family && !virtual_only) || (built <= capability && !real);
}

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

// Explains why the runtime finds no device.
void explain(cudaError_t error, Gpus& gpus) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  gpus.none_expected = error == cudaErrorNoDevice || driver == 0;
  if (driver == 0) {
    gpus.problem = "There is no NVIDIA driver. Install one, or use another device.";
  } else if (error == cudaErrorNoDevice) {
    gpus.problem = "The NVIDIA driver finds no GPU. Check CUDA_VISIBLE_DEVICES, or use another device.";
  } else if (error == cudaErrorInsufficientDriver) {
    gpus.problem = concat("The NVIDIA driver supports CUDA ", version_text(driver), "; this program needs ",
                          version_text(runtime / 1000 * 1000), " or later. Update the driver, or use another device.");
  } else {
    gpus.problem = concat("The NVIDIA driver does not work: ", cudaGetErrorString(error), ".");
  }
}

std::string problem_of(const cudaDeviceProp& p) {
  if (runs_on(kArchitectures, p.major, p.minor)) return "";
  const bool can_be_built = p.major * 10 + p.minor >= 75;
  return concat(p.name, " has compute capability ", p.major, ".", p.minor, "; ",
                can_be_built ? concat("this program was built for ", kArchitectures,
                                      ". Build it with -DCMAKE_CUDA_ARCHITECTURES=", p.major * 10 + p.minor)
                             : std::string("the program needs at least 7.5. Use another device"),
                ".");
}

Gpus ask_driver() {
  Gpus gpus;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    explain(error == cudaSuccess ? cudaErrorNoDevice : error, gpus);
    cudaGetLastError();
    return gpus;
  }
  for (int i = 0; i < count; ++i) {
    Gpu gpu = {i, concat("cuda", i), {}, ""};
    const cudaError_t error = cudaGetDeviceProperties(&gpu.properties, i);
    cudaGetLastError();
    gpu.problem = error == cudaSuccess ? problem_of(gpu.properties)
                                       : concat("cudaGetDeviceProperties failed: ", cudaGetErrorString(error), ".");
    gpus.all.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace

bool runs_on(std::string_view architectures, int major, int minor) {
  while (!architectures.empty()) {
    const size_t end = std::min(architectures.find(','), architectures.size());
    if (entry_runs_on(architectures.substr(0, end), major * 10 + minor)) return true;
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
  }
  return false;
}

const Gpus& find_gpus() {
  static const Gpus gpus = ask_driver();
  return gpus;
}

}  // namespace infer::cuda
