// GET /metrics: counters and gauges in Prometheus' text format.
#include "src/server/api.h"

namespace infer {
namespace {

void report_metrics(Api& api, const CallPtr& call) {
  call->response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  call->response.body = api.metrics().text();
}

}  // namespace

Endpoint metrics_endpoint() {
  return {.method = "GET",
          .path = "/metrics",
          .run = report_metrics,
          .needs_model = false,
          .quiet = true,
          .enabled = [](const ApiOptions& options) { return options.serve_metrics; }};
}

}  // namespace infer
