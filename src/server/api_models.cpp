// GET /v1/models and /v1/models/NAME: the model that is served.
#include <algorithm>
#include <string_view>

#include "ggml-like/error.h"
#include "src/server/api.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

constexpr char kListPath[] = "/v1/models";
constexpr char kOnePath[] = "/v1/models/";

Json model_json(const ServedModel& served) {
  const Model& model = served.engine->model();
  Json meta;
  meta["architecture"] = model.architecture();
  meta["quantization"] = served.quantization;
  meta["n_params"] = model.parameter_count();
  meta["size"] = model.weight_bytes();
  meta["n_vocab"] = model.n_vocab();
  meta["n_embd"] = model.n_embd();
  meta["n_ctx"] = served.engine->context();
  meta["n_ctx_train"] = model.context_length();
  return json_object("id", served.name, "object", "model", "created", served.created, "owned_by", "infer", "meta",
                     std::move(meta));
}

void list_models(Api& api, const CallPtr& call) {
  call->response.body = json_text(json_object("object", "list", "data", Json::array({model_json(api.model())})));
}

void show_model(Api& api, const CallPtr& call) {
  const std::string_view asked = std::string_view(call->request.head.path).substr(std::string_view(kOnePath).size());
  const std::vector<std::string>& aliases = api.model().aliases;
  if (asked != api.model().name && std::find(aliases.begin(), aliases.end(), asked) == aliases.end()) {
    throw ApiError(404, "invalid_request_error",
                   concat("There is no such model. This server has ", api.model().name, "."), "model_not_found",
                   "model");
  }
  call->response.body = json_text(model_json(api.model()));
}

}  // namespace

Endpoint models_endpoint() { return {.method = "GET", .path = kListPath, .run = list_models}; }
Endpoint model_endpoint() { return {.method = "GET", .path = kOnePath, .run = show_model}; }

}  // namespace infer
