#include "src/text/jinja/parser.h"

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/parser_impl.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

constexpr size_t kMaxParameters = 255;  // per macro

}  // namespace

Symbol SyntaxTree::symbol(std::string_view name) {
  const auto [entry, added] = symbol_ids_.try_emplace(std::string(name), static_cast<Symbol>(symbols.size()));
  if (added) symbols.emplace_back(name);
  return entry->second;
}

uint32_t SyntaxTree::constant(std::string_view text) {
  const auto [entry, added] = constant_ids_.try_emplace(std::string(text), static_cast<uint32_t>(constants.size()));
  if (added) constants.emplace_back(text);
  return entry->second;
}

std::unique_ptr<const SyntaxTree> parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    throw TemplateError(TemplateError::Kind::kBudget, 0, "",
                        concat("expected at most ", kMaxTemplateBytes, " bytes, found ", source.size()));
  }
  const std::string normalized = normalize_source(valid_text(source));
  return Parser(normalized).parse_template();
}

Parser::Parser(std::string_view source) : lexer_(source) { current_ = lexer_.next(); }

void Parser::fail(const std::string& text, uint32_t line) const {
  const std::string construct = tags_.empty() ? "syntax" : tags_.back();
  throw TemplateError(TemplateError::Kind::kSyntax, static_cast<int>(line), construct, text);
}

void Parser::fail_budget(const std::string& text) const {
  const std::string construct = tags_.empty() ? "syntax" : tags_.back();
  throw TemplateError(TemplateError::Kind::kBudget, static_cast<int>(current_.line), construct, text);
}

Token Parser::take() {
  Token token = std::move(current_);
  if (has_ahead_) {
    current_ = std::move(ahead_);
    has_ahead_ = false;
  } else {
    current_ = lexer_.next();
  }
  return token;
}

const Token& Parser::look() {
  if (!has_ahead_) {
    ahead_ = lexer_.next();
    has_ahead_ = true;
  }
  return ahead_;
}

bool Parser::skip_operator(std::string_view op) {
  if (!current_.is_operator(op)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!current_.is_name(name)) return false;
  take();
  return true;
}

Token Parser::expect_operator(std::string_view op) {
  if (!current_.is_operator(op)) fail(concat("expected token '", op, "', got '", describe(current_), "'"));
  return take();
}

Token Parser::expect_name() {
  if (current_.kind != TokenKind::kName) fail(concat("expected token 'name', got '", describe(current_), "'"));
  return take();
}

void Parser::expect_name(std::string_view name) {
  if (!current_.is_name(name)) fail(concat("expected token '", name, "', got '", describe(current_), "'"));
  take();
}

void Parser::expect(TokenKind kind, const char* what) {
  if (current_.kind != kind) fail(concat("expected token '", what, "', got '", describe(current_), "'"));
  take();
}

void Parser::raise(Node* node, const Node* child) {
  if (!child || child->height < node->height) return;
  if (child->height >= kMaxHeight) fail_budget(concat("an expression is nested more than ", kMaxHeight, " deep"));
  node->height = static_cast<uint16_t>(child->height + 1);
}

void Parser::raise(Node* node, const Body& body) {
  for (const Node* child : body) raise(node, child);
}

void Parser::raise(Node* node, const CallArguments& arguments) {
  for (const Node* child : arguments.positional) raise(node, child);
  for (const auto& [name, child] : arguments.named) raise(node, child);
  raise(node, arguments.star);
  raise(node, arguments.star_star);
}

const Literal* Parser::string_literal(uint32_t line, std::string_view text) {
  auto* literal = make<Literal>(line);
  literal->type = Kind::kString;
  literal->text = text;
  literal->constant = tree_->constant(text);
  return literal;
}

std::unique_ptr<const SyntaxTree> Parser::parse_template() {
  tree_->body = parse_body({}, "template");
  return std::move(tree_);
}

std::string Parser::looking_for() const {
  std::string names;
  if (ends_.empty()) return names;
  for (const std::string& name : ends_.back()) names += (names.empty() ? "'" : " or '") + name + "'";
  return names;
}

void Parser::fail_unknown_tag(const std::string& name) {
  std::string text = concat("Encountered unknown tag '", name.substr(0, 100), "'.");
  bool expected = false;
  for (const auto& names : ends_) expected = expected || std::find(names.begin(), names.end(), name) != names.end();
  if (const std::string names = looking_for(); !names.empty()) {
    text += expected ? " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for " +
                           names + "."
                     : " Jinja was looking for the following tags: " + names + ".";
  }
  if (!tags_.empty()) text += " The innermost block that needs to be closed is '" + tags_.back() + "'.";
  fail(text);
}

void Parser::fail_end() {
  std::string text = "Unexpected end of template.";
  if (const std::string names = looking_for(); !names.empty()) {
    text += " Jinja was looking for the following tags: " + names + ".";
  }
  if (!tags_.empty()) text += " The innermost block that needs to be closed is '" + tags_.back() + "'.";
  fail(text);
}

