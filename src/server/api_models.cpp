// GET /v1/models and /v1/models/NAME: the model that is served.
#include <string_view>

#include "ggml-like/error.h"
#include "src/server/api.h"
#include "src/server/responses.h"

namespace infer {
namespace {

constexpr char kListPath[] = "/v1/models";
constexpr char kOnePath[] = "/v1/models/";

Json model_json(const ServedModel& served) {
  const Model& model = served.engine->model();
  return {{"id", served.name},
          {"object", "model"},
          {"created", served.created},
          {"owned_by", "infer"},
          {"meta",
           {{"architecture", model.architecture()},
            {"quantization", served.quantization},
            {"n_params", model.parameter_count()},
            {"size", model.weight_bytes()},
            {"n_vocab", model.n_vocab()},
            {"n_embd", model.n_embd()},
            {"n_ctx", served.engine->context()},
            {"n_ctx_train", model.context_length()}}}};
}

void list_models(Api& api, const CallPtr& call) {
  call->response.body = json_text({{"object", "list"}, {"data", Json::array({model_json(api.model())})}});
}

void show_model(Api& api, const CallPtr& call) {
  if (call->request.head.path.substr(std::string_view(kOnePath).size()) != api.model().name) {
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
