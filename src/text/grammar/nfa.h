// The nondeterministic automata of all rules of a grammar, built from their expressions: the compiler's intermediate
// form. All rules share one set of states; each rule has a start and an end. Used by one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/text/grammar/limits.h"
#include "src/text/grammar/rules.h"

namespace infer::grammar {

struct NfaEdge {
  enum class Kind : uint8_t { kEmpty, kByte, kCall, kLoop, kToken };
  Kind kind = Kind::kEmpty;
  uint8_t first = 0, last = 0;  // kByte
  uint32_t argument = 0;        // kCall: the fragment; kLoop: index into loops; kToken: index into tokens
  uint32_t to = 0;
  uint32_t next = kNoId;  // the next edge of the same state
};

// A part of the grammar that is entered by pushing a frame: a rule, or the body of a counted repetition.
struct Fragment {
  std::string name;
  uint32_t start = kNoId, end = kNoId;
};

struct CountedLoop {
  uint32_t body;  // fragment
  uint32_t min, max;
  bool operator==(const CountedLoop&) const = default;
};

class Nfa {
 public:
  // Rules with a single caller are inlined, so that alternatives with a common beginning are merged. Throws
  // Error(kInvalidArgument) if a limit is exceeded.
  Nfa(const Rules& rules, const Limits& limits);

  size_t n_states() const { return first_edge_.size(); }
  const std::vector<Fragment>& fragments() const { return fragments_; }
  const std::vector<CountedLoop>& loops() const { return loops_; }
  std::vector<CountedLoop>& loops() { return loops_; }
  const std::vector<TokenLiteral>& tokens() const { return tokens_; }
  uint32_t root() const { return root_; }

  template <typename Each>
  void for_each_edge(uint32_t state, Each each) const {
    for (uint32_t e = first_edge_[state]; e != kNoId; e = edges_[e].next) each(edges_[e]);
  }

 private:
  uint32_t add_state();
  void add_edge(uint32_t from, NfaEdge edge);
  void link(uint32_t from, uint32_t to) { add_edge(from, {.to = to}); }
  uint32_t fragment_of(RuleId rule);

  void count_calls();
  void build_fragments();
  bool may_inline(RuleId rule) const;
  // Builds an expression that begins at `from`; returns the state in which it ends.
  uint32_t build(ExprId id, uint32_t from);
  uint32_t build_bytes(std::string_view bytes, uint32_t from);
  uint32_t build_code_point(const CodePoints& set, uint32_t from);
  uint32_t build_choice(const Expr& e, uint32_t from);
  uint32_t build_words(const std::vector<std::string_view>& words, uint32_t from);
  uint32_t build_repeat(const Expr& e, uint32_t from);
  uint32_t build_unbounded(const Expr& e, uint32_t from);
  uint32_t build_counted(const Expr& e, uint32_t from);
  uint32_t build_call(RuleId rule, uint32_t from);
  uint32_t build_partial(const Expr& e, uint32_t from);
  uint32_t build_listed(const Expr& e, uint32_t from);
  uint32_t build_other_key(const std::vector<std::string>& words, uint32_t from);
  uint32_t build_scan(const Expr& e, uint32_t from);
  uint32_t build_free_text(const Expr& e, uint32_t from);
  size_t size_of(ExprId id, size_t limit) const;

  const Rules& rules_;
  const Limits& limits_;
  std::vector<uint32_t> first_edge_;  // [n_states]
  std::vector<NfaEdge> edges_;
  std::vector<Fragment> fragments_;
  std::vector<ExprId> unbuilt_;                   // [n_fragments], in order; loop bodies are appended while building
  std::vector<uint32_t> fragment_of_rule_;        // [n_rules]
  std::unordered_map<ExprId, uint32_t> body_of_;  // repeated expression -> fragment
  std::vector<uint32_t> calls_;                   // [n_rules]: how many expressions refer to the rule
  std::vector<bool> inlined_;                     // [n_rules]
  std::vector<CountedLoop> loops_;
  std::vector<TokenLiteral> tokens_;
  uint32_t root_ = kNoId;
  uint32_t building_ = 0;  // the fragment
  size_t n_built_ = 0;
  size_t depth_ = 0;
};

}  // namespace infer::grammar
