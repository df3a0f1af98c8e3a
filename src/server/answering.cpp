#include "src/server/answering.h"

#include <algorithm>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/json_object.h"
#include "src/server/responses.h"
#include "src/text/tool_calls/call_problems.h"

namespace infer {
namespace {

constexpr size_t kAlwaysTokenized = 64 << 10;  // bytes; needed because some vocabularies drop much of a text

// The name of a request member in error messages.
const char* name_of_input(std::string_view param) {
  return param == "messages" ? "conversation" : param == "input" ? "input" : "prompt";
}

std::string way_out(const ServedModel& model, const char* what) {
  const bool small_cache = model.engine->cache_tokens() < model.engine->context();
  return concat(" Shorten the ", what, " or raise the server's ", small_cache ? "--kv-tokens." : "context with -c.");
}

ApiError context_exceeded(const ServedModel& model, const char* param, int64_t n, int64_t room) {
  const char* what = name_of_input(param);
  ApiError error(
      400, "invalid_request_error",
      concat("The ", what, " needs ", grouped(n + room), " tokens", room > 0 ? " including one for the answer" : "",
             "; the context holds ", grouped(model.max_tokens()), ".", way_out(model, what)),
      "context_length_exceeded", param);
  error.details = {{"n_prompt_tokens", n}, {"n_ctx", model.max_tokens()}};
  return error;
}

// What is wrong with the tool calls of the answers that ended.
void log_call_problems(Api& api, const ApiCall& call, const Answering& answering) {
  if (!api.log().wants(LogLevel::kDebug)) return;
  for (size_t i = 0; i < answering.answers.choices.size(); ++i) {
    const AnswerRecord& choice = answering.answers.choices[i];
    const ChatRules* chat = answering.run.generation_of(static_cast<int32_t>(i)).rules.chat.get();
    if (!chat || choice.finished != FinishReason::kEndOfGeneration) continue;
    std::vector<WrittenCall> calls;
    for (const CallRecord& written : choice.calls) calls.push_back({written.name, written.arguments});
    for (const std::string& problem : call_problems(chat->format->calls, chat->tools, choice.content, calls)) {
      api.log().write(LogLevel::kDebug, "broken_call",
                      json_object("id", call.log["id"], "choice", i, "problem", problem));
    }
  }
}

void log_answers(Api& api, ApiCall& call, const Answering& answering) {
  const Answers& a = answering.answers;
  Json& log = call.log;
  log["stream"] = a.params.stream;
  log["prompt_tokens"] = a.usage.prompt_tokens;
  log["cached_tokens"] = a.usage.cached_tokens;
  log["completion_tokens"] = a.usage.completion_tokens;
  std::string reasons;
  for (const AnswerRecord& choice : a.choices) {
    reasons += (reasons.empty() ? "" : ",") +
               (choice.finished == FinishReason::kNone ? std::string("unfinished") : finish_word(choice.finished));
  }
  log["finish_reason"] = reasons;
  log_call_problems(api, call, answering);
  const AnswerTimes& times = a.choices[0].times;
  if (times.first_token != Clock::time_point()) {
    const auto ms = [](Clock::duration d) {
      return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(d).count()) / 1000;
    };
    log["queue_ms"] = ms(times.started - times.arrived);
    log["first_token_ms"] = ms(times.first_token - times.arrived);
  }
  api.metrics().request_time.observe(std::chrono::duration<double>(Clock::now() - call.arrived).count());
  if (a.usage.cached_tokens + kBlockTokens < a.usage.prompt_tokens) {
    const auto& difference = answering.first_difference;
    api.log().write(LogLevel::kDebug, "prefix_miss",
                    json_object("id", log["id"], "prompt_tokens", a.usage.prompt_tokens, "cached_tokens",
                                a.usage.cached_tokens, "first_difference", difference ? Json(*difference) : Json()));
  }
}

void send_whole(Api& api, ApiCall& call, Answering& a) {
  try {
    a.run.run(api.watch(call), [&](AnswerEvent&& event) { a.answers.take(event); });
  } catch (const ApiError&) {
    log_answers(api, call, a);
    throw;
  }
  call.response.body = a.format->whole(a.answers);
  log_answers(api, call, a);
}

void stream(Api& api, ApiCall& call, Answering& a, const HttpResponse::Write& write) {
  bool open = true;
  const auto send = [&](const std::string& events) {
    if (!events.empty()) open = open && write(events);
  };
  send(a.format->first(a.answers));
  int status = 200;
  try {
    GenerationRun::Watch watching = api.watch(call);
    watching.client_gone = [&] { return !open || call.request.client_gone(); };
    a.run.run(watching, [&](AnswerEvent&& event) {
      a.answers.take(event);
      send(a.format->next(a.answers, event));
    });
    call.key_slot.release();  // so that the client can send its next request as soon as it has read the end
    send(a.format->last(a.answers));
    if (!open) status = kClientGone;
  } catch (const ApiError& error) {
    // The status line has already been sent, so the error becomes an event of the stream.
    call.key_slot.release();
    if (error.status() != kClientGone) send(a.format->error(a.answers, error));
    status = error.status();
    call.log["error"] = error.what();
  }
  log_answers(api, call, a);
  api.finish(call, status);
}

}  // namespace

