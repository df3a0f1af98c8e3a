// A grammar as written by its front ends (GBNF, JSON Schema): named rules, each an expression over bytes, code points,
// tokens and other rules. The compiler (automaton.h) turns it into an automaton. Built by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/grammar/code_points.h"
#include "src/text/vocabulary.h"

namespace infer::grammar {

using ExprId = uint32_t;
using RuleId = uint32_t;
inline constexpr uint32_t kUnbounded = UINT32_MAX;
inline constexpr uint32_t kNoId = UINT32_MAX;

// One token or, if `negated`, every token except this one and those that end generation.
struct TokenLiteral {
  TokenId token = kNoToken;
  bool negated = false;
  bool operator==(const TokenLiteral&) const = default;
};

// A deterministic automaton; state 0 is the beginning.
struct ScanTable {
  static constexpr uint32_t kStop = UINT32_MAX;  // the byte is not read
  std::vector<std::array<uint32_t, 256>> next;
  std::vector<bool> may_end;  // [n_states]
};

struct Expr {
  enum class Kind : uint8_t {
    kBytes,      // bytes
    kCodePoint,  // one code point of `sets[a]`, as UTF-8
    kSequence,   // children in order; none: the empty text
    kChoice,     // one of the children; none: matches nothing
    kRepeat,     // the only child, `min` to `max` times
    kRule,       // rule `a`
    kToken,      // the token `tokens[a]`
    kPartial,    // the first k children in order, for any k >= `min`
    // The other children in order, with children[0] as separator between those present. Those flagged kOptional may be
    // omitted, those flagged kRepeated may occur any number of times; at least `min` (0 or 1) must be present.
    kListed,
    kOtherKey,  // a JSON string's contents in canonical spelling, other than `words_[a]`
    kUpTo,      // any bytes up to and including the first occurrence of one of `words_[a]`
    kWithout,   // any bytes without an occurrence of `words_[a]`; `min` 1: that do not begin with one
    kScan,      // a text that takes `scans_[a]` to a state where it may end; `min` 1: to any state
  };
  Kind kind = Kind::kSequence;
  uint32_t a = 0;
  uint32_t min = 0, max = 0;
  std::string bytes = {};  // kListed: the flags of children 1...
  std::vector<ExprId> children = {};
};

inline constexpr char kRequired = 'r', kOptional = 'o', kRepeated = '*';

class Rules {
 public:
  ExprId bytes(std::string_view text);
  ExprId code_point(CodePoints set);
  ExprId sequence(std::vector<ExprId> children);
  ExprId choice(std::vector<ExprId> children);
  ExprId repeat(ExprId child, uint32_t min, uint32_t max);
  ExprId optional(ExprId child) { return repeat(child, 0, 1); }
  ExprId rule(RuleId id);
  ExprId token(TokenLiteral literal);
  ExprId partial(std::vector<ExprId> children, uint32_t min);
  ExprId listed(ExprId separator, const std::vector<ExprId>& items, std::string flags, uint32_t min);
  // The words are in the canonical spelling of json_text.h.
  ExprId other_key(std::vector<std::string> words);
  // Unconstrained text, see kUpTo and kWithout. `words`: at least one for up_to(), none empty.
  ExprId up_to(std::vector<std::string> words);
  ExprId without(std::vector<std::string> words);
  ExprId not_beginning(std::vector<std::string> words);
  // Expressions that share a table.
  uint32_t add_scan(ScanTable table);
  ExprId scan(uint32_t table, bool ends_anywhere);
  ExprId nothing() { return sequence({}); }
  ExprId never() { return choice({}); }

  // `name` stands for the rule in messages. Its expression is set later, once.
  RuleId declare(std::string name);
  void define(RuleId rule, ExprId expr) { rules_[rule].expr = expr; }
  void set_root(RuleId rule) { root_ = rule; }

  size_t n_rules() const { return rules_.size(); }
  const std::string& name(RuleId rule) const { return rules_[rule].name; }
  ExprId definition(RuleId rule) const { return rules_[rule].expr; }  // kNoId: none
  RuleId root() const { return root_; }
  size_t n_exprs() const { return exprs_.size(); }
  const Expr& expr(ExprId id) const { return exprs_[id]; }
  const CodePoints& set(const Expr& e) const { return sets_[e.a]; }
  const TokenLiteral& literal(const Expr& e) const { return tokens_[e.a]; }
  const ScanTable& scan_table(const Expr& e) const { return scans_[e.a]; }
  const std::vector<std::string>& words(const Expr& e) const { return words_[e.a]; }

 private:
  ExprId add(Expr expr);
  ExprId add_words(Expr expr, std::vector<std::string> words);

  struct Rule {
    std::string name;
    ExprId expr = kNoId;
  };
  std::vector<Rule> rules_;
  std::vector<Expr> exprs_;
  std::vector<CodePoints> sets_;
  std::vector<TokenLiteral> tokens_;
  std::vector<std::vector<std::string>> words_;
  std::vector<ScanTable> scans_;
  RuleId root_ = kNoId;
};

}  // namespace infer::grammar
