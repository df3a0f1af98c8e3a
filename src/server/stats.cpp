#include "src/server/stats.h"

#include <cmath>

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

Json groups_json(const std::vector<CacheGroupGauges>& groups) {
  Json list = Json::array();
  for (const auto& [kind, group] : groups) {
    Json entry = json_object("kind", kind);
    entry.update(blocks_json(group));
    entry["evictions"] = group.evictions;
    list.push_back(std::move(entry));
  }
  return list;
}

Json drafts_json(const DraftGauges& drafts) {
  const auto ratio = [](int64_t a, int64_t b) {
    return b > 0 ? Json(std::round(1000 * static_cast<double>(a) / static_cast<double>(b)) / 1000) : Json();
  };
  const DraftCounts& counts = drafts.counts;
  Json json = json_object("drafted", counts.proposed, "accepted", counts.accepted);
  json["acceptance"] = ratio(counts.accepted, counts.proposed);
  json["mean_depth"] = ratio(counts.proposed, counts.verifications);
  json["tokens_per_step"] = ratio(drafts.decode_tokens, drafts.decode_rounds);
  json["draft_cache_groups"] = groups_json(drafts.cache_groups);
  return json;
}

}  // namespace

Json stats_json(const Placement& placement, const std::vector<DeviceUse>& devices, const std::vector<uint64_t>& draft,
                const EngineGauges& gauges) {
  Json json;
  json["placement"] = placement_json(placement, devices);
  json["devices"] = Json::array();
  for (size_t d = 0; d < devices.size(); ++d) {
    json["devices"].push_back(device_json(devices[d]));
    if (!draft.empty()) json["devices"].back()["draft"] = draft[d];
  }
  json["fallbacks"] = Json::array();
  for (const FallbackGauge& f : gauges.fallbacks) {
    json["fallbacks"].push_back(json_object("operation", f.text, "runs", f.runs));
  }
  json["requests"] = json_object("running", gauges.running, "waiting", gauges.waiting);
  json["kv_blocks"] = blocks_json(gauges.cache());
  json["cache_groups"] = groups_json(gauges.cache_groups);
  json["steps"] = gauges.steps;
  if (gauges.drafts) json["speculation"] = drafts_json(*gauges.drafts);
  return json;
}

std::vector<DeviceGauges> device_gauges(const std::vector<DeviceUse>& devices, const std::vector<uint64_t>& draft) {
  std::vector<DeviceGauges> gauges;
  for (size_t d = 0; d < devices.size(); ++d) {
    const DeviceUse& use = devices[d];
    gauges.push_back({use.device,
                      use.n_layers,
                      {{"weights", use.weights},
                       {"kv_cache", use.cache},
                       {"activations", use.activations},
                       {"staging", use.staging}}});
    if (!draft.empty()) gauges.back().bytes.emplace_back("draft", draft[d]);
  }
  return gauges;
}

}  // namespace infer
