// The recursive descent parser; statements are in parser.cpp, expressions in parser_expressions.cpp.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>

#include "src/text/jinja/lexer.h"
#include "src/text/jinja/parser.h"

namespace infer::jinja {

class Parser {
 public:
  explicit Parser(std::string_view source);
  std::unique_ptr<const SyntaxTree> parse_template();

 private:
  using Names = std::initializer_list<std::string_view>;

  // Counts nesting; throws when it is too deep.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxParseDepth) parser_.fail_budget(concat("more than ", kMaxParseDepth, " levels"));
    }
    ~Nested() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  // Tokens
  Token take();
  const Token& look();
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  Token expect_operator(std::string_view op);
  Token expect_name();
  void expect(TokenKind kind, const char* what);
  void expect_name(std::string_view name);
  [[noreturn]] void fail(const std::string& text) const { fail(text, current_.line); }
  [[noreturn]] void fail(const std::string& text, uint32_t line) const;
  [[noreturn]] void fail_budget(const std::string& text) const;

  // Nodes
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    if (tree_->n_nodes() >= kMaxNodes) fail_budget(concat("more than ", kMaxNodes, " nodes"));
    return tree_->make<T>(std::forward<Args>(args)...);
  }
  // Sets the height of a node from its children.
  template <typename T>
  T* over(T* node, std::initializer_list<Expression> children) {
    for (const Node* child : children) raise(node, child);
    return node;
  }
  void raise(Node* node, const Node* child);
  void raise(Node* node, const Body& body);
  void raise(Node* node, const CallArguments& arguments);
  const Literal* string_literal(uint32_t line, std::string_view text);

  // Statements
  Body parse_body(Names end_names, const char* tag);
  void parse_statement(Body& body);
  const Node* parse_for();
  const Node* parse_if();
  const Node* parse_set();
  const Node* parse_macro();
  const Node* parse_call_block();
  const Node* parse_filter_block();
  const Node* parse_with();
  const Node* parse_block();
  const Node* parse_autoescape();
  const Node* parse_generation();
  void parse_print(Body& body);
  void parse_signature(Macro* macro);
  Body parse_macro_body(Macro* macro, const char* end, const char* tag);
  [[noreturn]] void fail_unknown_tag(const std::string& name);
  [[noreturn]] void fail_end();
  std::string looking_for() const;

  // Expressions
  Expression parse_expression(bool with_condition = true);
  Expression parse_condition();
  Expression parse_or();
  Expression parse_and();
  Expression parse_not();
  Expression parse_compare();
  Expression parse_sum();
  Expression parse_concat();
  Expression parse_product();
  Expression parse_power();
  Expression parse_unary(bool with_filter = true);
  Expression parse_primary(bool with_namespace = false);
  Expression parse_number();
  Expression parse_tuple(bool with_condition, Names end_names, bool parentheses, bool simplified,
                         bool with_namespace = false);
  Expression parse_list();
  Expression parse_dict();
  Expression parse_postfix(Expression node);
  Expression parse_filters_and_tests(Expression node);
  Expression parse_subscript(Expression node);
  Expression parse_subscribed();
  Expression parse_call(Expression callee);
  CallArguments parse_arguments();
  Expression parse_filter(Expression input, bool first_without_pipe = false);
  Expression parse_test(Expression input);
  std::string parse_dotted_name();
  Expression parse_target(bool with_namespace, Names end_names);
  void check_target(Expression target);
  Expression binary(NodeKind kind, uint32_t line, Expression left, Expression right, BinaryOp op = BinaryOp::kAdd);
  void note_name(std::string_view name);
  const Builtin* known(const Builtin* builtin, const char* what, const std::string& name, uint32_t line);

  Lexer lexer_;
  std::unique_ptr<SyntaxTree> tree_ = std::make_unique<SyntaxTree>();
  Token current_, ahead_;
  bool has_ahead_ = false;
  int depth_ = 0;
  int soft_ = 0;                   // > 0 inside conditions: unknown filters and tests fail only when evaluated
  int loops_ = 0;                  // around the current statement, within the current macro
  std::vector<Macro*> macros_;     // macros being parsed, innermost last
  std::vector<std::string> tags_;  // open tags
  std::vector<std::vector<std::string>> ends_;  // for each open tag, the tags that may close it
};

}  // namespace infer::jinja