void check_prompt_text(const ServedModel& model, std::string_view text, const char* param) {
  const int64_t tokens = model.max_tokens();
  const size_t most =
      std::max(kAlwaysTokenized, static_cast<size_t>(tokens) * model.engine->tokenizer().max_piece_bytes());
  if (text.size() <= most) return;
  const char* what = name_of_input(param);
  throw ApiError(400, "invalid_request_error",
                 concat("The ", what, " has ", grouped(text.size()), " bytes; the context of ", grouped(tokens),
                        " tokens holds at most ", grouped(most), ".", way_out(model, what)),
                 "context_length_exceeded", param);
}

std::unique_ptr<Generation> make_generation(const Api& api, const ApiCall& call, std::vector<TokenId> prompt,
                                            const GenerationParams& params, const char* param) {
  if (prompt.empty()) throw unexpected_value(param, "at least one token", "none");
  const int64_t n = static_cast<int64_t>(prompt.size()), room = params.max_tokens != 0 ? 1 : 0;
  if (n + room > api.model().max_tokens()) throw context_exceeded(api.model(), param, n, room);
  auto generation = std::make_unique<Generation>();
  generation->prompt = std::move(prompt);
  generation->params = params;
  generation->params.cache_salt = call.cache_scope + params.cache_salt;
  generation->rules = {params.stop, params.stop_tokens, nullptr};
  generation->arrived = call.arrived;
  return generation;
}

std::shared_ptr<const TokenMask> mask_for(const ServedModel& model, const AnswerConstraint& constraint, bool chat,
                                          Answers& answers) {
  if (constraint.free()) return nullptr;
  try {
    const AnswerGrammarCache::Entry entry = model.grammars->get(constraint, chat);
    answers.warnings = entry.warnings;
    return AnswerGrammarCache::mask(entry);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    const bool of_tools = std::string_view(error.what()).find("tools[") != std::string_view::npos;
    throw ApiError(400, "invalid_request_error", error.what(), "invalid_constraint",
                   of_tools ? "tools" : constraint.content.source);
  }
}

Answering::Answering(Api& api, std::unique_ptr<AnswerFormat> its_format, const GenerationParams& params)
    : format(std::move(its_format)), run(*api.model().engine) {
  if (!api.model().engine->model().config().causal) {
    throw ApiError(400, "invalid_request_error",
                   "This model is an encoder and generates no text. Ask for /v1/embeddings instead.",
                   "unsupported_model", "model");
  }
  answers.id = api.new_id(format->id_prefix());
  answers.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  answers.model = api.model().name;
  answers.params = params;
  answers.tokenizer = &api.model().engine->tokenizer();
}

void answer(Api& api, const CallPtr& call, const std::shared_ptr<Answering>& answering) {
  answering->answers.choices.resize(static_cast<size_t>(answering->run.n_choices()));
  Api::release_input(*call);
  if (api.log().wants(LogLevel::kDebug)) {
    for (const auto& generation : answering->run.generations()) {
      answering->first_difference = api.recent_prompts().add(generation->prompt, generation->params.cache_salt);
    }
  }
  answering->run.start(api.admission());
  if (!answering->answers.params.stream) {
    send_whole(api, *call, *answering);
    return;
  }
  call->response.content_type = "text/event-stream";
  call->response.headers.emplace_back("Cache-Control", "no-cache");
  call->response.headers.emplace_back("X-Accel-Buffering", "no");
  call->response.stream = [&api, call, answering](const HttpResponse::Write& write) {
    stream(api, *call, *answering, write);
  };
}

}  // namespace infer
