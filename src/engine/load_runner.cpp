#include "src/engine/load_runner.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer {
namespace {

bool only_cpu(const DeviceSet& set) {
  return std::all_of(set.of_layers.begin(), set.of_layers.end(), [](int device) { return device == 0; });
}

// The number of parts on devices other than the CPU, which a retry can reduce.
int moved_parts(const Model& model, const RunnerOptions& options) {
  const int most = placeable_parts(model.n_layer()), asked = options.placement.n_gpu_layers;
  if (only_cpu(*options.devices)) return 0;
  return asked == kAllLayers ? most : std::min(asked, most);
}

// Returns null if a device other than the host is short of memory and offloading fewer parts may help. `reason` keeps
// the first failure.
std::unique_ptr<ModelRunner> try_to_load(const std::shared_ptr<const Model>& model, const RunnerOptions& options,
                                         bool may_fail, std::string& reason) {
  try {
    return std::make_unique<ModelRunner>(model, options);
  } catch (const Error& error) {
    const auto* of_device = dynamic_cast<const DeviceMemoryError*>(&error);
    const bool fewer_help = error.code() == ErrorCode::kOutOfMemory && !(of_device && of_device->on_host());
    if (!fewer_help || !may_fail) throw;
    if (reason.empty()) reason = error.what();
    return nullptr;
  }
}

}  // namespace

uint64_t usable_memory(uint64_t free, uint64_t reserved) {
  const uint64_t margin = std::min(free / 10, uint64_t{512} << 20);
  return reserved < free - margin ? free - margin - reserved : 0;
}

std::string shortage_of(std::span<const DeviceUse> uses, std::span<const uint64_t> reserved) {
  for (size_t d = 1; d < uses.size(); ++d) {
    const uint64_t others = d < reserved.size() ? reserved[d] : 0;
    const uint64_t usable = usable_memory(uses[d].memory.free, others);
    if (uses[d].needed() <= usable) continue;
    return concat(bytes_text(uses[d].needed()), " of the ", bytes_text(usable), " that ", uses[d].device, " has free",
                  others > 0 ? " beside the draft" : "", " less a margin");
  }
  return "";
}

Fit fit_parts(const std::shared_ptr<const Model>& model, RunnerOptions options, std::span<const uint64_t> reserved) {
  if (only_cpu(*options.devices)) return {kAllLayers, ""};
  const auto shortage = [&](int parts) -> std::string {
    options.placement.n_gpu_layers = parts;
    try {
      const std::string found = shortage_of(plan_memory_use(model, options), reserved);
      return found.empty() ? "" : "one more would need " + found;
    } catch (const Error& error) {  // planning itself allocates a little, for the operation tables
      if (error.code() != ErrorCode::kOutOfMemory) throw;
      return concat("with one more: ", error.what());
    }
  };
  Fit fit;
  int high = placeable_parts(model->n_layer());
  while (fit.parts < high) {
    const int middle = fit.parts + (high - fit.parts + 1) / 2;
    std::string found = shortage(middle);
    if (found.empty()) {
      fit.parts = middle;
    } else {
      high = middle - 1;
      fit.shortage = std::move(found);  // the last one found is for one part more than fits
    }
  }
  return fit;
}

std::unique_ptr<ModelRunner> load_runner(std::shared_ptr<const Model> model, const RunnerOptions& options,
                                         const std::function<void(const std::string& line)>& note) {
  const int asked = moved_parts(*model, options);
  RunnerOptions tried = options;
  std::string reason;  // the first failure
  for (int parts = asked;; --parts) {
    if (parts < asked) tried.placement.n_gpu_layers = parts;
    std::unique_ptr<ModelRunner> runner = try_to_load(model, tried, parts > 0, reason);
    if (!runner) continue;
    if (parts == asked) return runner;
    std::string names;
    for (const int d : options.devices->of_layers) {
      if (d != 0) names += (names.empty() ? "" : ", ") + options.devices->devices[static_cast<size_t>(d)]->name();
    }
    const std::string line = concat("[offload] -ngl ", asked, " on ", names, ": found memory for ", parts,
                                    parts == 1 ? " layer (" : " layers (", reason, ")");
    if (options.strict_offload) throw Error(ErrorCode::kOutOfMemory, line);
    if (note) note(line);
    return runner;
  }
}

std::string fallback_text(const Fallback& f) {
  return concat(op_info(f.op).name, " of ", traits(f.type).name, " in ", layers_text(f.first_layer, f.last_layer),
                " has no kernel on ", f.device, " and runs on the CPU");
}

}  // namespace infer
