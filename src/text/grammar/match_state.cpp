#include "src/text/grammar/match_state.h"

#include <algorithm>
#include <unordered_set>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::grammar {

// Follows calls and returns from the readings until each can read a byte or a token.
class Closure {
 public:
  Closure(const Automaton& automaton, const Limits& limits) : automaton_(automaton), limits_(limits) {}

  void enter(uint32_t state, Stack stack) { rest_.push_back({state, std::move(stack)}); }

  // The fragment that was entered from the top of the stack has ended. Stacks pushed during a closure are never popped
  // in it, since every fragment reads something.
  void leave(const Stack& stack) {
    if (stack.empty()) {
      done_ = true;
      return;
    }
    const Frame& frame = stack.top();
    for (size_t i = 0; i < stack.n_below(); ++i) {
      if (!frame.is_loop) {
        enter(frame.to, stack.below(i));
        continue;
      }
      const LoopEdge& loop = automaton_.loop(frame.to);
      if (frame.need == 0) enter(loop.to, stack.below(i));
      if (frame.more == 0) continue;
      Frame next = frame;
      next.need -= frame.need > 0 ? 1 : 0;
      next.more -= frame.more != kUnbounded ? 1 : 0;
      enter(loop.start, stacks_.push(stack.below(i), next, loop.start));
    }
  }

  MatchState finish() {
    while (!rest_.empty()) {
      Reading reading = std::move(rest_.back());
      rest_.pop_back();
      if (add(reading)) follow(reading);
    }
    stacks_.finish();
    MatchState out;
    for (const Reading& reading : seen_) {
      if (!automaton_.bytes(reading.state).empty() || !automaton_.tokens(reading.state).empty())
        out.readings_.push_back(reading);
    }
    std::sort(out.readings_.begin(), out.readings_.end(), [](const Reading& a, const Reading& b) {
      return a.state != b.state ? a.state < b.state : a.stack.hash() < b.stack.hash();
    });
    if (done_) out.readings_.insert(out.readings_.begin(), Reading());
    return out;
  }

 private:
  // False if it was already there.
  bool add(const Reading& reading) {
    constexpr size_t kFew = 12;
    const uint64_t identity = StackBuilder::identity(reading.stack);
    const auto key = std::pair(identity, reading.state);
    if (seen_.size() < kFew) {
      if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return false;
    } else {
      if (key_set_.empty()) {
        for (const auto& [id, state] : keys_) key_set_.insert(id * 31 + state);
      }
      if (!key_set_.insert(identity * 31 + reading.state).second) return false;
    }
    keys_.push_back(key);
    if (seen_.size() >= limits_.stacks) {
      throw Error(ErrorCode::kInvalidArgument, concat("[grammar] expected at most ", grouped(limits_.stacks),
                                                      " ways to read the same text, found more"));
    }
    seen_.push_back(reading);
    return true;
  }

  void follow(const Reading& reading) {
    const auto [state, stack] = reading;
    for (const CallEdge& call : automaton_.calls(state)) {
      // A tail call: return directly to where the fragment itself returns.
      enter(call.start, automaton_.is_only_final(call.to) ? stack : stacks_.push(stack, {.to = call.to}, call.start));
    }
    const uint32_t first = automaton_.first_loop(state);
    for (uint32_t i = first; i < first + automaton_.n_loops(state); ++i) {
      const LoopEdge& loop = automaton_.loop(i);
      const uint32_t need = loop.min > 0 ? loop.min - 1 : 0;
      const uint32_t more = loop.max == kUnbounded ? kUnbounded : loop.max - 1;
      enter(loop.start, stacks_.push(stack, {.is_loop = true, .to = i, .need = need, .more = more}, loop.start));
    }
    if (automaton_.is_final(state)) leave(stack);
  }

  const Automaton& automaton_;
  const Limits& limits_;
  std::vector<Reading> rest_, seen_;
  std::vector<std::pair<uint64_t, uint32_t>> keys_;  // [seen]
  std::unordered_set<uint64_t> key_set_;             // the same, once there are many
  StackBuilder stacks_;
  bool done_ = false;
};

MatchState MatchState::start(const Automaton& automaton, const Limits& limits) {
  Closure closure(automaton, limits);
  if (automaton.start() != kNoId) closure.enter(automaton.start(), {});
  if (automaton.accepts_empty()) closure.leave({});
  return closure.finish();
}

MatchState MatchState::at(Reading reading) {
  MatchState out;
  out.readings_.push_back(std::move(reading));
  return out;
}

MatchState MatchState::after_byte(const Automaton& automaton, const Limits& limits, uint8_t byte) const {
  Closure closure(automaton, limits);
  for (const Reading& reading : readings_) {
    if (reading.state == Reading::kDone) continue;
    for (const ByteEdge& edge : automaton.bytes(reading.state)) {
      if (edge.first <= byte && byte <= edge.last) closure.enter(edge.to, reading.stack);
    }
  }
  return closure.finish();
}

std::pair<uint8_t, uint8_t> MatchState::alike(const Automaton& automaton, uint8_t byte) const {
  int first = 0, last = 255;
  for (const Reading& reading : readings_) {
    if (reading.state == Reading::kDone) continue;
    for (const ByteEdge& edge : automaton.bytes(reading.state)) {
      if (edge.last < byte) {
        first = std::max(first, edge.last + 1);
      } else if (edge.first > byte) {
        last = std::min(last, edge.first - 1);
      } else {
        first = std::max<int>(first, edge.first);
        last = std::min<int>(last, edge.last);
      }
    }
  }
  return {static_cast<uint8_t>(first), static_cast<uint8_t>(last)};
}

MatchState MatchState::after_token(const Automaton& automaton, const Limits& limits, TokenId token) const {
  Closure closure(automaton, limits);
  for (const Reading& reading : readings_) {
    if (reading.state == Reading::kDone) continue;
    for (const TokenEdge& edge : automaton.tokens(reading.state)) {
      if ((edge.literal.token == token) != edge.literal.negated) closure.enter(edge.to, reading.stack);
    }
  }
  return closure.finish();
}

MatchState MatchState::after_end(const Automaton& automaton, const Limits& limits, std::span<const Stack> stacks) {
  Closure closure(automaton, limits);
  for (const Stack& stack : stacks) closure.leave(stack);
  return closure.finish();
}

void MatchState::merge(const MatchState& other) {
  for (const Reading& reading : other.readings_) {
    if (std::find(readings_.begin(), readings_.end(), reading) == readings_.end()) readings_.push_back(reading);
  }
  std::sort(readings_.begin(), readings_.end(), [](const Reading& a, const Reading& b) {
    const bool a_done = a.state == Reading::kDone, b_done = b.state == Reading::kDone;
    if (a_done != b_done) return a_done;
    return a.state != b.state ? a.state < b.state : a.stack.hash() < b.stack.hash();
  });
}

uint64_t MatchState::hash() const {
  uint64_t hash = readings_.size();
  for (const Reading& reading : readings_)
    hash = (hash ^ (reading.stack.hash() + reading.state)) * 0x9E3779B97F4A7C15u + (hash >> 31);
  return hash;
}

}  // namespace infer::grammar
