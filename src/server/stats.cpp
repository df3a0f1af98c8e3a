#include "src/server/stats.h"

#include "src/server/json_object.h"

namespace infer {
namespace {

Json placement_json(const Placement& placement, const std::vector<DeviceUse>& devices) {
  const auto name = [&](int device) { return devices[static_cast<size_t>(device)].device; };
  Json layers = Json::array();
  for (const LayerRange& range : placement.ranges()) {
    layers.push_back(json_object("first", range.first, "last", range.last, "device", name(range.device)));
  }
  return json_object("embedding", name(placement.input), "layers", std::move(layers), "output", name(placement.output));
}

Json device_json(const DeviceUse& use) {
  Json json;
  json["device"] = use.device;
  json["layers"] = use.n_layers;
  json["weights"] = use.weights;
  json["weights_of_other_layers"] = use.guest_weights;
  json["weights_mapped"] = use.is_host;
  json["kv_cache"] = use.cache;
  json["activations"] = use.activations;
  json["staging"] = use.staging;
  json["needed"] = use.needed();
  json["free_before"] = use.memory.free;
  json["total"] = use.memory.total;
  return json;
}

Json blocks_json(const CacheGauges& blocks) {
  return json_object("total", blocks.total, "used", blocks.used, "cached", blocks.cached, "free", blocks.free);
}

}  // namespace

Json stats_json(const Placement& placement, const std::vector<DeviceUse>& devices, const EngineGauges& gauges) {
  Json json;
  json["placement"] = placement_json(placement, devices);
  json["devices"] = Json::array();
  for (const DeviceUse& use : devices) json["devices"].push_back(device_json(use));
  json["fallbacks"] = Json::array();
  for (const FallbackGauge& f : gauges.fallbacks) {
    json["fallbacks"].push_back(json_object("operation", f.text, "runs", f.runs));
  }
  json["requests"] = json_object("running", gauges.running, "waiting", gauges.waiting);
  json["kv_blocks"] = blocks_json(gauges.cache());
  json["cache_groups"] = Json::array();
  for (const auto& [kind, group] : gauges.cache_groups) {
    Json entry = json_object("kind", kind);
    entry.update(blocks_json(group));
    entry["evictions"] = group.evictions;
    json["cache_groups"].push_back(std::move(entry));
  }
  json["steps"] = gauges.steps;
  return json;
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
