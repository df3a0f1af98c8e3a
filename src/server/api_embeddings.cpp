// POST /v1/embeddings: a vector of unit length for each input.
#include <cmath>
#include <utility>

#include "ggml-like/error.h"
#include "src/server/answering.h"
#include "src/server/responses.h"

namespace infer {
namespace {

// The vector divided by its Euclidean length; a zero vector is unchanged.
std::vector<float> unit_length(std::vector<float> vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * x;
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (float& x : vector) x = static_cast<float>(x * scale);
  return vector;
}

std::vector<TokenId> encode_input(const ServedModel& model, const Prompt& input) {
  const auto* text = std::get_if<std::string>(&input);
  if (!text) return std::get<std::vector<TokenId>>(input);
  check_prompt_text(model, *text, "input");
  return model.engine->tokenizer().encode(*text, true, false);
}

void run(Api& api, const CallPtr& call) {
  const ServedModel& model = api.model();
  const EmbeddingRequest request = parse_embedding_request(api.body_of(*call), api.request_context());
  const int n_embd = model.engine->model().n_embd();
  const int64_t dimensions = request.dimensions.value_or(n_embd);
  if (dimensions > n_embd) {
    throw unexpected_value("dimensions", concat("at most ", n_embd, ", the model's own"), concat(dimensions));
  }
  GenerationParams params = request.generation;
  params.sampling = api.options().sampling;
  params.max_tokens = 0;
  GenerationRun generations(*model.engine);
  std::vector<std::vector<TokenId>> inputs;
  for (const Prompt& input : request.inputs) inputs.push_back(encode_input(model, input));
  for (std::vector<TokenId>& input : inputs) {
    auto generation = make_generation(api, *call, std::move(input), params, "input");
    generation->pooling = request.pooling.value_or(api.options().pooling);
    generations.add(std::move(generation));
  }
  Api::release_input(*call);
  generations.start(api.admission());
  std::vector<std::vector<float>> vectors(request.inputs.size());
  int64_t n_tokens = 0;
  generations.run(api.watch(*call), [&](AnswerEvent&& event) {
    n_tokens += event.prompt_tokens;
    event.embedding.resize(static_cast<size_t>(dimensions));
    vectors[static_cast<size_t>(event.choice)] = unit_length(std::move(event.embedding));
  });
  call->log["prompt_tokens"] = n_tokens;
  call->response.body = json_text(embedding_response(model.name, vectors, request.base64, n_tokens));
}

}  // namespace

Endpoint embeddings_endpoint() { return {.method = "POST", .path = "/v1/embeddings", .run = run}; }

}  // namespace infer
