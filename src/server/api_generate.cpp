// The routes that run the model: chat and text completions, whole or streamed, and embeddings.
#include <cmath>
#include <map>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/api_service.h"
#include "src/text/prompt_tokens.h"

namespace infer {
namespace {

// The vector divided by its Euclidean length; a vector of zeros stays.
std::vector<float> unit_length(std::vector<float> vector) {
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * x;
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  for (float& x : vector) x = static_cast<float>(x * scale);
  return vector;
}

// 400 for a prompt of `n` tokens that leaves no `room`, in tokens, for its answer.
ApiError context_exceeded(const ServedModel& model, const char* param, int64_t n, int64_t room) {
  const auto count = [](int64_t tokens) { return grouped(static_cast<uint64_t>(tokens)); };
  const std::string_view name = param;
  const char* what = name == "messages" ? "conversation" : name == "input" ? "input" : "prompt";
  const bool small_cache = model.engine->cache_tokens() < model.engine->context();
  ApiError error(400, "invalid_request_error",
                 concat("The ", what, " needs ", count(n + room), " tokens", room > 0 ? " with one of its answer" : "",
                        "; the context holds ", count(model.max_tokens()), ". Shorten the ", what,
                        " or raise the server's ", small_cache ? "--kv-tokens." : "context with -c."),
                 "context_length_exceeded", param);
  error.details = {{"n_prompt_tokens", n}, {"n_ctx", model.max_tokens()}};
  return error;
}

}  // namespace

// An answer on its way to the client.
struct ApiService::Answering {
  explicit Answering(EngineThread& engine) : run(engine) {}

  bool chat = false, echo = false;
  GenerationParams params;
  ResponseHead head;
  std::map<int32_t, std::string> echoed;                     // prompts as text, by the first choice of each
  std::map<int32_t, std::vector<TokenScore>> prompt_scores;  // the same, where they were asked for
  std::vector<AnswerRecord> answers;                         // of each choice
  std::map<int32_t, int64_t> offsets;  // of streamed text completions that have begun: characters of text so far
  Usage usage;
  std::optional<size_t> first_difference;  // from the prompts before, where that is to be logged
  GenerationRun run;