// Parses up to one of `end_names`, which becomes the current token; without names, up to the end of the template.
Body Parser::parse_body(Names end_names, const char* tag) {
  const bool inner = end_names.size() > 0;
  if (inner) {
    skip_operator(":");
    expect(TokenKind::kBlockEnd, "end of statement block");
    ends_.emplace_back(end_names.begin(), end_names.end());
  }
  (void)tag;
  Body body;
  for (;;) {
    switch (current_.kind) {
      case TokenKind::kEnd:
        if (inner) fail_end();
        return body;
      case TokenKind::kData: {
        Token token = take();
        body.push_back(make<Data>(token.line, std::move(token.text)));
        break;
      }
      case TokenKind::kVariableBegin: {
        take();
        const uint32_t line = current_.line;
        const Expression value = parse_tuple(true, {}, false, false);
        body.push_back(over(make<Output>(line, value), {value}));
        expect(TokenKind::kVariableEnd, "end of print statement");
        break;
      }
      default:
        take();
        if (inner && current_.kind == TokenKind::kName) {
          for (const std::string_view name : end_names) {
            if (current_.text != name) continue;
            ends_.pop_back();
            return body;
          }
        }
        parse_statement(body);
        expect(TokenKind::kBlockEnd, "end of statement block");
        break;
    }
  }
}

void Parser::parse_statement(Body& body) {
  const Nested nested(*this);
  if (current_.kind != TokenKind::kName) fail("tag name expected");
  const std::string name = current_.text;
  const uint32_t line = current_.line;
  if (name == "extends" || name == "include" || name == "import" || name == "from") {
    fail(concat("'", name, "': other template files are not available"));
  }
  struct Row {
    std::string_view name;
    const Node* (Parser::*parse)();
  };
  static constexpr Row kRows[] = {
      {"for", &Parser::parse_for},
      {"if", &Parser::parse_if},
      {"set", &Parser::parse_set},
      {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block},
      {"filter", &Parser::parse_filter_block},
      {"with", &Parser::parse_with},
      {"block", &Parser::parse_block},
      {"autoescape", &Parser::parse_autoescape},
      {"generation", &Parser::parse_generation},
  };
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    tags_.push_back(name);
    take();
    body.push_back((this->*row.parse)());
    tags_.pop_back();
    return;
  }
  if (name == "print") {
    take();
    parse_print(body);
  } else if (name == "break" || name == "continue") {
    if (loops_ == 0) fail(concat("'", name, "' outside of a loop"));
    take();
    body.push_back(make<Node>(name == "break" ? NodeKind::kBreak : NodeKind::kContinue, line));
  } else {
    fail_unknown_tag(name);
  }
}

const Node* Parser::parse_for() {
  auto* node = make<For>(current_.line);
  node->target = parse_target(false, {"in"});
  expect_name("in");
  node->iterable = parse_tuple(false, {"recursive"}, false, false);
  if (skip_name("if")) node->test = parse_expression();
  node->recursive = skip_name("recursive");
  const int soft = std::exchange(soft_, 0);
  ++loops_;
  node->body = parse_body({"endfor", "else"}, "for");
  --loops_;
  if (take().text == "else") {
    node->otherwise = parse_body({"endfor"}, "for");
    take();
  }
  soft_ = soft;
  over(node, {node->target, node->iterable, node->test});
  raise(node, node->body);
  raise(node, node->otherwise);
  return node;
}

const Node* Parser::parse_if() {
  auto* node = make<If>(current_.line);
  ++soft_;
  for (;;) {
    const Expression test = parse_tuple(false, {}, false, false);
    raise(node, test);
    node->branches.emplace_back(test, parse_body({"elif", "else", "endif"}, "if"));
    raise(node, node->branches.back().second);
    const Token end = take();
    if (end.is_name("elif")) continue;
    if (end.is_name("else")) {
      node->otherwise = parse_body({"endif"}, "if");
      raise(node, node->otherwise);
      take();
    }
    break;
  }
  --soft_;
  return node;
}

const Node* Parser::parse_set() {
  const uint32_t line = current_.line;
  const Expression target = parse_target(true, {});
  if (skip_operator("=")) {
    const Expression value = parse_tuple(true, {}, false, false);
    return over(make<Set>(line, target, value), {target, value});
  }
  auto* node = make<Captured>(NodeKind::kSetBlock, line);
  node->target = target;
  node->filter = parse_filter(nullptr);
  node->body = parse_body({"endset"}, "set");
  take();
  over(node, {target, node->filter});
  raise(node, node->body);
  return node;
}

