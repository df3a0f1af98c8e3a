#include "backends/registry.h"

#include "backends/cpu/cpu_device.h"
#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"

namespace infer {

std::vector<std::string> device_names() { return {"cpu", "ref"}; }

std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options) {
  if (name == "cpu") return create_cpu_device({options.n_threads, "", options.n_threads_batch, options.processors});
  if (name == "ref") return create_ref_device();
  std::string known;
  for (const std::string& n : device_names()) known += (known.empty() ? "" : ", ") + n;
  throw Error(ErrorCode::kInvalidArgument, concat("[device] one of ", known, ", found ", name));
}

std::vector<std::string> cpu_level_names() { return cpu_levels(); }

}  // namespace infer
