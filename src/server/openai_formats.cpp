#include "src/server/openai_formats.h"

#include <map>
#include <utility>

#include "src/server/json_object.h"
#include "src/server/responses.h"

namespace infer {
namespace {

// `calls`: the answer contains tool calls, which are then its finish reason.
Json finish_json(FinishReason reason, bool calls = false) {
  if (reason == FinishReason::kNone) return nullptr;
  const std::string word = finish_word(reason);
  return calls && word == "stop" ? "tool_calls" : word;
}

// Common to both formats: a response is an object with a list of choices, and a stream is a series of such objects with
// one choice each. The finish reason has its own chunk, because some clients drop text that comes with it.
class OpenAiFormat : public AnswerFormat {
 public:
  // `object`, `chunk_object`: the "object" members of responses and chunks.
  OpenAiFormat(const char* object, const char* chunk_object) : object_(object), chunk_object_(chunk_object) {}

  std::string whole(const Answers& answers) override {
    Json choices = Json::array();
    for (size_t i = 0; i < answers.choices.size(); ++i) choices.push_back(choice(answers, static_cast<int32_t>(i)));
    Json response = envelope(answers, object_, std::move(choices));
    response["usage"] = usage_json(answers.usage);
    if (answers.params.timings) response["timings"] = timings(answers);
    if (!answers.warnings.empty()) response["warnings"] = answers.warnings;
    return json_text(response);
  }

  std::string first(const Answers&) override { return ""; }

  std::string next(const Answers& answers, const AnswerEvent& event) override {
    const Json added = delta(answers, event);
    std::string events = added.is_null() ? "" : sse_event(chunk(answers, added));
    if (event.finished == FinishReason::kNone) return events;
    Json ending = chunk(answers, end(answers, event));
    if (answers.params.timings && event.choice == 0) ending["timings"] = timings(answers);
    if (!answers.warnings.empty() && event.choice == 0) ending["warnings"] = answers.warnings;
    return events + sse_event(ending);
  }

  std::string last(const Answers& answers) override {
    std::string events;
    if (answers.params.include_usage) {
      Json usage = envelope(answers, chunk_object_, Json::array());
      usage["usage"] = usage_json(answers.usage);
      events = sse_event(usage);
    }
    return events.append(kSseDone);
  }

  std::string error(const Answers&, const ApiError& error) override { return sse_event(error.to_json()); }

 protected:
  // A choice in a complete response.
  virtual Json choice(const Answers& answers, int32_t index) = 0;
  // The choice in the chunk for `event`; null if it has nothing to show.
  virtual Json delta(const Answers& answers, const AnswerEvent& event) = 0;
  // The choice in the chunk that carries the finish reason.
  virtual Json end(const Answers& answers, const AnswerEvent& event) = 0;

  Json chunk(const Answers& answers, Json choice) const {
    Json chunk = envelope(answers, chunk_object_, Json::array({std::move(choice)}));
    if (answers.params.include_usage) chunk["usage"] = nullptr;  // the last chunk contains it
    return chunk;
  }

 private:
  static Json envelope(const Answers& answers, const char* object, Json choices) {
    return json_object("id", answers.id, "object", object, "created", answers.created, "model", answers.model,
                       "choices", std::move(choices));
  }

  // Timings of the first choice.
  static Json timings(const Answers& answers) {
    const AnswerRecord& first = answers.choices[0];
    return timings_json(first.times, {answers.usage.prompt_tokens, answers.usage.cached_tokens, first.n_tokens},
                        first.drafts);
  }

  const char* const object_;
  const char* const chunk_object_;
};

class ChatCompletionFormat : public OpenAiFormat {
 public:
  ChatCompletionFormat() : OpenAiFormat("chat.completion", "chat.completion.chunk") {}

  const char* id_prefix() const override { return "chatcmpl-"; }

  std::string first(const Answers& answers) override {
    std::string events;
    for (size_t i = 0; i < answers.choices.size(); ++i) {
      events += sse_event(
          chunk(answers, delta_choice(static_cast<int32_t>(i), json_object("role", "assistant", "content", ""), nullptr,
                                      FinishReason::kNone)));
    }
    return events;
  }

