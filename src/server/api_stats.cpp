// GET /stats: where the model is placed, and the engine's state.
#include "src/server/api.h"
#include "src/server/responses.h"
#include "src/server/stats.h"

namespace infer {
namespace {

void report_stats(Api& api, const CallPtr& call) {
  const EngineThread& engine = *api.model().engine;
  Json body;
  body["model"] = api.model().name;
  body.update(stats_json(engine.placement(), engine.memory_use(), engine.draft_memory(), api.metrics().gauges()));
  call->response.body = json_text(body);
}

}  // namespace

Endpoint stats_endpoint() { return {.method = "GET", .path = "/stats", .run = report_stats}; }

}  // namespace infer
