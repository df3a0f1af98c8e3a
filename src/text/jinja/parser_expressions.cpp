#include <charconv>
#include <cstdlib>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/parser_impl.h"

namespace infer::jinja {
namespace {

constexpr size_t kMaxNamed = 255;  // per call

}  // namespace

Expression Parser::binary(NodeKind kind, uint32_t line, Expression left, Expression right, BinaryOp op) {
  auto* node = make<Binary>(kind, line, left, right);
  node->op = op;
  return over(node, {left, right});
}

Expression Parser::parse_expression(bool with_condition) {
  const Nested nested(*this);
  return with_condition ? parse_condition() : parse_or();
}

Expression Parser::parse_condition() {
  uint32_t line = current_.line;
  Expression value = parse_or();
  while (skip_name("if")) {
    auto* node = make<Conditional>(line);
    node->yes = value;
    ++soft_;
    node->test = parse_or();
    if (skip_name("else")) {
      const Nested nested(*this);
      node->no = parse_condition();
    }
    --soft_;
    value = over(node, {node->test, node->yes, node->no});
    line = current_.line;
  }
  return value;
}

Expression Parser::parse_or() {
  const uint32_t line = current_.line;
  Expression left = parse_and();
  while (skip_name("or")) left = binary(NodeKind::kOr, line, left, parse_and());
  return left;
}

Expression Parser::parse_and() {
  const uint32_t line = current_.line;
  Expression left = parse_not();
  while (skip_name("and")) left = binary(NodeKind::kAnd, line, left, parse_not());
  return left;
}

Expression Parser::parse_not() {
  if (!current_.is_name("not")) return parse_compare();
  const Nested nested(*this);
  const uint32_t line = take().line;
  const Expression operand = parse_not();
  return over(make<Unary>(NodeKind::kNot, line, operand), {operand});
}

Expression Parser::parse_compare() {
  struct Row {
    std::string_view text;
    CompareOp op;
  };
  static constexpr Row kRows[] = {{"==", CompareOp::kEqual},        {"!=", CompareOp::kNotEqual},
                                  {"<=", CompareOp::kLessEqual},    {"<", CompareOp::kLess},
                                  {">=", CompareOp::kGreaterEqual}, {">", CompareOp::kGreater}};
  const uint32_t line = current_.line;
  const Expression first = parse_sum();
  Compare* node = nullptr;
  for (;;) {
    std::optional<CompareOp> op;
    if (current_.kind == TokenKind::kOperator) {
      for (const Row& row : kRows) {
        if (current_.text == row.text) op = row.op;
      }
      if (op) take();
    } else if (skip_name("in")) {
      op = CompareOp::kIn;
    } else if (current_.is_name("not") && look().is_name("in")) {
      take();
      take();
      op = CompareOp::kNotIn;
    }
    if (!op) return node ? node : first;
    if (!node) node = over(make<Compare>(line, first), {first});
    const Expression right = parse_sum();
    node->rest.emplace_back(*op, right);
    raise(node, right);
  }
}

Expression Parser::parse_sum() {
  const uint32_t line = current_.line;
  Expression left = parse_concat();
  for (;;) {
    if (skip_operator("+")) left = binary(NodeKind::kBinary, line, left, parse_concat(), BinaryOp::kAdd);
    else if (skip_operator("-")) left = binary(NodeKind::kBinary, line, left, parse_concat(), BinaryOp::kSubtract);
    else return left;
  }
}

Expression Parser::parse_concat() {
  const uint32_t line = current_.line;
  const Expression first = parse_product();
  if (!current_.is_operator("~")) return first;
  auto* node = make<Sequence>(NodeKind::kConcat, line);
  node->items.push_back(first);
  while (skip_operator("~")) node->items.push_back(parse_product());
  raise(node, node->items);
  return node;
}

Expression Parser::parse_product() {
  const uint32_t line = current_.line;
  Expression left = parse_power();
  for (;;) {
    if (skip_operator("*")) left = binary(NodeKind::kBinary, line, left, parse_power(), BinaryOp::kMultiply);
    else if (skip_operator("/")) left = binary(NodeKind::kBinary, line, left, parse_power(), BinaryOp::kDivide);
    else if (skip_operator("//")) left = binary(NodeKind::kBinary, line, left, parse_power(), BinaryOp::kFloorDivide);
    else if (skip_operator("%")) left = binary(NodeKind::kBinary, line, left, parse_power(), BinaryOp::kModulo);
    else return left;
  }
}

Expression Parser::parse_power() {
  const uint32_t line = current_.line;
  Expression left = parse_unary();
  while (skip_operator("**")) left = binary(NodeKind::kBinary, line, left, parse_unary(), BinaryOp::kPower);
  return left;
}

Expression Parser::parse_unary(bool with_filter) {
  const uint32_t line = current_.line;
  Expression node = nullptr;
  if (current_.is_operator("-") || current_.is_operator("+")) {
    const Nested nested(*this);
    const NodeKind kind = take().text == "-" ? NodeKind::kNegate : NodeKind::kPlus;
    const Expression operand = parse_unary(false);
    node = over(make<Unary>(kind, line, operand), {operand});
  } else {
    node = parse_primary();
  }
  node = parse_postfix(node);
  return with_filter ? parse_filters_and_tests(node) : node;
}

// A macro whose body uses one of these names accepts the corresponding extra arguments.
void Parser::note_name(std::string_view name) {
  for (Macro* macro : macros_) {
    if (name == "caller") macro->uses_caller = true;
    if (name == "kwargs") macro->uses_kwargs = true;
    if (name == "varargs") macro->uses_varargs = true;
  }
}

Expression Parser::parse_number() {
  const Token token = take();
  auto* node = make<Literal>(token.line);
  if (token.kind == TokenKind::kFloat) {
    node->type = Kind::kFloat;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), node->real);
    // from_chars leaves the value unchanged when it is out of range.
    if (node->real == 0) node->real = std::strtod(token.text.c_str(), nullptr);
    return node;
  }
  node->type = Kind::kInt;
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  const char prefix = token.text.size() > 2 ? static_cast<char>(begin[1] | 0x20) : '0';
  const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
  if (std::from_chars(base == 10 ? begin : begin + 2, end, node->number, base).ec != std::errc()) {
    fail(concat("the number ", token.text.substr(0, 40), " does not fit in 64 bits"), token.line);
  }
  return node;
}

