#include "src/text/grammar/grammar.h"

#include <optional>

namespace infer::grammar {
namespace {

// The only byte that can follow; nullopt if several or none can, or if the text may end.
std::optional<uint8_t> only_byte(const Automaton& automaton, const MatchState& state) {
  std::optional<uint8_t> only;
  for (const Reading& reading : state.readings()) {
    if (reading.state == Reading::kDone || !automaton.tokens(reading.state).empty()) return std::nullopt;
    for (const ByteEdge& edge : automaton.bytes(reading.state)) {
      if (edge.first != edge.last || (only && *only != edge.first)) return std::nullopt;
      only = edge.first;
    }
  }
  return only;
}

}  // namespace

const char* match_name(Match match) {
  switch (match) {
    case Match::kAccept:
      return "accept";
    case Match::kPrefix:
      return "prefix";
    case Match::kReject:
      return "reject";
  }
  return "";
}

Grammar::Grammar(const Rules& rules, const Limits& limits)
    : limits_(limits), automaton_(Automaton::compile(rules, limits)), start_(MatchState::start(automaton_, limits_)) {}

MatchState Grammar::after(MatchState state, std::string_view bytes) const {
  for (const char c : bytes) {
    if (state.is_dead()) break;
    state = state.after_byte(automaton_, limits_, static_cast<uint8_t>(c));
  }
  return state;
}

Match Grammar::match(std::string_view text) const {
  const MatchState state = after(start(), text);
  return state.is_dead() ? Match::kReject : state.can_end() ? Match::kAccept : Match::kPrefix;
}

std::string Grammar::forced(MatchState state, size_t limit) const {
  std::string bytes;
  while (bytes.size() < limit) {
    const std::optional<uint8_t> byte = only_byte(automaton_, state);
    if (!byte) break;
    bytes += static_cast<char>(*byte);
    state = state.after_byte(automaton_, limits_, *byte);
  }
  return bytes;
}

}  // namespace infer::grammar
