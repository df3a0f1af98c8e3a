#include "src/text/grammar/rules.h"

#include <utility>

namespace infer::grammar {

ExprId Rules::add(Expr expr) {
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Rules::bytes(std::string_view text) {
  Expr e{.kind = Expr::Kind::kBytes};
  e.bytes = text;
  return add(std::move(e));
}

ExprId Rules::code_point(CodePoints set) {
  sets_.push_back(std::move(set));
  return add({.kind = Expr::Kind::kCodePoint, .a = static_cast<uint32_t>(sets_.size() - 1)});
}

ExprId Rules::sequence(std::vector<ExprId> children) {
  if (children.size() == 1) return children[0];
  Expr e{.kind = Expr::Kind::kSequence};
  e.children = std::move(children);
  return add(std::move(e));
}

ExprId Rules::choice(std::vector<ExprId> children) {
  if (children.size() == 1) return children[0];
  Expr e{.kind = Expr::Kind::kChoice};
  e.children = std::move(children);
  return add(std::move(e));
}

ExprId Rules::repeat(ExprId child, uint32_t min, uint32_t max) {
  Expr e{.kind = Expr::Kind::kRepeat, .min = min, .max = max};
  e.children = {child};
  return add(std::move(e));
}

ExprId Rules::rule(RuleId id) { return add({.kind = Expr::Kind::kRule, .a = id}); }

ExprId Rules::token(TokenLiteral literal) {
  tokens_.push_back(literal);
  return add({.kind = Expr::Kind::kToken, .a = static_cast<uint32_t>(tokens_.size() - 1)});
}

ExprId Rules::partial(std::vector<ExprId> children, uint32_t min) {
  Expr e{.kind = Expr::Kind::kPartial, .min = min};
  e.children = std::move(children);
  return add(std::move(e));
}

ExprId Rules::listed(ExprId separator, const std::vector<ExprId>& items, std::string flags, uint32_t min) {
  Expr e{.kind = Expr::Kind::kListed, .min = min};
  e.bytes = std::move(flags);
  e.children.push_back(separator);
  e.children.insert(e.children.end(), items.begin(), items.end());
  return add(std::move(e));
}

ExprId Rules::add_words(Expr expr, std::vector<std::string> words) {
  words_.push_back(std::move(words));
  expr.a = static_cast<uint32_t>(words_.size() - 1);
  return add(std::move(expr));
}

ExprId Rules::other_key(std::vector<std::string> words) {
  return add_words({.kind = Expr::Kind::kOtherKey}, std::move(words));
}

ExprId Rules::up_to(std::vector<std::string> words) { return add_words({.kind = Expr::Kind::kUpTo}, std::move(words)); }

ExprId Rules::without(std::vector<std::string> words) {
  return add_words({.kind = Expr::Kind::kWithout}, std::move(words));
}

ExprId Rules::not_beginning(std::vector<std::string> words) {
  return add_words({.kind = Expr::Kind::kWithout, .min = 1}, std::move(words));
}

uint32_t Rules::add_scan(ScanTable table) {
  scans_.push_back(std::move(table));
  return static_cast<uint32_t>(scans_.size() - 1);
}

ExprId Rules::scan(uint32_t table, bool ends_anywhere) {
  return add({.kind = Expr::Kind::kScan, .a = table, .min = ends_anywhere ? 1u : 0u});
}

RuleId Rules::declare(std::string name) {
  rules_.push_back({std::move(name)});
  return static_cast<RuleId>(rules_.size() - 1);
}

}  // namespace infer::grammar