Expression Parser::parse_primary(bool with_namespace) {
  switch (current_.kind) {
    case TokenKind::kName: {
      const Token token = take();
      const std::string& name = token.text;
      const bool is_true = name == "true" || name == "True";
      if (is_true || name == "false" || name == "False") {
        auto* node = make<Literal>(token.line);
        node->type = Kind::kBool;
        node->number = is_true;
        return node;
      }
      if (name == "none" || name == "None") return make<Literal>(token.line);
      if (with_namespace && current_.is_operator(".")) {
        take();
        const Token attribute = expect_name();
        return make<NamespaceTarget>(token.line, tree_->symbol(name), string_literal(attribute.line, attribute.text));
      }
      note_name(name);
      return make<Name>(token.line, tree_->symbol(name));
    }
    case TokenKind::kString: {
      const uint32_t line = current_.line;
      std::string text;
      while (current_.kind == TokenKind::kString) text += take().text;
      return string_literal(line, text);
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kOperator:
      if (current_.text == "(") {
        take();
        const Expression node = parse_tuple(true, {}, true, false);
        expect_operator(")");
        return node;
      }
      if (current_.text == "[") return parse_list();
      if (current_.text == "{") return parse_dict();
      [[fallthrough]];
    default:
      fail(concat("unexpected '", describe(current_), "'"));
  }
}

Expression Parser::parse_tuple(bool with_condition, Names end_names, bool parentheses, bool simplified,
                               bool with_namespace) {
  const Nested nested(*this);
  const uint32_t line = current_.line;
  const auto at_end = [&] {
    if (current_.kind == TokenKind::kVariableEnd || current_.kind == TokenKind::kBlockEnd ||
        current_.is_operator(")")) {
      return true;
    }
    for (const std::string_view name : end_names) {
      if (current_.is_name(name)) return true;
    }
    return false;
  };
  std::vector<Expression> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_operator(",");
    if (at_end()) break;
    items.push_back(simplified ? parse_primary(with_namespace) : parse_expression(with_condition));
    if (!current_.is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!parentheses) fail(concat("Expected an expression, got '", describe(current_), "'"));
  }
  auto* node = make<Sequence>(NodeKind::kTuple, line);
  node->items = std::move(items);
  raise(node, node->items);
  return node;
}

