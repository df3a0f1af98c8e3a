// The syntax tree of a template. Nodes are owned by a SyntaxTree, refer to each other by pointer, and never change
// after parsing. `height` is the longest path to a leaf, which bounds the recursion when a node is evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/text/jinja/operators.h"

namespace infer::jinja {

enum class NodeKind : uint8_t {
  // Expressions
  kLiteral,
  kName,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kNegate,
  kPlus,
  kNot,
  kBinary,
  kAnd,
  kOr,
  kCompare,
  kConcat,
  kConditional,
  kList,
  kTuple,
  kDict,
  kNamespaceTarget,
  // Statements
  kData,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScope,
  kBlock,
  kAutoescape,
  kBreak,
  kContinue,
};

using Symbol = uint32_t;  // index of a name in SyntaxTree::symbols

struct Node {
  Node(NodeKind kind, uint32_t line) : kind(kind), line(line) {}
  virtual ~Node() = default;
  const NodeKind kind;
  uint16_t height = 1;
  const uint32_t line;
};

using Expression = const Node*;
using Body = std::vector<const Node*>;

// A constant; `text` is a string's value, or the name of a filter, test or attribute.
struct Literal final : Node {
  explicit Literal(uint32_t line) : Node(NodeKind::kLiteral, line) {}
  Kind type = Kind::kNone;
  int64_t number = 0;  // also for a bool
  double real = 0;
  std::string text;
  uint32_t constant = 0;  // of a string: index in SyntaxTree::constants
};

struct Name final : Node {
  Name(uint32_t line, Symbol symbol) : Node(NodeKind::kName, line), symbol(symbol) {}
  Symbol symbol;
};

struct CallArguments {
  std::vector<Expression> positional;
  std::vector<std::pair<const Literal*, Expression>> named;
  Expression star = nullptr, star_star = nullptr;
};

struct Attribute final : Node {
  Attribute(uint32_t line, Expression object, const Literal* name)
      : Node(NodeKind::kAttribute, line), object(object), name(name) {}
  Expression object;
  const Literal* name;
};

struct Subscript final : Node {
  Subscript(uint32_t line, Expression object, Expression key)
      : Node(NodeKind::kSubscript, line), object(object), key(key) {}
  Expression object, key;
};

struct Slice final : Node {
  explicit Slice(uint32_t line) : Node(NodeKind::kSlice, line) {}
  Expression start = nullptr, stop = nullptr, step = nullptr;
};

struct Call final : Node {
  Call(uint32_t line, Expression callee) : Node(NodeKind::kCall, line), callee(callee) {}
  Expression callee;
  CallArguments arguments;
};

// A filter or a test. `builtin` is null if there is none with that name, which is an error only when it is evaluated.
struct Apply final : Node {
  Apply(NodeKind kind, uint32_t line, Expression input, const Literal* name)
      : Node(kind, line), input(input), name(name) {}
  Expression input;  // null: the text of a filter block
  const Literal* name;
  const Builtin* builtin = nullptr;
  CallArguments arguments;
};

struct Unary final : Node {
  Unary(NodeKind kind, uint32_t line, Expression operand) : Node(kind, line), operand(operand) {}
  Expression operand;
};

// Arithmetic, `and`, `or`.
struct Binary final : Node {
  Binary(NodeKind kind, uint32_t line, Expression left, Expression right)
      : Node(kind, line), left(left), right(right) {}
  BinaryOp op = BinaryOp::kAdd;
  Expression left, right;
};

struct Compare final : Node {
  Compare(uint32_t line, Expression first) : Node(NodeKind::kCompare, line), first(first) {}
  Expression first;
  std::vector<std::pair<CompareOp, Expression>> rest;
};

struct Conditional final : Node {
  explicit Conditional(uint32_t line) : Node(NodeKind::kConditional, line) {}
  Expression test = nullptr, yes = nullptr, no = nullptr;  // `no` may be null
};

// A list, a tuple, or the operands of ~.
struct Sequence final : Node {
  Sequence(NodeKind kind, uint32_t line) : Node(kind, line) {}
  std::vector<Expression> items;
};

struct Dict final : Node {
  explicit Dict(uint32_t line) : Node(NodeKind::kDict, line) {}
  std::vector<std::pair<Expression, Expression>> entries;
};

struct NamespaceTarget final : Node {
  NamespaceTarget(uint32_t line, Symbol symbol, const Literal* attribute)
      : Node(NodeKind::kNamespaceTarget, line), symbol(symbol), attribute(attribute) {}
  Symbol symbol;
  const Literal* attribute;
};

struct Data final : Node {
  Data(uint32_t line, std::string&& text) : Node(NodeKind::kData, line), text(std::move(text)) {}
  std::string text;
};

struct Output final : Node {
  Output(uint32_t line, Expression value) : Node(NodeKind::kOutput, line), value(value) {}
  Expression value;
};

struct If final : Node {
  explicit If(uint32_t line) : Node(NodeKind::kIf, line) {}
  std::vector<std::pair<Expression, Body>> branches;
  Body otherwise;
};

struct For final : Node {
  explicit For(uint32_t line) : Node(NodeKind::kFor, line) {}
  Expression target = nullptr, iterable = nullptr, test = nullptr;
  bool recursive = false;
  Body body, otherwise;
};

struct Set final : Node {
  Set(uint32_t line, Expression target, Expression value) : Node(NodeKind::kSet, line), target(target), value(value) {}
  Expression target, value;
};

// {% set x %}...{% endset %} and {% filter f %}...{% endfilter %}.
struct Captured final : Node {
  Captured(NodeKind kind, uint32_t line) : Node(kind, line) {}
  Expression target = nullptr;
  Expression filter = nullptr;  // chain of Apply nodes; the innermost has a null input
  Body body;
};

struct Macro final : Node {
  explicit Macro(uint32_t line) : Node(NodeKind::kMacro, line) {}
  Symbol symbol = 0;
  const Literal* name = nullptr;
  std::vector<std::pair<Symbol, const Literal*>> parameters;
  std::vector<Expression> defaults;  // of the last parameters
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
  bool explicit_caller = false;  // "caller" is a parameter
  Body body;
};

// {% call(a, b) f(x) %}...{% endcall %}
struct CallBlock final : Node {
  CallBlock(uint32_t line, const Call* call, const Macro* caller)
      : Node(NodeKind::kCallBlock, line), call(call), caller(caller) {}
  const Call* call;
  const Macro* caller;
};

// {% with a = 1 %}, {% generation %}, {% block %} and {% autoescape %}: bodies with their own scope.
struct Scoped final : Node {
  Scoped(NodeKind kind, uint32_t line) : Node(kind, line) {}
  std::vector<std::pair<Expression, Expression>> assignments;
  Expression flag = nullptr;  // for autoescape
  bool sees_outer = true;     // false: sees only the template's own variables (a block that is not `scoped`)
  Body body;
};

class SyntaxTree {
 public:
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    auto node = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = node.get();
    nodes_.push_back(std::move(node));
    return raw;
  }
  size_t n_nodes() const { return nodes_.size(); }
  Symbol symbol(std::string_view name);
  uint32_t constant(std::string_view text);

  std::vector<std::string> symbols;
  std::vector<std::string> constants;
  Body body;

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unordered_map<std::string, Symbol> symbol_ids_;
  std::unordered_map<std::string, uint32_t> constant_ids_;
};

}  // namespace infer::jinja
