// The routes that turn text into tokens and back, and the bound on texts that are tokenized.
#include <algorithm>
#include <memory>
#include <utility>

#include "ggml-like/error.h"
#include "src/server/api_service.h"

namespace infer {
namespace {

constexpr size_t kMaxTokenizedBytes = 4 << 20;     // of /tokenize, whatever the context
constexpr size_t kMaxDetokenizedBytes = 16 << 20;  // of the text that /detokenize answers
constexpr size_t kAlwaysTokenized = 64 << 10;      // bytes of a prompt; some vocabularies leave much of a text out
constexpr size_t kPieceOfAnswer = 16 << 10;        // bytes that a streamed answer is sent by

}  // namespace

void ApiService::check_length(std::string_view text, const char* param) const {
  const int64_t tokens = model_->max_tokens();
  const size_t most =
      std::max(kAlwaysTokenized, static_cast<size_t>(tokens) * model_->engine->tokenizer().max_piece_bytes());
  if (text.size() <= most) return;
  throw invalid_parameter(param,
                          concat("expected a text of at most ", most, " bytes, more than the context of ", tokens,
                                 " tokens can hold, found ", text.size()),
                          "context_length_exceeded");
}

void ApiService::tokenize(const CallPtr& call) {
  const TokenizeRequest request = parse_tokenize_request(body_of(*call));
  if (request.content.size() > kMaxTokenizedBytes) {
    throw invalid_parameter(
        "content", concat("expected a text of at most ", kMaxTokenizedBytes, " bytes, found ", request.content.size()));
  }
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  const auto tokens = std::make_shared<const std::vector<TokenId>>(
      tokenizer.encode(request.content, request.add_special, request.parse_special));
  // An answer with pieces is many times as large as its tokens: it is never there as a whole.
  call->response.stream = [this, call, tokens, with_pieces = request.with_pieces](const HttpResponse::Write& write) {
    const Tokenizer& pieces = model_->engine->tokenizer();
    std::string text = "{\"tokens\":[";
    bool open = true;
    for (size_t i = 0; i < tokens->size() && open; ++i) {
      const TokenId token = (*tokens)[i];
      if (i > 0) text += ',';
      text += with_pieces ? json_text({{"id", token}, {"piece", pieces.piece(token, true)}}) : std::to_string(token);
      if (text.size() >= kPieceOfAnswer) {
        open = write(text);
        text.clear();
      }
    }
    open = open && write(text + "]}");
    finish(*call, open ? 200 : kClientGone);
  };
}

void ApiService::detokenize(const CallPtr& call) {
  const std::vector<TokenId> tokens = parse_detokenize_request(body_of(*call), context());
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  size_t n_bytes = 0;
  for (const TokenId token : tokens) n_bytes += tokenizer.piece(token, true).size();
  if (n_bytes > kMaxDetokenizedBytes) {
    throw invalid_parameter(
        "tokens", concat("expected tokens of at most ", kMaxDetokenizedBytes, " bytes of text, found ", n_bytes));
  }
  call->response.body = json_text({{"content", tokenizer.decode(tokens, true)}});
}

}  // namespace infer
