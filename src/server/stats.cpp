#include "src/server/stats.h"

namespace infer {

Json stats_json(const Placement& placement, const std::vector<DeviceUse>& devices, const EngineGauges& gauges) {
  const auto name = [&](int device) { return devices[static_cast<size_t>(device)].device; };
  Json layers = Json::array();
  for (const LayerRange& range : placement.ranges()) {
    layers.push_back({{"first", range.first}, {"last", range.last}, {"device", name(range.device)}});
  }
  Json list = Json::array();
  for (const DeviceUse& use : devices) {
    list.push_back({{"device", use.device},
                    {"layers", use.n_layers},
                    {"weights", use.weights},
                    {"weights_of_other_layers", use.guest_weights},
                    {"weights_mapped", use.is_host},
                    {"kv_cache", use.cache},
                    {"activations", use.activations},
                    {"staging", use.staging},
                    {"needed", use.needed()},
                    {"free_before", use.memory.free},
                    {"total", use.memory.total}});
  }
  Json fallbacks = Json::array();
  for (const FallbackGauge& f : gauges.fallbacks) fallbacks.push_back({{"operation", f.text}, {"runs", f.runs}});
  const CacheGauges all = gauges.cache();
  Json groups = Json::array();
  for (const auto& [kind, group] : gauges.cache_groups) {
    groups.push_back({{"kind", kind},
                      {"total", group.total},
                      {"used", group.used},
                      {"cached", group.cached},
                      {"free", group.free},
                      {"evictions", group.evictions}});
  }
  return {{"placement", {{"embedding", name(placement.input)}, {"layers", layers}, {"output", name(placement.output)}}},
          {"devices", list},
          {"fallbacks", fallbacks},
          {"requests", {{"running", gauges.running}, {"waiting", gauges.waiting}}},
          {"kv_blocks", {{"total", all.total}, {"used", all.used}, {"cached", all.cached}, {"free", all.free}}},
          {"cache_groups", groups},
          {"steps", gauges.steps}};
}

std::vector<DeviceGauges> device_gauges(const std::vector<DeviceUse>& devices) {
  std::vector<DeviceGauges> gauges;
  for (const DeviceUse& use : devices) {
    gauges.push_back({use.device,
                      use.n_layers,
                      {{"weights", use.weights},
                       {"kv_cache", use.cache},
                       {"activations", use.activations},
                       {"staging", use.staging}}});
  }
  return gauges;
}

}  // namespace infer