Expression Parser::parse_list() {
  auto* node = make<Sequence>(NodeKind::kList, take().line);
  while (!current_.is_operator("]")) {
    if (!node->items.empty()) expect_operator(",");
    if (current_.is_operator("]")) break;
    node->items.push_back(parse_expression());
  }
  expect_operator("]");
  raise(node, node->items);
  return node;
}

Expression Parser::parse_dict() {
  auto* node = make<Dict>(take().line);
  while (!current_.is_operator("}")) {
    if (!node->entries.empty()) expect_operator(",");
    if (current_.is_operator("}")) break;
    const Expression key = parse_expression();
    expect_operator(":");
    const Expression value = parse_expression();
    node->entries.emplace_back(key, value);
    over(node, {key, value});
  }
  expect_operator("}");
  return node;
}

Expression Parser::parse_postfix(Expression node) {
  for (;;) {
    if (current_.is_operator(".") || current_.is_operator("[")) node = parse_subscript(node);
    else if (current_.is_operator("(")) node = parse_call(node);
    else return node;
  }
}

Expression Parser::parse_filters_and_tests(Expression node) {
  for (;;) {
    if (current_.is_operator("|")) node = parse_filter(node);
    else if (current_.is_name("is")) node = parse_test(node);
    else if (current_.is_operator("(")) node = parse_call(node);
    else return node;
  }
}

Expression Parser::parse_subscript(Expression object) {
  const Token token = take();
  if (token.text == ".") {
    if (current_.kind == TokenKind::kName) {
      const Token name = take();
      return over(make<Attribute>(token.line, object, string_literal(name.line, name.text)), {object});
    }
    if (current_.kind != TokenKind::kInteger) fail("expected name or number");
    const Expression index = parse_number();
    return over(make<Subscript>(token.line, object, index), {object, index});
  }
  std::vector<Expression> keys;
  while (!current_.is_operator("]")) {
    if (!keys.empty()) expect_operator(",");
    keys.push_back(parse_subscribed());
  }
  expect_operator("]");
  if (keys.size() != 1) {
    auto* tuple = make<Sequence>(NodeKind::kTuple, token.line);
    tuple->items = std::move(keys);
    for (const Expression item : tuple->items) {
      if (item->kind == NodeKind::kSlice) fail("a slice cannot be one of several indices");
    }
    raise(tuple, tuple->items);
    return over(make<Subscript>(token.line, object, tuple), {object, tuple});
  }
  return over(make<Subscript>(token.line, object, keys[0]), {object, keys[0]});
}

Expression Parser::parse_subscribed() {
  const uint32_t line = current_.line;
  Expression start = nullptr;
  if (!current_.is_operator(":")) {
    start = parse_expression();
    if (!current_.is_operator(":")) return start;
  }
  take();
  auto* node = make<Slice>(line);
  node->start = start;
  const auto at_end = [&] { return current_.is_operator("]") || current_.is_operator(","); };
  if (!current_.is_operator(":") && !at_end()) node->stop = parse_expression();
  if (skip_operator(":") && !at_end()) node->step = parse_expression();
  return over(node, {node->start, node->stop, node->step});
}

