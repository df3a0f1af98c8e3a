#include "src/text/grammar/grammar.h"

#include <optional>

namespace infer::grammar {
namespace {

// The bytes that can follow, in as much detail as follow() needs.
struct NextBytes {
  std::optional<uint8_t> text, space;
  bool several = false;         // bytes of text
  bool several_spaces = false;  // kinds of white space
  bool has_blank = false;       // ' ' is among them
  bool otherwise = false;       // the text may end, or a token literal may follow

  void add(uint8_t byte) {
    const bool is_space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    std::optional<uint8_t>& one = is_space ? space : text;
    if (one && *one != byte) (is_space ? several_spaces : several) = true;
    one = byte;
    has_blank = has_blank || byte == ' ';
  }
};

NextBytes next_bytes(const Automaton& automaton, const MatchState& state) {
  NextBytes next;
  for (const Reading& reading : state.readings()) {
    if (reading.state == Reading::kDone || !automaton.tokens(reading.state).empty()) {
      next.otherwise = true;
      return next;
    }
    for (const ByteEdge& edge : automaton.bytes(reading.state)) {
      for (int byte = edge.first; byte <= edge.last && !next.several; ++byte) next.add(static_cast<uint8_t>(byte));
      if (next.several) return next;
    }
  }
  return next;
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

std::string Grammar::follow(MatchState state, char last, bool guesses, size_t limit) const {
  std::string bytes;
  size_t n_certain = 0;  // up to the last byte that was not guessed
  while (bytes.size() < limit) {
    const NextBytes next = next_bytes(automaton_, state);
    if (next.otherwise || next.several || (!next.text && next.several_spaces)) break;
    const bool optional = next.text && next.space;
    const bool indents = next.has_blank && (last == '\n' || last == ' ' || last == '\t');
    if (optional && (!guesses || indents)) break;
    const bool blank = optional && next.has_blank && (last == ':' || last == ',');
    if (!next.text && !next.space) break;
    last = static_cast<char>(blank ? ' ' : next.text ? *next.text : *next.space);
    bytes += last;
    if (!blank) n_certain = bytes.size();
    state = state.after_byte(automaton_, limits_, static_cast<uint8_t>(last));
  }
  bytes.resize(n_certain);
  return bytes;
}

std::string Grammar::forced(const MatchState& state, size_t limit) const { return follow(state, 0, false, limit); }

std::string Grammar::likely(const MatchState& state, char last, size_t limit) const {
  return follow(state, last, true, limit);
}

TokenId Grammar::forced_token(const MatchState& state) const {
  TokenId token = kNoToken;
  for (const Reading& reading : state.readings()) {
    if (reading.state == Reading::kDone || !automaton_.bytes(reading.state).empty()) return kNoToken;
    for (const TokenEdge& edge : automaton_.tokens(reading.state)) {
      if (edge.literal.negated || (token != kNoToken && token != edge.literal.token)) return kNoToken;
      token = edge.literal.token;
    }
  }
  return token;
}

}  // namespace infer::grammar
