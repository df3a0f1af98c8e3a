// POST /tokenize: converts text to tokens.
#include <memory>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/api.h"
#include "src/server/responses.h"

namespace infer {
namespace {

constexpr size_t kMaxContentBytes = 4 << 20;  // of the text, whatever the context
constexpr size_t kBytesAtATime = 16 << 10;    // of the response

// One member at a time: GCC 12 destroys nested initializer lists twice when an allocation within them fails.
std::string with_piece(const Tokenizer& tokenizer, TokenId token) {
  Json entry = Json::object();
  entry["id"] = token;
  entry["piece"] = tokenizer.piece(token, true);
  return json_text(entry);
}

void tokenize(Api& api, const CallPtr& call) {
  const TokenizeRequest request = parse_tokenize_request(api.body_of(*call));
  if (request.content.size() > kMaxContentBytes) {
    throw unexpected_value("content", concat("a text of at most ", grouped(kMaxContentBytes), " bytes"),
                           grouped(request.content.size()));
  }
  const Tokenizer& tokenizer = api.model().engine->tokenizer();
  const auto tokens = std::make_shared<const std::vector<TokenId>>(
      tokenizer.encode(request.content, request.add_special, request.parse_special));
  // With pieces, the response is many times larger than the tokens, so it is streamed and never held in full.
  call->response.stream = [&api, &tokenizer, call, tokens,
                           with_pieces = request.with_pieces](const HttpResponse::Write& write) {
    std::string text = "{\"tokens\":[";
    bool open = true;
    for (size_t i = 0; i < tokens->size() && open; ++i) {
      const TokenId token = (*tokens)[i];
      if (i > 0) text += ',';
      text += with_pieces ? with_piece(tokenizer, token) : std::to_string(token);
      if (text.size() >= kBytesAtATime) {
        open = write(text);
        text.clear();
      }
    }
    open = open && write(text + "]}");
    api.finish(*call, open ? 200 : kClientGone);
  };
}

}  // namespace

Endpoint tokenize_endpoint() { return {.method = "POST", .path = "/tokenize", .run = tokenize}; }

}  // namespace infer
