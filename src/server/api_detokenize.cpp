// POST /detokenize: converts tokens to text.
#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/api.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

constexpr size_t kMaxTextBytes = 16 << 20;  // of the text

void detokenize(Api& api, const CallPtr& call) {
  const std::vector<TokenId> tokens = parse_detokenize_request(api.body_of(*call), api.request_context());
  const Tokenizer& tokenizer = api.model().engine->tokenizer();
  size_t n_bytes = 0;
  for (const TokenId token : tokens) n_bytes += tokenizer.piece(token, true).size();
  if (n_bytes > kMaxTextBytes) {
    throw unexpected_value("tokens", concat("tokens with at most ", grouped(kMaxTextBytes), " bytes of text"),
                           grouped(n_bytes));
  }
  call->response.body = json_text(json_object("content", tokenizer.decode(tokens, true)));
}

}  // namespace

Endpoint detokenize_endpoint() { return {.method = "POST", .path = "/detokenize", .run = detokenize}; }

}  // namespace infer
