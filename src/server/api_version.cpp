// GET /version: the program, the model and the flags it was started with.
#include "src/server/api.h"
#include "src/server/responses.h"

namespace infer {
namespace {

void report_version(Api& api, const CallPtr& call) {
  Json body;
  body["version"] = api.options().version;
  if (api.ready()) {
    const ServedModel& model = api.model();
    body["model"] = model.name;
    body["fingerprint"] = model.fingerprint;
    body["quantization"] = model.quantization;
    body["architecture"] = model.engine->model().architecture();
    body["context"] = model.engine->context();
  }
  body["flags"] = api.options().settings;
  call->response.body = json_text(body);
}

}  // namespace

Endpoint version_endpoint() {
  return {.method = "GET", .path = "/version", .run = report_version, .needs_model = false};
}

}  // namespace infer
