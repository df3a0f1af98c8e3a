// POST /v1/embeddings: a vector of unit length for each input.
#include <utility>

#include "ggml-like/error.h"
#include "src/engine/pooling.h"
#include "src/server/answering.h"
#include "src/server/responses.h"

namespace infer {
namespace {

std::vector<TokenId> encode_input(const ServedModel& model, const Prompt& input) {
  const auto* text = std::get_if<std::string>(&input);
  if (!text) return std::get<std::vector<TokenId>>(input);
  check_prompt_text(model, *text, "input");
  return model.engine->tokenizer().encode(*text, true, false);
}

// The pooling of the request, or else of the server's options, or else of the model.
Pooling choose_pooling(const ServedModel& model, const EmbeddingRequest& request, const ApiOptions& options) {
  const Pooling own = model.engine->model().config().pooling;
  const Pooling chosen = request.pooling.value_or(options.pooling.value_or(own));
  if (chosen != Pooling::kRank) return chosen;
  throw invalid_parameter("pooling",
                          "this model ranks texts and has no pooling of its own; choose one of mean, last, cls");
}

void embed_inputs(Api& api, const CallPtr& call) {
  const ServedModel& model = api.model();
  const EmbeddingRequest request = parse_embedding_request(api.body_of(*call), api.request_context());
  const int n_embd = model.engine->model().n_embd();
  const int64_t dimensions = request.dimensions.value_or(n_embd);
  if (dimensions > n_embd) {
    throw unexpected_value("dimensions", concat("at most ", n_embd, ", the model's own"), concat(dimensions));
  }
  const Pooling pooling = choose_pooling(model, request, api.options());
  GenerationParams params = request.generation;
  params.sampling = api.options().sampling;
  params.max_tokens = 0;
  GenerationRun generations(*model.engine);
  std::vector<std::vector<TokenId>> inputs;
  for (const Prompt& input : request.inputs) inputs.push_back(encode_input(model, input));
  for (std::vector<TokenId>& input : inputs) {
    auto generation = make_generation(api, *call, std::move(input), params, "input");
    generation->pooling = pooling;
    generations.add(std::move(generation));
  }
  Api::release_input(*call);
  generations.start(api.admission());
  std::vector<std::vector<float>> vectors(request.inputs.size());
  int64_t n_tokens = 0;
  generations.run(api.watch(*call), [&](AnswerEvent&& event) {
    n_tokens += event.prompt_tokens;
    event.embedding.resize(static_cast<size_t>(dimensions));
    normalize(event.embedding, 2);
    vectors[static_cast<size_t>(event.choice)] = std::move(event.embedding);
  });
  call->log["prompt_tokens"] = n_tokens;
  call->response.body = json_text(embedding_response(model.name, vectors, request.base64, n_tokens));
}

}  // namespace

Endpoint embeddings_endpoint() { return {.method = "POST", .path = "/v1/embeddings", .run = embed_inputs}; }

}  // namespace infer
