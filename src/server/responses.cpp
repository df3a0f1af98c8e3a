#include "src/server/responses.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "src/server/json_object.h"
#include "src/text/utf8.h"

namespace infer {
namespace {

// A token may end in the middle of a character.
std::string valid_utf8(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const Utf8Char c = decode_utf8(bytes, i);
    text += c.valid ? bytes.substr(i, c.length) : kReplacementUtf8;
    i += c.length;
  }
  return text;
}

int64_t count_characters(std::string_view bytes) {
  int64_t n = 0;
  for (const char c : bytes) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}

// JSON has no -infinity; OpenAI uses this number for a probability of zero.
Json logprob_json(double value) { return std::isfinite(value) ? Json(value) : Json(-9999.0); }

Json token_json(const Tokenizer& tokenizer, TokenId token, double value) {
  const std::string_view piece = tokenizer.piece(token, true);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return json_object("token", valid_utf8(piece), "logprob", logprob_json(value), "bytes", std::move(bytes));
}

double milliseconds(Clock::duration d) {
  return std::round(std::chrono::duration<double, std::micro>(d).count()) / 1e3;
}

double rate(int64_t n, double ms) { return ms > 0 ? std::round(static_cast<double>(n) / ms * 1e5) / 100 : 0; }

}  // namespace

std::string finish_word(FinishReason reason) {
  switch (reason) {
    case FinishReason::kMaxTokens:
    case FinishReason::kContextFull:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
    case FinishReason::kNone:
    case FinishReason::kEndOfGeneration:
    case FinishReason::kStopString:
      return "stop";
  }
  return "stop";
}

Json usage_json(const Usage& usage) {
  Json json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  json["prompt_tokens_details"] = json_object("cached_tokens", usage.cached_tokens);
  return json;
}

Json timings_json(const AnswerTimes& times, const Usage& usage, const DraftCounts& drafts) {
  const bool any = times.first_token != Clock::time_point();
  const double prompt = milliseconds((any ? times.first_token : times.ended) - times.started);
  const double predicted = any ? milliseconds(times.ended - times.first_token) : 0;
  Json json;
  json["queue_ms"] = milliseconds(times.started - times.arrived);
  json["prompt_n"] = usage.prompt_tokens;
  json["cached_n"] = usage.cached_tokens;
  json["prompt_ms"] = prompt;
  json["prompt_per_second"] = rate(usage.prompt_tokens - usage.cached_tokens, prompt);
  json["predicted_n"] = usage.completion_tokens;
  json["predicted_ms"] = predicted;
  json["predicted_per_second"] = rate(usage.completion_tokens - 1, predicted);
  if (drafts.proposed > 0) {
    json["draft_n"] = drafts.proposed;
    json["draft_n_accepted"] = drafts.accepted;
  }
  return json;
}

Json calls_json(const std::vector<CallRecord>& calls) {
  Json list = Json::array();
  for (const CallRecord& call : calls) {
    list.push_back(json_object("id", call.id, "type", "function", "function",
                               json_object("name", call.name, "arguments", call.arguments)));
  }
  return list;
}

Json call_deltas_json(const std::vector<MessageDelta>& parts) {
  Json list = Json::array();
  for (const MessageDelta& part : parts) {
    Json call = json_object("index", part.index), function = Json::object();
    if (!part.id.empty()) {
      call["id"] = part.id;
      call["type"] = "function";
    }
    if (!part.name.empty()) function["name"] = part.name;
    function["arguments"] = part.text;
    call["function"] = std::move(function);
    list.push_back(std::move(call));
  }
  return list;
}

Json chat_logprobs(const Tokenizer& tokenizer, const std::vector<TokenScore>& scores) {
  Json content = Json::array();
  for (const TokenScore& score : scores) {
    Json entry = token_json(tokenizer, score.token, score.logprob.value_or(0));
    Json top = Json::array();
    for (const TokenLogprob& other : score.top) top.push_back(token_json(tokenizer, other.token, other.logprob));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return json_object("content", std::move(content), "refusal", nullptr);
}

std::string token_text(std::string_view piece) {
  if (is_valid_utf8(piece)) return std::string(piece);
  std::string text = "bytes:";
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte < 0x7F && byte != '\\') {
      text += c;
      continue;
    }
    char digits[8];
    std::snprintf(digits, sizeof(digits), "\\x%02x", byte);
    text += digits;
  }
  return text;
}

Json completion_logprobs(const Tokenizer& tokenizer, const std::vector<TokenScore>& scores, int64_t& offset) {
  Json tokens = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const TokenScore& score : scores) {
    const std::string_view piece = tokenizer.piece(score.token, true);
    tokens.push_back(token_text(piece));
    values.push_back(score.logprob ? logprob_json(*score.logprob) : Json());
    Json top;
    if (score.logprob) {
      top = Json::object();
      for (const TokenLogprob& other : score.top) {
        // Of equal texts, emplace keeps the first, which is the best.
        top.emplace(token_text(tokenizer.piece(other.token, true)), logprob_json(other.logprob));
      }
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += count_characters(tokenizer.piece(score.token, false));
  }
  return json_object("tokens", std::move(tokens), "token_logprobs", std::move(values), "top_logprobs", std::move(tops),
                     "text_offset", std::move(offsets));
}

Json embedding_response(const std::string& model, const std::vector<std::vector<float>>& vectors, bool as_base64,
                        int64_t prompt_tokens) {
  Json data = Json::array();
  for (size_t i = 0; i < vectors.size(); ++i) {
    Json embedding;
    if (as_base64) {
      std::string bytes(vectors[i].size() * sizeof(float), '\0');
      std::memcpy(bytes.data(), vectors[i].data(), bytes.size());
      embedding = base64(bytes);
    } else {
      embedding = vectors[i];
    }
    data.push_back(json_object("object", "embedding", "index", i, "embedding", std::move(embedding)));
  }
  return json_object("object", "list", "data", std::move(data), "model", model, "usage",
                     json_object("prompt_tokens", prompt_tokens, "total_tokens", prompt_tokens));
}

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0);
    }
    for (size_t j = 0; j < 4; ++j) text += j <= n ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string json_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string sse_event(const Json& json) { return "data: " + json_text(json) + "\n\n"; }

}  // namespace infer