CallArguments Parser::parse_arguments() {
  const uint32_t line = expect_operator("(").line;
  CallArguments arguments;
  const auto ensure = [&](bool fine) {
    if (!fine) fail("invalid syntax for function call expression", line);
  };
  bool first = true;
  while (!current_.is_operator(")")) {
    if (!first) {
      expect_operator(",");
      if (current_.is_operator(")")) break;
    }
    first = false;
    if (current_.is_operator("*")) {
      ensure(!arguments.star && !arguments.star_star);
      take();
      arguments.star = parse_expression();
    } else if (current_.is_operator("**")) {
      ensure(!arguments.star_star);
      take();
      arguments.star_star = parse_expression();
    } else if (current_.kind == TokenKind::kName && look().is_operator("=")) {
      ensure(!arguments.star_star);
      if (arguments.named.size() >= kMaxNamed) fail(concat("the call has more than ", kMaxNamed, " named arguments"));
      const Token name = take();
      take();
      const Literal* literal = string_literal(name.line, name.text);
      for (const auto& [other, value] : arguments.named) {
        if (other->constant == literal->constant) fail(concat("keyword argument repeated: ", name.text), name.line);
      }
      arguments.named.emplace_back(literal, parse_expression());
    } else {
      ensure(!arguments.star && !arguments.star_star && arguments.named.empty());
      arguments.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  return arguments;
}

Expression Parser::parse_call(Expression callee) {
  auto* node = make<Call>(current_.line, callee);
  node->arguments = parse_arguments();
  raise(node, callee);
  raise(node, node->arguments);
  return node;
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name().text;
  while (skip_operator(".")) name += "." + expect_name().text;
  return name;
}

// An unknown filter or test is an immediate error, except inside a condition, which may never be true.
const Builtin* Parser::known(const Builtin* builtin, const char* what, const std::string& name, uint32_t line) {
  if (!builtin && soft_ == 0) fail(concat("No ", what, " named '", name.substr(0, 100), "'."), line);
  return builtin;
}

Expression Parser::parse_filter(Expression input, bool first_without_pipe) {
  Expression node = input;
  while (first_without_pipe || current_.is_operator("|")) {
    if (!first_without_pipe) take();
    first_without_pipe = false;
    const uint32_t line = current_.line;
    const std::string name = parse_dotted_name();
    auto* filter = make<Apply>(NodeKind::kFilter, line, node, string_literal(line, name));
    filter->builtin = known(find_filter(name), "filter", name, line);
    if (current_.is_operator("(")) filter->arguments = parse_arguments();
    raise(filter, node);
    raise(filter, filter->arguments);
    node = filter;
  }
  return node;
}

Expression Parser::parse_test(Expression input) {
  const uint32_t line = take().line;
  const bool negated = skip_name("not");
  const std::string name = parse_dotted_name();
  auto* test = make<Apply>(NodeKind::kTest, line, input, string_literal(line, name));
  test->builtin = known(find_test(name), "test", name, line);
  if (current_.is_operator("(")) {
    test->arguments = parse_arguments();
  } else {
    const bool value = current_.kind == TokenKind::kName || current_.kind == TokenKind::kString ||
                       current_.kind == TokenKind::kInteger || current_.kind == TokenKind::kFloat ||
                       current_.is_operator("[") || current_.is_operator("{");
    if (value && !current_.is_name("else") && !current_.is_name("or") && !current_.is_name("and") &&
        !current_.is_name("if")) {
      if (current_.is_name("is")) fail("You cannot chain multiple tests with is");
      const Nested nested(*this);
      test->arguments.positional.push_back(parse_postfix(parse_primary()));
    }
  }
  raise(test, input);
  raise(test, test->arguments);
  if (!negated) return test;
  return over(make<Unary>(NodeKind::kNot, line, test), {test});
}

void Parser::check_target(Expression target) {
  switch (target->kind) {
    case NodeKind::kName:
    case NodeKind::kNamespaceTarget:
      return;
    case NodeKind::kTuple:
      for (const Expression item : static_cast<const Sequence*>(target)->items) check_target(item);
      return;
    case NodeKind::kLiteral:
      fail("can't assign to 'const'", target->line);
    case NodeKind::kList:
      fail("can't assign to 'list'", target->line);
    case NodeKind::kDict:
      fail("can't assign to 'dict'", target->line);
    default:
      fail("can't assign to an expression", target->line);
  }
}

Expression Parser::parse_target(bool with_namespace, Names end_names) {
  const Expression target = parse_tuple(true, end_names, false, true, with_namespace);
  check_target(target);
  return target;
}

}  // namespace infer::jinja
