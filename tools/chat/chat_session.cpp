#include "tools/chat/chat_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ggml-like/error.h"
#include "src/text/detokenizer.h"
#include "src/text/prompt_tokens.h"
#include "src/text/reasoning.h"
#include "src/text/stop_strings.h"

namespace infer {
namespace {

constexpr uint64_t kConversation = 1;  // the engine serves this chat alone

std::string text_of(const Tokenizer& tokenizer, TokenId token) {
  return token == kNoToken ? "" : std::string(tokenizer.piece(token, true));
}

bool is_reasoning_tag(std::string_view text) {
  return std::any_of(reasoning_tags().begin(), reasoning_tags().end(),
                     [&](const ReasoningTags& tags) { return text == tags.open || text == tags.close; });
}

// What is shown of a token: control tokens only where they mark reasoning.
std::string_view shown_piece(const Tokenizer& tokenizer, TokenId token) {
  const std::string_view full = tokenizer.piece(token, true);
  return is_reasoning_tag(full) ? full : tokenizer.piece(token, false);
}

}  // namespace

// An answer under way.
struct ChatSession::Generation {
  Turn turn;
  int attempt = 0;
  std::vector<TokenId> tokens;  // generated so far
  Detokenizer detokenizer;
  StopStrings stops;
  ReasoningSplitter splitter;
  ChatMessage message{"assistant", {}, {}};