  // Adds an event to the records and to the usage.
  void take(AnswerEvent&& event) {
    usage.prompt_tokens += event.prompt_tokens;
    usage.cached_tokens += event.cached_tokens;
    usage.completion_tokens += event.new_tokens;
    if (!event.prompt_scores.empty()) prompt_scores[event.choice] = std::move(event.prompt_scores);
    answers[static_cast<size_t>(event.choice)].add(std::move(event));
  }
  // The first choice's own share, of which `timings` speaks.
  Usage first_usage() const { return {usage.prompt_tokens, usage.cached_tokens, answers[0].n_tokens}; }
  // The chunks of a stream that an event makes; the reason to finish is in one of its own, the last.
  std::vector<Json> chat_chunks(const Tokenizer& tokenizer, const AnswerEvent& event) const;
  std::vector<Json> text_chunks(const Tokenizer& tokenizer, const AnswerEvent& event);
};

void ApiService::check_tokens(size_t n_prompt, int64_t room, const char* param) const {
  if (n_prompt == 0) throw invalid_parameter(param, "expected at least one token, found none");
  const int64_t n = static_cast<int64_t>(n_prompt);
  if (n + room > model_->max_tokens()) throw context_exceeded(*model_, param, n, room);
}

std::unique_ptr<Generation> ApiService::make_generation(std::vector<TokenId> prompt, const GenerationParams& params,
                                                        const char* param, const Call& call) {
  check_tokens(prompt.size(), params.max_tokens != 0 ? 1 : 0, param);
  auto generation = std::make_unique<Generation>();
  generation->prompt = std::move(prompt);
  generation->params = params;
  generation->params.cache_salt = call.cache_scope + params.cache_salt;
  generation->rules = {params.stop, params.stop_tokens, std::nullopt};
  generation->arrived = call.arrived;
  return generation;
}

void ApiService::chat_completions(const CallPtr& call) {
  const ChatRequest request = parse_chat_request(body_of(*call), context());
  const RenderedText prompt = render_prompt(*model_, request.prompt);
  check_length(prompt.text, "messages");
  const auto answering = std::make_shared<Answering>(*model_->engine);
  answering->chat = true;
  answering->params = request.generation;
  auto generation = make_generation(encode_rendered_prompt(model_->engine->tokenizer(), prompt), answering->params,
                                    "messages", *call);
  const GenerationParams& params = answering->params;
  generation->rules = chat_rules(params.stop, params.stop_tokens, model_->answer_end, prompt.text);
  answering->run.add(std::move(generation));
  answering->head.id = new_id("chatcmpl-");
  answer(call, answering);
}

void ApiService::completions(const CallPtr& call) {
  const CompletionRequest request = parse_completion_request(body_of(*call), context());
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  const auto answering = std::make_shared<Answering>(*model_->engine);
  answering->echo = request.echo;
  answering->params = request.generation;
  for (const Prompt& prompt : request.prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    if (text) check_length(*text, "prompt");
    std::vector<TokenId> tokens = text ? encode_plain_prompt(tokenizer, *text) : std::get<std::vector<TokenId>>(prompt);
    if (request.echo) {
      answering->echoed[answering->run.n_choices()] = text ? *text : tokenizer.decode(tokens, false);
    }
    auto generation = make_generation(std::move(tokens), request.generation, "prompt", *call);
    generation->prompt_scores = request.echo && request.generation.top_logprobs.has_value();
    answering->run.add(std::move(generation));
  }
  answering->head.id = new_id("cmpl-");
  answer(call, answering);
}

std::vector<std::vector<TokenId>> ApiService::encode_inputs(const std::vector<Prompt>& inputs) const {
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  std::vector<std::vector<TokenId>> encoded;
  for (const Prompt& input : inputs) {
    const auto* text = std::get_if<std::string>(&input);
    if (text) check_length(*text, "input");
    encoded.push_back(text ? tokenizer.encode(*text, true, false) : std::get<std::vector<TokenId>>(input));
  }
  return encoded;
}

void ApiService::embeddings(const CallPtr& call) {
  const EmbeddingRequest request = parse_embedding_request(body_of(*call), context());
  const int n_embd = model_->engine->model().n_embd();
  const int64_t dimensions = request.dimensions.value_or(n_embd);
  if (dimensions > n_embd) {
    throw invalid_parameter("dimensions", concat("expected at most ", n_embd, ", the model's own, found ", dimensions));
  }
  GenerationParams params = request.generation;
  params.sampling = options_.sampling;
  params.max_tokens = 0;
  GenerationRun run(*model_->engine);
  for (std::vector<TokenId>& input : encode_inputs(request.inputs)) {
    auto generation = make_generation(std::move(input), params, "input", *call);
    generation->pooling = request.pooling.value_or(options_.pooling);
    run.add(std::move(generation));
  }
  release_input(*call);
  run.start(admission_);
  std::vector<std::vector<float>> vectors(request.inputs.size());
  int64_t n_tokens = 0;
  run.run(watch(*call), [&](AnswerEvent&& event) {
    n_tokens += event.prompt_tokens;
    event.embedding.resize(static_cast<size_t>(dimensions));
    vectors[static_cast<size_t>(event.choice)] = unit_length(std::move(event.embedding));
  });
  call->log["prompt_tokens"] = n_tokens;
  call->response.body = json_text(embedding_response(model_->name, vectors, request.base64, n_tokens));
}

void ApiService::answer(const CallPtr& call, const std::shared_ptr<Answering>& answering) {
  answering->head.model = model_->name;
  answering->head.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  answering->answers.resize(static_cast<size_t>(answering->run.n_choices()));
  release_input(*call);
  if (log_.wants(LogLevel::kDebug)) {
    for (const auto& generation : answering->run.generations()) {
      answering->first_difference = recent_prompts_.add(generation->prompt, generation->params.cache_salt);
    }
  }
  answering->run.start(admission_);
  if (!answering->params.stream) {
    send_whole(*call, *answering);
    return;
  }
  call->response.content_type = "text/event-stream";
  call->response.headers.emplace_back("Cache-Control", "no-cache");
  call->response.headers.emplace_back("X-Accel-Buffering", "no");
  call->response.stream = [this, call, answering](const HttpResponse::Write& write) {
    stream(*call, *answering, write);
  };
}

GenerationRun::Watch ApiService::watch(const Call& call) const {
  return {call.request.client_gone, [this] { return stopping_.load(); }, call.arrived + options_.request_timeout};
}

void ApiService::send_whole(Call& call, Answering& a) {
  try {
    a.run.run(watch(call), [&](AnswerEvent&& event) { a.take(std::move(event)); });
  } catch (const ApiError&) {
    log_answers(call, a);
    throw;
  }
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  Json choices = Json::array();
  for (int32_t i = 0; i < a.run.n_choices(); ++i) {
    AnswerRecord& answer = a.answers[static_cast<size_t>(i)];
    Json logprobs;
    if (a.chat) {
      if (a.params.top_logprobs) logprobs = chat_logprobs(tokenizer, answer.scores);
      choices.push_back(chat_choice(i, answer, std::move(logprobs)));
      continue;
    }
    const int32_t first = a.run.generation_of(i).first_choice;
    if (a.params.top_logprobs) {
      std::vector<TokenScore> scores = a.prompt_scores[first];
      scores.insert(scores.end(), answer.scores.begin(), answer.scores.end());
      int64_t offset = 0;
      logprobs = completion_logprobs(tokenizer, scores, offset);
    }
    choices.push_back(completion_choice(i, a.echo ? a.echoed[first] + answer.content : answer.content, answer.finished,
                                        std::move(logprobs)));
  }
  Json response = a.chat ? chat_response(a.head, std::move(choices), a.usage)
                         : completion_response(a.head, std::move(choices), a.usage);
  if (a.params.timings) response["timings"] = timings_json(a.answers[0].times, a.first_usage());
  call.response.body = json_text(response);
  log_answers(call, a);
}

std::vector<Json> ApiService::Answering::chat_chunks(const Tokenizer& tokenizer, const AnswerEvent& event) const {
  std::vector<Json> chunks;
  const AnswerDelta& added = event.delta;
  Json delta = Json::object(), logprobs;
  if (!added.reasoning.empty()) delta["reasoning_content"] = added.reasoning;
  if (!added.content.empty()) delta["content"] = added.content;
  if (params.top_logprobs && !added.scores.empty()) logprobs = chat_logprobs(tokenizer, added.scores);
  const bool with_usage = params.include_usage;
  if (!delta.empty() || !logprobs.is_null()) {
    chunks.push_back(
        chat_chunk(head, event.choice, std::move(delta), FinishReason::kNone, std::move(logprobs), with_usage));
  }
  if (event.finished != FinishReason::kNone) {
    chunks.push_back(chat_chunk(head, event.choice, Json::object(), event.finished, nullptr, with_usage));
  }
  return chunks;
}

std::vector<Json> ApiService::Answering::text_chunks(const Tokenizer& tokenizer, const AnswerEvent& event) {
  std::vector<Json> chunks;
  std::string text = event.delta.content;
  std::vector<TokenScore> scores = event.delta.scores;
  const bool begins = offsets.emplace(event.choice, 0).second;
  if (begins && echo) {
    const int32_t first = run.generation_of(event.choice).first_choice;
    text = echoed[first] + text;
    const std::vector<TokenScore>& prompt = prompt_scores[first];
    scores.insert(scores.begin(), prompt.begin(), prompt.end());
  }
  const bool with_usage = params.include_usage;
  if (!text.empty() || !scores.empty()) {
    Json logprobs;
    if (params.top_logprobs) logprobs = completion_logprobs(tokenizer, scores, offsets[event.choice]);
    chunks.push_back(completion_chunk(head, event.choice, text, FinishReason::kNone, std::move(logprobs), with_usage));
  }
  // Some clients drop the text of a chunk that has a reason to finish.
  if (event.finished != FinishReason::kNone) {
    chunks.push_back(completion_chunk(head, event.choice, "", event.finished, nullptr, with_usage));
  }
  return chunks;
}

void ApiService::stream(Call& call, Answering& a, const HttpResponse::Write& write) {
  const Tokenizer& tokenizer = model_->engine->tokenizer();
  const bool with_usage = a.params.include_usage;
  bool open = true;
  const auto send = [&](const Json& chunk) { open = open && write(sse_event(chunk)); };
  if (a.chat) {
    for (int32_t i = 0; i < a.run.n_choices(); ++i) {
      send(chat_chunk(a.head, i, {{"role", "assistant"}, {"content", ""}}, FinishReason::kNone, nullptr, with_usage));
    }
  }
  int status = 200;
  try {
    GenerationRun::Watch watching = watch(call);
    watching.client_gone = [&] { return !open || call.request.client_gone(); };
    a.run.run(watching, [&](AnswerEvent&& event) {
      AnswerEvent copy = event;
      a.take(std::move(event));
      std::vector<Json> chunks = a.chat ? a.chat_chunks(tokenizer, copy) : a.text_chunks(tokenizer, copy);
      if (a.params.timings && copy.choice == 0 && copy.finished != FinishReason::kNone) {
        chunks.back()["timings"] = timings_json(copy.times, a.first_usage());
      }
      for (const Json& chunk : chunks) send(chunk);
    });
    if (with_usage) send(usage_chunk(a.head, a.chat, a.usage));
    open = open && write(kSseDone);
    if (!open) status = kClientGone;
  } catch (const ApiError& error) {
    // The status line is long gone: the error is an event of the stream.
    if (error.status() != kClientGone) send(error.to_json());
    status = error.status();
    call.log["error"] = error.what();
  }
  log_answers(call, a);
  finish(call, status);
}

void ApiService::log_answers(Call& call, const Answering& a) const {
  Json& log = call.log;
  log["stream"] = a.params.stream;
  log["prompt_tokens"] = a.usage.prompt_tokens;
  log["cached_tokens"] = a.usage.cached_tokens;
  log["completion_tokens"] = a.usage.completion_tokens;
  std::string reasons;
  for (const AnswerRecord& answer : a.answers) {
    reasons += (reasons.empty() ? "" : ",") +
               (answer.finished == FinishReason::kNone ? std::string("unfinished") : finish_word(answer.finished));
  }
  log["finish_reason"] = reasons;
  const AnswerTimes& times = a.answers[0].times;
  if (times.first_token != Clock::time_point()) {
    const auto ms = [](Clock::duration d) {
      return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(d).count()) / 1000;
    };
    log["queue_ms"] = ms(times.started - times.arrived);
    log["first_token_ms"] = ms(times.first_token - times.arrived);
  }
  metrics_.request_time.observe(std::chrono::duration<double>(Clock::now() - call.arrived).count());
  if (a.usage.cached_tokens + kBlockTokens < a.usage.prompt_tokens) {
    log_.write(LogLevel::kDebug, "prefix_miss",
               {{"id", log["id"]},
                {"prompt_tokens", a.usage.prompt_tokens},
                {"cached_tokens", a.usage.cached_tokens},
                {"first_difference", a.first_difference ? Json(*a.first_difference) : Json()}});
  }
}

}  // namespace infer
