// GET /health: whether the server accepts requests.
#include "src/server/api.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

void report_health(Api& api, const CallPtr& call) {
  const bool serves = api.ready() && !api.draining();
  call->response.status = serves ? 200 : 503;
  call->response.body = json_text(json_object("status", serves ? "ok" : api.draining() ? "stopping" : "loading"));
}

}  // namespace

Endpoint health_endpoint() {
  return {.method = "GET",
          .path = "/health",
          .run = report_health,
          .needs_key = false,
          .needs_model = false,
          .quiet = true};
}

}  // namespace infer