  void take(const std::vector<ReasoningSplitter::Part>& parts, const Listener& listener) {
    for (const auto& part : parts) {
      (part.reasoning ? message.reasoning : message.content) += part.text;
      listener.text(part.reasoning, part.text);
    }
  }
};

ChatSession::ChatSession(Engine& engine, ChatTemplate chat_template, ChatSettings settings)
    : engine_(engine),
      template_(std::move(chat_template)),
      traits_(template_.traits()),
      settings_(std::move(settings)) {
  find_end_of_answers();
}

// Renders a conversation with an answer in it. What follows the answer is how the template ends one: usually an
// end-of-generation token, else something that the model will write as well.
void ChatSession::find_end_of_answers() {
  constexpr std::string_view kProbe = "Zq7probe", kSpace = " \t\r\n";
  ChatLog probe;
  probe.add("user", "hello");
  probe.add("assistant", std::string(kProbe));
  std::string text;
  try {
    text = template_.render(conversation_of(probe, false));
  } catch (const Error&) {
    return;  // a template that does not take this conversation says so when it is used
  }
  const size_t at = text.rfind(kProbe);
  if (at == std::string::npos) return;
  text.erase(0, at + kProbe.size());
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return;
  text = text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
  const Tokenizer& tokenizer = engine_.tokenizer();
  const std::vector<TokenId> tokens = tokenizer.encode(text, false, true);
  const auto is = [&](bool (Tokenizer::*kind)(TokenId) const) {
    return std::find_if(tokens.begin(), tokens.end(), [&](TokenId t) { return (tokenizer.*kind)(t); });
  };
  if (is(&Tokenizer::is_eog) != tokens.end()) return;
  const auto control = is(&Tokenizer::is_control);
  if (control == tokens.end()) {
    end_text_ = text;
  } else {
    end_token_ = *control;
  }
}

Conversation ChatSession::conversation_of(const ChatLog& log, bool add_generation_prompt) const {
  Conversation conversation;
  conversation.messages = log.to_json(!traits_.system_role);
  conversation.add_generation_prompt = add_generation_prompt;
  conversation.bos_token = text_of(engine_.tokenizer(), engine_.tokenizer().vocabulary().bos);
  conversation.eos_token = text_of(engine_.tokenizer(), engine_.tokenizer().vocabulary().eos);
  conversation.variables = settings_.template_variables;
  return conversation;
}

std::string ChatSession::render() const { return template_.render(conversation_of(log_, true)); }

std::vector<TokenId> ChatSession::encode(const std::string& prompt) const {
  return encode_rendered_prompt(engine_.tokenizer(), prompt);
}

// With kShiftTurns turns are dropped until an answer of some length fits, not just one token.
int64_t ChatSession::room_for_answer() const {
  if (settings_.overflow == ContextOverflow::kStop) return 1;
  const int64_t quarter = std::max<int64_t>(engine_.context() / 4, 1);
  return settings_.max_tokens < 0 ? quarter : std::clamp<int64_t>(settings_.max_tokens, 1, quarter);
}

std::optional<std::string> ChatSession::fit(size_t n_generated, Turn& turn, const Listener& listener,
                                            std::string& too_long) {
  int dropped = 0;
  for (;;) {
    std::string prompt = render();
    const int64_t n = static_cast<int64_t>(encode(prompt).size() + n_generated);
    const bool fits = n + room_for_answer() <= engine_.context();
    if (!fits && settings_.overflow == ContextOverflow::kShiftTurns && log_.drop_oldest_turn()) {
      ++dropped;
      continue;
    }
    if (dropped > 0) {
      turn.dropped_turns += dropped;
      listener.note(concat("The context of ", engine_.context(), " tokens is full: the ",
                           dropped == 1 ? std::string("oldest turn is") : concat(dropped, " oldest turns are"),
                           " forgotten."));
    }
    if (n + 1 <= engine_.context()) return prompt;
    too_long = concat("[chat] a conversation of at most ", engine_.context() - 1, " tokens (the context, -c), found ",
                      n, "; /undo, /reset, a shorter message or --context-overflow shift-turns help");
    return std::nullopt;
  }
}

void ChatSession::submit(const Generation& g, const std::string& prompt) {
  Request request;
  request.id = next_id_++;
  request.prompt = encode(prompt);
  request.prompt.insert(request.prompt.end(), g.tokens.begin(), g.tokens.end());
  request.sampling = settings_.sampling;
  if (request.sampling.seed) *request.sampling.seed += static_cast<uint64_t>(g.attempt);
  request.max_new_tokens = settings_.max_tokens;
  if (settings_.max_tokens >= 0) request.max_new_tokens -= static_cast<int32_t>(g.tokens.size());
  request.ignore_eog = settings_.ignore_eog;
  if (end_token_ != kNoToken) request.stop_tokens.push_back(end_token_);
  request.conversation = kConversation;
  if (!engine_.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[chat] the queue is full");
}

Turn ChatSession::answer(const Listener& listener, int attempt) {
  const ChatLog before = log_;
  try {
    Turn turn;
    std::string too_long;
    std::optional<std::string> prompt = fit(0, turn, listener, too_long);
    if (!prompt) throw Error(ErrorCode::kInvalidArgument, too_long);
    std::vector<std::string> stops = settings_.stop;
    stops.push_back(end_text_);
    Generation g{turn, attempt, {}, {}, StopStrings(stops), ReasoningSplitter(*prompt)};
    while (prompt) {
      submit(g, *prompt);
      generate(g, listener);
      const bool full = g.turn.finished == FinishReason::kContextFull;
      if (!full || settings_.overflow == ContextOverflow::kStop) break;
      // The answer goes on after older turns are forgotten, unless it fills the context all by itself.
      prompt = fit(g.tokens.size(), g.turn, listener, too_long);
    }
    g.take(g.splitter.add(g.stops.add(g.detokenizer.flush()) + g.stops.flush()), listener);
    g.take(g.splitter.flush(), listener);
    g.turn.generated_tokens = static_cast<int64_t>(g.tokens.size());
    log_.messages.push_back(std::move(g.message));
    turns_.push_back(g.turn);
    return g.turn;
  } catch (...) {
    engine_.cancel(next_id_ - 1);
    log_ = before;
    throw;
  }
}

// Runs the submitted request to its end.
void ChatSession::generate(Generation& g, const Listener& listener) {
  const RequestId id = next_id_ - 1;
  const EngineStats before = engine_.stats();
  bool first = g.tokens.empty();
  while (!engine_.idle()) {
    if (listener.interrupted()) {
      engine_.cancel(id);
      g.turn.finished = FinishReason::kCancelled;
      break;
    }
    for (const Progress& p : engine_.step()) {
      if (std::exchange(first, false)) {
        g.turn.prompt_tokens = p.prompt_tokens;
        g.turn.cached_tokens = p.cached_tokens;
      }
      g.turn.finished = p.finished;
      for (const TokenId token : p.tokens) {
        g.tokens.push_back(token);
        const std::string text = g.detokenizer.add(shown_piece(engine_.tokenizer(), token));
        g.take(g.splitter.add(g.stops.add(text)), listener);
      }
    }
    if (g.stops.stopped()) {
      engine_.cancel(id, FinishReason::kStopString);
      g.turn.finished = FinishReason::kStopString;
      break;
    }
  }
  const EngineStats& after = engine_.stats();
  g.turn.computed_tokens += after.prompt_tokens - before.prompt_tokens;
  g.turn.decode_steps += after.decode_steps - before.decode_steps;
  g.turn.prompt_seconds += after.prompt_seconds - before.prompt_seconds;
  g.turn.decode_seconds += after.decode_seconds - before.decode_seconds;
}

void ChatSession::reset() {
  log_.messages.clear();
  turns_.clear();
  engine_.forget(kConversation);
}

}  // namespace infer