void Parser::parse_signature(Macro* macro) {
  expect_operator("(");
  while (!current_.is_operator(")")) {
    if (!macro->parameters.empty()) expect_operator(",");
    if (macro->parameters.size() >= kMaxParameters)
      fail(concat("the macro has more than ", kMaxParameters, " parameters"));
    const Token name = expect_name();
    if (skip_operator("=")) {
      macro->defaults.push_back(parse_expression());
      raise(macro, macro->defaults.back());
    } else if (!macro->defaults.empty()) {
      fail("non-default argument follows default argument");
    }
    macro->explicit_caller = macro->explicit_caller || name.text == "caller";
    macro->parameters.emplace_back(tree_->symbol(name.text), string_literal(name.line, name.text));
  }
  expect_operator(")");
  const size_t without_default = macro->parameters.size() - macro->defaults.size();
  for (size_t i = 0; i < without_default; ++i) {
    if (macro->parameters[i].second->text == "caller") {
      fail(
          "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.");
    }
  }
}

Body Parser::parse_macro_body(Macro* macro, const char* end, const char* tag) {
  macros_.push_back(macro);
  const int loops = std::exchange(loops_, 0), soft = std::exchange(soft_, 0);
  Body body = parse_body({end}, tag);
  take();
  loops_ = loops, soft_ = soft;
  macros_.pop_back();
  return body;
}

const Node* Parser::parse_macro() {
  auto* macro = make<Macro>(current_.line);
  const Token name = expect_name();
  macro->symbol = tree_->symbol(name.text);
  macro->name = string_literal(name.line, name.text);
  macros_.push_back(macro);
  parse_signature(macro);
  macros_.pop_back();
  macro->body = parse_macro_body(macro, "endmacro", "macro");
  raise(macro, macro->body);
  return macro;
}

const Node* Parser::parse_call_block() {
  const uint32_t line = current_.line;
  auto* caller = make<Macro>(line);
  caller->name = string_literal(line, "caller");
  if (current_.is_operator("(")) parse_signature(caller);
  const Expression call = parse_expression();
  if (call->kind != NodeKind::kCall) fail("expected call", line);
  caller->body = parse_macro_body(caller, "endcall", "call");
  raise(caller, caller->body);
  return over(make<CallBlock>(line, static_cast<const Call*>(call), caller), {call, caller});
}

const Node* Parser::parse_filter_block() {
  auto* node = make<Captured>(NodeKind::kFilterBlock, current_.line);
  node->filter = parse_filter(nullptr, true);
  node->body = parse_body({"endfilter"}, "filter");
  take();
  over(node, {node->filter});
  raise(node, node->body);
  return node;
}

const Node* Parser::parse_with() {
  auto* node = make<Scoped>(NodeKind::kWith, current_.line);
  while (current_.kind != TokenKind::kBlockEnd && !current_.is_operator(":")) {
    if (!node->assignments.empty()) expect_operator(",");
    const Expression target = parse_target(false, {});
    expect_operator("=");
    const Expression value = parse_expression();
    node->assignments.emplace_back(target, value);
    over(node, {target, value});
  }
  node->body = parse_body({"endwith"}, "with");
  take();
  raise(node, node->body);
  return node;
}

const Node* Parser::parse_block() {
  auto* node = make<Scoped>(NodeKind::kBlock, current_.line);
  const Token name = expect_name();
  node->sees_outer = skip_name("scoped");
  const bool required = skip_name("required");
  if (current_.is_operator("-")) {
    fail(
        "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an underscore "
        "instead.");
  }
  const int loops = std::exchange(loops_, 0), soft = std::exchange(soft_, 0);
  node->body = parse_body({"endblock"}, "block");
  loops_ = loops, soft_ = soft;
  take();
  skip_name(name.text);
  for (const Node* part : node->body) {
    const bool blank =
        part->kind == NodeKind::kData && strip(static_cast<const Data*>(part)->text, Side::kBoth).empty();
    if (required && !blank) fail("Required blocks can only contain comments or whitespace");
  }
  if (required) fail(concat("Required block '", name.text, "' not found"));
  raise(node, node->body);
  return node;
}

const Node* Parser::parse_autoescape() {
  auto* node = make<Scoped>(NodeKind::kAutoescape, current_.line);
  node->flag = parse_expression();
  node->body = parse_body({"endautoescape"}, "autoescape");
  take();
  over(node, {node->flag});
  raise(node, node->body);
  return node;
}

const Node* Parser::parse_generation() {
  auto* node = make<Scoped>(NodeKind::kScope, current_.line);
  const int loops = std::exchange(loops_, 0);
  node->body = parse_body({"endgeneration"}, "generation");
  loops_ = loops;
  take();
  raise(node, node->body);
  return node;
}

void Parser::parse_print(Body& body) {
  const uint32_t line = current_.line;
  bool first = true;
  while (current_.kind != TokenKind::kBlockEnd) {
    if (!first) expect_operator(",");
    first = false;
    const Expression value = parse_expression();
    body.push_back(over(make<Output>(line, value), {value}));
  }
}

}  // namespace infer::jinja
