// A compiled grammar and the queries on it. Immutable: one grammar serves any number of requests and threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/limits.h"
#include "src/text/grammar/match_state.h"
#include "src/text/vocabulary.h"

namespace infer::grammar {

// How a text relates to a grammar.
enum class Match {
  kAccept,  // a sentence of the grammar; more text may be possible
  kPrefix,  // not a sentence, but some continuation is
  kReject,  // no continuation is a sentence
};

const char* match_name(Match match);  // "accept", "prefix" or "reject"

class Grammar {
 public:
  // Throws Error(kInvalidArgument), see Automaton::compile.
  explicit Grammar(const Rules& rules, const Limits& limits = {});

  const Automaton& automaton() const { return automaton_; }
  const Limits& limits() const { return limits_; }

  const MatchState& start() const { return start_; }
  MatchState after(MatchState state, std::string_view bytes) const;
  Match match(std::string_view text) const;
  // The bytes that must follow as long as there is only one choice; at most `limit`.
  std::string forced(const MatchState& state, size_t limit) const;
  // The same, but optional white space is guessed to be one space after a colon or comma, and none elsewhere. `last`:
  // the byte before. A guess is never the last byte.
  std::string likely(const MatchState& state, char last, size_t limit) const;
  // The token literal that must follow; kNoToken if something else may.
  TokenId forced_token(const MatchState& state) const;

 private:
  std::string follow(MatchState state, char last, bool guesses, size_t limit) const;

  Limits limits_;
  Automaton automaton_;
  MatchState start_;
};

}  // namespace infer::grammar
