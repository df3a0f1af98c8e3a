// The body of /stats: where the parts of the model are, their memory on each device, and the engine's state. Pure
// functions; any thread.
#pragma once

#include <vector>

#include "src/engine/model_runner.h"
#include "src/server/json_fields.h"
#include "src/server/metrics.h"

namespace infer {

// `draft`: the bytes a draft model takes on each device; empty without a draft.
Json stats_json(const Placement& placement, const std::vector<DeviceUse>& devices, const std::vector<uint64_t>& draft,
                const EngineGauges& gauges);

// The same data per device, for /metrics.
std::vector<DeviceGauges> device_gauges(const std::vector<DeviceUse>& devices, const std::vector<uint64_t>& draft);

}  // namespace infer
