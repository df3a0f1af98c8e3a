// A chat with a model: its messages, and how the next answer is generated. Every turn is one engine request whose
// prompt is the whole conversation rendered by the model's template; the cache of the previous turn is reused as far as
// the tokens agree. Prints nothing itself. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/error.h"
#include "src/engine/engine.h"
#include "src/text/answer_grammar_cache.h"
#include "src/text/chat_answer.h"
#include "src/text/chat_template.h"
#include "src/text/ordered_json.h"
#include "tools/answer_timings.h"
#include "tools/chat/chat_log.h"
#include "tools/flags.h"

namespace infer {

// The conversation does not fit the context. The message gives the sizes; the advice depends on the caller.
class ConversationTooLong : public Error {
 public:
  using Error::Error;
};

// How the next answer is generated and shown; /set changes it.
struct ChatSettings {
  SamplingParams sampling;
  AnswerFlags answer;
  nlohmann::ordered_json template_variables;  // object or null
  bool special_in_content = false;            // control tokens written in messages are tokens, not text
  ContentConstraint content;                  // what the answers must look like
  nlohmann::ordered_json tools;               // array or null; the model may call them
};

// The prompt of its timings is the whole conversation.
struct Turn : AnswerTimings {
  FinishReason finished = FinishReason::kNone;
  int dropped_turns = 0;  // forgotten because the context was full
};

class ChatSession {
 public:
  // The engine must outlive the session.
  ChatSession(Engine& engine, ChatTemplate chat_template, ChatSettings settings);

  ChatLog& log() { return log_; }
  const ChatLog& log() const { return log_; }
  ChatSettings& settings() { return settings_; }
  const ChatSettings& settings() const { return settings_; }
  const ChatTemplate& chat_template() const { return template_; }
  Engine& engine() { return engine_; }

  struct Listener {
    std::function<void(bool reasoning, std::string_view text)> text;
    std::function<void(const std::string& line)> note;
    std::function<bool()> interrupted;
    std::function<void(const Progress& progress)> step;  // after each step of the engine, before its text
  };
  // Answers the last user message. The answer becomes the last message of the log, even if it was interrupted or cut
  // off by the context. `attempt` > 0 varies a fixed seed. Throws TemplateError, ConversationTooLong or Error; the log
  // is then unchanged.
  Turn answer(const Listener& listener, int attempt = 0);

  // The conversation rendered as the next prompt, and its tokens.
  RenderedText render(const ChatLog& log) const;
  std::vector<TokenId> tokens() const { return encode(render(log_)); }
  // Throws ConversationTooLong if another user message that begins with `text` would leave no room for an answer, even
  // after forgetting all turns that may be forgotten.
  void check_room_for(const std::string& text) const;

  const std::vector<Turn>& turns() const { return turns_; }
  // Forgets the messages and their cache; keeps the system prompt.
  void reset();

 private:
  struct Generation;
  std::vector<TokenId> encode(const RenderedText& prompt) const;
  Conversation conversation_of(const ChatLog& log, bool add_generation_prompt) const;
  // A prompt that leaves room for an answer after the tokens already generated; drops turns if the settings allow it.
  // If not even one more token fits, returns nullopt and sets `too_long` to the message for the user.
  std::optional<RenderedText> fit(size_t n_generated, Turn& turn, const Listener& listener, std::string& too_long);
  void submit(const Generation& generation, const RenderedText& prompt);
  // Of an answer to `prompt`; null if it is free. Throws Error(kInvalidArgument) if the constraint does not compile.
  std::shared_ptr<const TokenMask> mask_for(const RenderedText& prompt, const Listener& listener);
  void generate(Generation& generation, const Listener& listener);
  int64_t room_for_answer() const;
  size_t kept_messages() const;                                   // at the start, whose turns are not forgotten
  ReasoningStart reasoning_of(const RenderedText& prompt) const;  // of an answer to `prompt`
  std::string too_long_message(int64_t n_prompt) const;

  Engine& engine_;
  ChatTemplate template_;
  TemplateTraits traits_;
  ChatSettings settings_;
  ChatLog log_;
  std::vector<Turn> turns_;
  std::shared_ptr<const ChatFormat> format_;
  AnswerGrammarCache grammars_;
  std::vector<std::string> warnings_;  // of the last constraint
  RequestId next_id_ = 1;
};

}  // namespace infer