 protected:
  Json choice(const Answers& answers, int32_t index) override {
    const AnswerRecord& answer = answers.choices[static_cast<size_t>(index)];
    Json message = json_object("role", "assistant", "content", answer.content), logprobs;
    if (answer.content.empty() && !answer.calls.empty()) message["content"] = nullptr;
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    if (!answer.calls.empty()) message["tool_calls"] = calls_json(answer.calls);
    message["refusal"] = nullptr;
    if (answers.params.top_logprobs) logprobs = chat_logprobs(*answers.tokenizer, answer.scores);
    return json_object("index", index, "message", std::move(message), "logprobs", std::move(logprobs), "finish_reason",
                       finish_json(answer.finished, !answer.calls.empty()));
  }

  Json delta(const Answers& answers, const AnswerEvent& event) override {
    Json text = Json::object(), logprobs;
    if (!event.delta.reasoning.empty()) text["reasoning_content"] = event.delta.reasoning;
    if (!event.delta.content.empty()) text["content"] = event.delta.content;
    if (!event.delta.calls.empty()) text["tool_calls"] = call_deltas_json(event.delta.calls);
    if (answers.params.top_logprobs && !event.delta.scores.empty()) {
      logprobs = chat_logprobs(*answers.tokenizer, event.delta.scores);
    }
    if (text.empty() && logprobs.is_null()) return nullptr;
    return delta_choice(event.choice, std::move(text), std::move(logprobs), FinishReason::kNone);
  }

  Json end(const Answers& answers, const AnswerEvent& event) override {
    const bool calls = !answers.choices[static_cast<size_t>(event.choice)].calls.empty();
    return delta_choice(event.choice, Json::object(), nullptr, event.finished, calls);
  }

 private:
  static Json delta_choice(int32_t index, Json delta, Json logprobs, FinishReason finished, bool calls = false) {
    return json_object("index", index, "delta", std::move(delta), "logprobs", std::move(logprobs), "finish_reason",
                       finish_json(finished, calls));
  }
};

class CompletionFormat : public OpenAiFormat {
 public:
  explicit CompletionFormat(std::vector<std::string> echoed)
      : OpenAiFormat("text_completion", "text_completion"), echoed_(std::move(echoed)) {}

  const char* id_prefix() const override { return "cmpl-"; }

 protected:
  Json choice(const Answers& answers, int32_t index) override {
    const AnswerRecord& answer = answers.choices[static_cast<size_t>(index)];
    Json logprobs;
    if (answers.params.top_logprobs) {
      int64_t offset = 0;
      logprobs = completion_logprobs(*answers.tokenizer, with_prompt(answers, index, answer.scores), offset);
    }
    return text_choice(index, echo(answers, index) + answer.content, std::move(logprobs), answer.finished);
  }

  Json delta(const Answers& answers, const AnswerEvent& event) override {
    std::string text = event.delta.content;
    std::vector<TokenScore> scores = event.delta.scores;
    const auto [offset, begins] = offsets_.emplace(event.choice, 0);
    if (begins) {
      text = echo(answers, event.choice) + text;
      scores = with_prompt(answers, event.choice, scores);
    }
    if (text.empty() && scores.empty()) return nullptr;
    Json logprobs;
    if (answers.params.top_logprobs) logprobs = completion_logprobs(*answers.tokenizer, scores, offset->second);
    return text_choice(event.choice, text, std::move(logprobs), FinishReason::kNone);
  }

  Json end(const Answers&, const AnswerEvent& event) override {
    return text_choice(event.choice, "", nullptr, event.finished);
  }

 private:
  static Json text_choice(int32_t index, const std::string& text, Json logprobs, FinishReason finished) {
    return json_object("index", index, "text", text, "logprobs", std::move(logprobs), "finish_reason",
                       finish_json(finished));
  }

  std::string echo(const Answers& answers, int32_t choice) const {
    return echoed_.empty() ? "" : echoed_[static_cast<size_t>(choice / answers.params.n)];
  }

  // The scores of the prompt that `choice` answers, if any, followed by its own.
  static std::vector<TokenScore> with_prompt(const Answers& answers, int32_t choice,
                                             const std::vector<TokenScore>& scores) {
    std::vector<TokenScore> all = answers.choices[static_cast<size_t>(answers.first_choice(choice))].prompt_scores;
    all.insert(all.end(), scores.begin(), scores.end());
    return all;
  }

  const std::vector<std::string> echoed_;  // one per prompt, or none
  std::map<int32_t, int64_t> offsets_;     // by streamed choice: characters of text so far
};

}  // namespace

std::unique_ptr<AnswerFormat> make_chat_completion_format() { return std::make_unique<ChatCompletionFormat>(); }

std::unique_ptr<AnswerFormat> make_completion_format(std::vector<std::string> echoed) {
  return std::make_unique<CompletionFormat>(std::move(echoed));
}

}  // namespace infer
