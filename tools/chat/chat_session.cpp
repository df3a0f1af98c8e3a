#include "tools/chat/chat_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/server/conversation.h"
#include "src/text/answer_text.h"
#include "src/text/prompt_tokens.h"
#include "src/text/reasoning_budget.h"

namespace infer {
namespace {

constexpr uint64_t kConversation = 1;  // the engine serves only this chat

}  // namespace

// An answer being generated.
struct ChatSession::Generation {
  Turn turn;
  int attempt = 0;
  AnswerRules rules;
  AnswerText text;
  std::shared_ptr<const TokenMask> mask;
  std::vector<TokenId> tokens;  // generated so far
  ChatMessage message{.role = "assistant", .content = {}, .reasoning = {}};

  void take(const AnswerDelta& delta, const Listener& listener) {
    message.reasoning += delta.reasoning;
    message.content += delta.content;
    if (!delta.reasoning.empty()) listener.text(true, delta.reasoning);
    if (!delta.content.empty()) listener.text(false, delta.content);
    for (const MessageDelta& part : delta.calls) {
      nlohmann::ordered_json& calls = message.more["tool_calls"];
      if (!part.id.empty()) {
        calls.push_back(
            {{"id", part.id}, {"type", "function"}, {"function", {{"name", part.name}, {"arguments", ""}}}});
      }
      calls[part.index]["function"]["arguments"].get_ref<std::string&>() += part.text;
    }
  }
};

ChatSession::ChatSession(Engine& engine, ChatTemplate chat_template, ChatSettings settings)
    : engine_(engine),
      template_(std::move(chat_template)),
      traits_(template_.traits()),
      settings_(std::move(settings)),
      format_(std::make_shared<const ChatFormat>(find_chat_format(template_, engine.tokenizer()))),
      grammars_(engine.tokenizer(), static_cast<size_t>(engine.model().config().n_vocab), format_) {}

Conversation ChatSession::conversation_of(const ChatLog& log, bool add_generation_prompt) const {
  Conversation conversation;
  conversation.messages = log.to_json(!traits_.system_role);
  fit_to_template(conversation, traits_);
  conversation.add_generation_prompt = add_generation_prompt;
  conversation.bos_token = bos_text(engine_.tokenizer());
  conversation.eos_token = eos_text(engine_.tokenizer());
  conversation.variables = settings_.answer.reasoning.variables(settings_.template_variables);
  if (!settings_.tools.empty()) conversation.tools = settings_.tools;
  set_default_variables(conversation, traits_);
  return conversation;
}

RenderedText ChatSession::render(const ChatLog& log) const {
  RenderedText prompt = template_.render_marked(conversation_of(log, true));
  if (settings_.special_in_content) prompt.from_caller.clear();
  return prompt;
}

std::vector<TokenId> ChatSession::encode(const RenderedText& prompt) const {
  return encode_rendered_prompt(engine_.tokenizer(), prompt);
}

std::string ChatSession::too_long_message(int64_t n_prompt) const {
  // The shortest answer is one token.
  return concat("The conversation needs ", grouped(static_cast<uint64_t>(n_prompt + 1)), " tokens; the context holds ",
                grouped(static_cast<uint64_t>(engine_.context())), ".");
}

void ChatSession::check_room_for(const std::string& text) const {
  ChatLog log = log_;
  if (settings_.answer.shifts_turns()) log.messages.clear();
  log.add("user", text);
  const int64_t n = static_cast<int64_t>(encode(render(log)).size());
  if (n + 1 > engine_.context()) throw ConversationTooLong(ErrorCode::kInvalidArgument, too_long_message(n));
}

// With shift-turns, turns are dropped until an answer of useful length fits, not just one token.
int64_t ChatSession::room_for_answer() const {
  if (!settings_.answer.shifts_turns()) return 1;
  const int64_t quarter = std::max<int64_t>(engine_.context() / 4, 1);
  return settings_.answer.n_predict < 0 ? quarter : std::clamp<int64_t>(settings_.answer.n_predict, 1, quarter);
}

size_t ChatSession::kept_messages() const {
  if (settings_.answer.keep <= 0) return settings_.answer.keep < 0 ? 1 : 0;
  ChatLog start = log_;
  for (size_t n = 0; n < log_.messages.size(); ++n) {
    // A template may reject a conversation that ends here; it then has no tokens of its own to count.
    start.messages.assign(log_.messages.begin(), log_.messages.begin() + static_cast<ptrdiff_t>(n));
    const size_t begins_at = n == 0 ? 0 : encode(template_.render_marked(conversation_of(start, false))).size();
    if (begins_at >= static_cast<size_t>(settings_.answer.keep)) return n;
  }
  return log_.messages.size();
}

std::optional<RenderedText> ChatSession::fit(size_t n_generated, Turn& turn, const Listener& listener,
                                             std::string& too_long) {
  const size_t kept = settings_.answer.shifts_turns() ? kept_messages() : 0;
  int dropped = 0;
  for (;;) {
    RenderedText prompt = render(log_);
    const int64_t n = static_cast<int64_t>(encode(prompt).size() + n_generated);
    const bool fits = n + room_for_answer() <= engine_.context();
    if (!fits && settings_.answer.shifts_turns() && log_.drop_oldest_turn(kept)) {
      ++dropped;
      continue;
    }
    if (dropped > 0) {
      turn.dropped_turns += dropped;
      listener.note(
          concat("The context of ", grouped(static_cast<uint64_t>(engine_.context())), " tokens is full: the ",
                 dropped == 1 ? std::string("oldest turn is") : concat(dropped, " oldest turns are"), " forgotten."));
    }
    if (n + 1 <= engine_.context()) return prompt;
    too_long = too_long_message(n);
    return std::nullopt;
  }
}

void ChatSession::submit(const Generation& g, const RenderedText& prompt) {
  Request request;
  request.id = next_id_++;
  request.prompt = encode(prompt);
  request.prompt.insert(request.prompt.end(), g.tokens.begin(), g.tokens.end());
  request.sampling = settings_.sampling;
  if (request.sampling.seed) *request.sampling.seed += static_cast<uint64_t>(g.attempt);
  request.max_new_tokens = settings_.answer.n_predict;
  if (settings_.answer.n_predict >= 0) request.max_new_tokens -= static_cast<int32_t>(g.tokens.size());
  request.ignore_eog = settings_.answer.ignore_eos;
  request.stop_tokens = g.rules.stop_tokens;
  if (g.mask) {
    std::unique_ptr<TokenMask> mask = g.mask->clone();
    for (const TokenId token : g.tokens) mask->accept(token);
    request.mask = std::move(mask);
  }
  request.conversation = kConversation;
  if (!engine_.submit(std::move(request))) throw Error(ErrorCode::kOutOfMemory, "[chat] the queue is full");
}

ReasoningStart ChatSession::reasoning_of(const RenderedText& prompt) const {
  return reasoning_start(prompt.text, template_.source(), format_->calls);
}

std::shared_ptr<const TokenMask> ChatSession::mask_for(const RenderedText& prompt, const Listener& listener) {
  const auto limited = [&](std::shared_ptr<const TokenMask> mask) {
    return limit_reasoning(std::move(mask), reasoning_of(prompt), settings_.answer.reasoning.limit(),
                           engine_.tokenizer(), format_);
  };
  AnswerConstraint constraint;
  constraint.content = settings_.content;
  if (!settings_.tools.empty() && format_->calls.writes_calls()) {
    constraint.calls = {CallConstraint::Mode::kAllowed, settings_.tools, true};
  }
  if (constraint.free()) return limited(nullptr);
  constraint.reasoning = reasoning_of(prompt);
  AnswerGrammarCache::Entry entry = grammars_.get(constraint, true);
  // Once, not with every answer.
  if (entry.warnings != warnings_) {
    for (const std::string& warning : entry.warnings) listener.note("warning: " + warning);
  }
  warnings_ = std::move(entry.warnings);
  return limited(AnswerGrammarCache::mask(entry));
}

Turn ChatSession::answer(const Listener& listener, int attempt) {
  const ChatLog before = log_;
  try {
    Turn turn;
    std::string too_long;
    std::optional<RenderedText> prompt = fit(0, turn, listener, too_long);
    if (!prompt) throw ConversationTooLong(ErrorCode::kInvalidArgument, too_long);
    const AnswerRules rules =
        chat_rules(settings_.answer.stop, {}, {format_, prompt->text, ToolSet(settings_.tools), concat(next_id_)});
    Generation g{turn, attempt, rules, AnswerText(engine_.tokenizer(), rules), mask_for(*prompt, listener), {}};
    while (prompt) {
      submit(g, *prompt);
      generate(g, listener);
      const bool full = g.turn.finished == FinishReason::kContextFull;
      if (!full || !settings_.answer.shifts_turns()) break;
      // The answer continues after older turns are forgotten, unless it fills the context by itself.
      prompt = fit(g.tokens.size(), g.turn, listener, too_long);
    }
    AnswerDelta rest;
    const bool cut_off = g.turn.finished == FinishReason::kMaxTokens || g.turn.finished == FinishReason::kContextFull;
    g.text.finish(rest, cut_off);
    g.take(rest, listener);
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
      listener.step(p);
      if (std::exchange(first, false)) {
        g.turn.prompt_tokens = p.prompt_tokens;
        g.turn.cached_tokens = p.cached_tokens;
      }
      g.turn.finished = p.finished;
      AnswerDelta delta;
      const size_t n = g.text.add(p.tokens, p.finished == FinishReason::kEndOfGeneration, delta);
      g.tokens.insert(g.tokens.end(), p.tokens.begin(), p.tokens.begin() + static_cast<ptrdiff_t>(n));
      g.take(delta, listener);
    }
    if (g.text.stopped()) {
      engine_.cancel(id, FinishReason::kStopString);
      g.turn.finished = FinishReason::kStopString;
      break;
    }
  }
  const EngineStats& after = engine_.stats();
  g.turn.computed_tokens += after.prompt_tokens - before.prompt_tokens;
  g.turn.decode_tokens += after.decode_tokens - before.decode_tokens;
  g.turn.prompt_seconds += after.prompt_seconds - before.prompt_seconds;
  g.turn.decode_seconds += after.decode_seconds - before.decode_seconds;
}

void ChatSession::reset() {
  log_.messages.clear();
  turns_.clear();
  engine_.forget(kConversation);
}

}  // namespace infer
