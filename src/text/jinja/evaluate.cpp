// Expressions and calls of the interpreter.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/interpreter_impl.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/slice.h"

namespace infer::jinja {

Value Interpreter::evaluate(Expression node) {
  const Nested nested(*this);
  heap().step();
  switch (node->kind) {
    case NodeKind::kLiteral:
      return literal(*static_cast<const Literal*>(node));
    case NodeKind::kName:
      return look_up(static_cast<const Name*>(node)->symbol);
    case NodeKind::kAttribute:
      return attribute(*static_cast<const Attribute*>(node));
    case NodeKind::kSubscript:
      return subscript(*static_cast<const Subscript*>(node));
    case NodeKind::kCall:
      return call_expression(*static_cast<const Call*>(node));
    case NodeKind::kFilter:
      return filter(*static_cast<const Apply*>(node), nullptr);
    case NodeKind::kTest:
      return Value::of(test(*static_cast<const Apply*>(node)));
    case NodeKind::kNegate:
    case NodeKind::kPlus: {
      const Value operand = evaluate(static_cast<const Unary*>(node)->operand);
      current_ = node;
      return node->kind == NodeKind::kNegate ? negate(operand) : unary_plus(operand);
    }
    case NodeKind::kNot:
      return Value::of(!truth(evaluate(static_cast<const Unary*>(node)->operand)));
    case NodeKind::kBinary:
      return binary(*static_cast<const Binary*>(node));
    case NodeKind::kAnd:
    case NodeKind::kOr:
      return logic(*static_cast<const Binary*>(node));
    case NodeKind::kCompare:
      return Value::of(comparison(*static_cast<const Compare*>(node)));
    case NodeKind::kConcat:
      return concatenation(*static_cast<const Sequence*>(node));
    case NodeKind::kConditional:
      return conditional(*static_cast<const Conditional*>(node));
    case NodeKind::kList:
    case NodeKind::kTuple:
      return sequence(*static_cast<const Sequence*>(node));
    case NodeKind::kDict:
      return dict(*static_cast<const Dict*>(node));
    default:
      current_ = node;
      fail("a slice may only stand in brackets");
  }
}

Value Interpreter::constant(uint32_t index) {
  Value& value = constants_[index];
  if (value.is_missing()) value = text(tree_.constants[index]);
  return value;
}

Value Interpreter::literal(const Literal& node) {
  switch (node.type) {
    case Kind::kString:
      return constant(node.constant);
    case Kind::kInt:
      return Value::of(node.number);
    case Kind::kFloat:
      return Value::of(node.real);
    case Kind::kBool:
      return Value::of(node.number != 0);
    default:
      return Value::none();
  }
}

Value Interpreter::look_up(Symbol symbol) {
  for (const Scope* scope = scope_.get(); scope; scope = scope->outer()) {
    if (const Value* found = scope->find(symbol)) return *found;
  }
  if (!variables_[symbol].is_missing()) return variables_[symbol];
  const std::string& name = tree_.symbols[symbol];
  if (const Builtin* global = find_global(name)) {
    return {Kind::kFunction, heap().make<FunctionObject>(*global, Value())};
  }
  return undefined(concat("'", name, "' is undefined"));
}

Value Interpreter::attribute(const Attribute& node) {
  const Value object = evaluate(node.object);
  current_ = &node;
  return get_attribute(object, constant(node.name->constant));
}

Value Interpreter::subscript(const Subscript& node) {
  const Value object = evaluate(node.object);
  if (node.key->kind != NodeKind::kSlice) {
    const Value key = evaluate(node.key);
    current_ = &node;
    return get_item(object, key);
  }
  const auto& bounds = *static_cast<const Slice*>(node.key);
  const auto bound = [&](Expression expression) { return expression ? evaluate(expression) : Value::none(); };
  const Value start = bound(bounds.start), stop = bound(bounds.stop), step = bound(bounds.step);
  current_ = &node;
  return slice(heap(), object, start, stop, step);
}

Value Interpreter::binary(const Binary& node) {
  const Value left = evaluate(node.left);
  const Value right = evaluate(node.right);
  current_ = &node;
  return apply(*this, node.op, left, right);
}

Value Interpreter::logic(const Binary& node) {
  Value left = evaluate(node.left);
  const bool decided = truth(left) == (node.kind == NodeKind::kOr);
  return decided ? left : evaluate(node.right);
}

bool Interpreter::comparison(const Compare& node) {
  Value left = evaluate(node.first);
  for (const auto& [op, expression] : node.rest) {
    Value right = evaluate(expression);
    current_ = &node;
    if (!compare(*this, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::concatenation(const Sequence& node) {
  Values parts(heap());
  bool markup = false;
  for (const Expression item : node.items) {
    parts.push_back(evaluate(item));
    markup = markup || is_markup(parts.back());
  }
  current_ = &node;
  Text out(heap());
  markup = markup && autoescape;
  for (const Value& part : parts) {
    if (markup && !is_markup(part)) append_escaped(to_text(heap(), part), out);
    else append_str(part, out);
  }
  return markup ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value Interpreter::sequence(const Sequence& node) {
  Values items(heap());
  items.reserve(node.items.size());
  for (const Expression item : node.items) items.push_back(evaluate(item));
  return node.kind == NodeKind::kList ? make_list(std::move(items)) : make_tuple(std::move(items));
}

Value Interpreter::dict(const Dict& node) {
  const Value value(Kind::kDict, heap().make<DictObject>());
  auto& dict = value.get<DictObject>();
  for (const auto& [key_node, value_node] : node.entries) {
    const Value key = evaluate(key_node);
    Value entry = evaluate(value_node);
    current_ = &node;
    dict.set(key, std::move(entry));
  }
  return value;
}

Value Interpreter::conditional(const Conditional& node) {
  if (truth(evaluate(node.test))) return evaluate(node.yes);
  if (node.no) return evaluate(node.no);
  return undefined(
      concat("the inline if-expression on line ", node.line, " evaluated to false and no else section was defined."));
}

void Interpreter::evaluate(const CallArguments& node, Arguments& arguments) {
  for (const Expression expression : node.positional) arguments.positional.push_back(evaluate(expression));
  for (const auto& [name, expression] : node.named) {
    arguments.named.emplace_back(constant(name->constant), evaluate(expression));
  }
  if (node.star) {
    const Value more = evaluate(node.star);
    Iterator items(heap(), more);
    while (auto item = items.next()) arguments.positional.push_back(std::move(*item));
  }
  if (node.star_star) {
    const Value more = evaluate(node.star_star);
    require_defined(more);
    if (!more.is(Kind::kDict)) fail(concat("argument after ** must be a mapping, not ", type_name(more)));
    for (const auto& [key, value] : more.dict().entries()) {
      if (!key.is_string()) fail("keywords must be strings");
      heap().step(1 + arguments.named.size());
      for (const auto& [name, other] : arguments.named) {
        if (name.text() == key.text()) fail(concat("got multiple values for keyword argument '", key.text(), "'"));
      }
      arguments.named.emplace_back(key, value);
    }
  }
}

Value Interpreter::call_expression(const Call& node, const Value* caller) {
  const Value callee = evaluate(node.callee);
  Arguments arguments(heap());
  evaluate(node.arguments, arguments);
  if (caller) arguments.named.emplace_back(text("caller"), *caller);
  current_ = &node;
  return call(callee, arguments);
}

Value Interpreter::filter(const Apply& node, const Value* input) {
  const Nested nested(*this);
  const Value value =
      node.input ? (node.input->kind == NodeKind::kFilter ? filter(*static_cast<const Apply*>(node.input), input)
                                                          : evaluate(node.input))
                 : *input;
  Arguments arguments(heap());
  evaluate(node.arguments, arguments);
  current_ = &node;
  if (!node.builtin) fail(concat("No filter named '", node.name->text, "' found."));
  heap().step();
  bind(*node.builtin, arguments);
  return node.builtin->call(*this, value, arguments);
}

bool Interpreter::test(const Apply& node) {
  const Value value = evaluate(node.input);
  Arguments arguments(heap());
  evaluate(node.arguments, arguments);
  current_ = &node;
  if (!node.builtin) fail(concat("No test named '", node.name->text, "' found."));
  bind(*node.builtin, arguments);
  return truth(node.builtin->call(*this, value, arguments));
}

// Binds arguments to variables of the macro's scope. A missing argument takes its default, which may refer to earlier
// parameters.
void Interpreter::bind_macro(const MacroObject& object, Arguments& arguments, Scope& scope) {
  const Macro& macro = object.macro;
  const std::string& name = macro.name->text;
  auto& named = arguments.named;
  const auto take = [&](std::string_view wanted) {
    for (size_t i = 0; i < named.size(); ++i) {
      if (named[i].first.text() != wanted) continue;
      Value value = std::move(named[i].second);
      named.erase(named.begin() + static_cast<ptrdiff_t>(i));
      return value;
    }
    return Value();
  };
  const size_t n = macro.parameters.size(), given = std::min(n, arguments.positional.size());
  const size_t first_default = n - macro.defaults.size();
  Values values(heap());
  for (size_t i = 0; i < n; ++i) {
    heap().step(1 + named.size() / 8);
    values.push_back(i < given ? arguments.positional[i] : take(macro.parameters[i].second->text));
  }
  if (macro.uses_caller && !macro.explicit_caller) {
    const Value caller = take("caller");
    scope.set(*caller_symbol_, caller.is_missing() || caller.is_none() ? undefined("No caller defined") : caller);
  }
  if (macro.uses_kwargs) {
    const Value rest(Kind::kDict, heap().make<DictObject>());
    for (const auto& [key, value] : named) rest.get<DictObject>().set(key, value);
    scope.set(*kwargs_symbol_, rest);
  } else if (!named.empty()) {
    for (const auto& [key, value] : named) {
      if (key.text() == "caller") {
        fail(concat("macro '", name,
                    "' was invoked with two values for the special caller argument. This is most likely a bug."));
      }
    }
    fail(concat("macro '", name, "' takes no keyword argument '", named[0].first.text().substr(0, 100), "'"));
  }
  if (macro.uses_varargs) {
    Values rest(heap());
    for (size_t i = n; i < arguments.positional.size(); ++i) rest.push_back(arguments.positional[i]);
    scope.set(*varargs_symbol_, make_tuple(std::move(rest)));
  } else if (arguments.positional.size() > n) {
    fail(concat("macro '", name, "' takes not more than ", n, " argument(s)"));
  }
  for (size_t i = 0; i < n; ++i) {
    Value value = std::move(values[i]);
    if (value.is_missing()) {
      value = i >= first_default
                  ? evaluate(macro.defaults[i - first_default])
                  : undefined(concat("parameter '", macro.parameters[i].second->text, "' was not provided"));
    }
    scope.set(macro.parameters[i].first, std::move(value));
  }
}

Value Interpreter::call_macro(const Value& macro, Arguments& arguments) {
  const Value alive = macro;
  const auto& object = alive.get<MacroObject>();
  if (++call_depth_ > heap().limits().call_depth) {
    fail_budget(concat("loops and macros nested more than ", heap().limits().call_depth, " deep"));
  }
  const Node* const call = current_;
  Value result;
  {
    const WithScope with_scope(*this, object.scope);
    bind_macro(object, arguments, *scope_.get());
    result = capture(object.macro.body);
  }
  --call_depth_;
  current_ = call;
  return result;
}

Value Interpreter::call_loop(const Value& loop, Arguments& arguments) {
  const auto& outer = loop.get<LoopObject>();
  if (!outer.node.recursive) fail("The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    fail(concat("loop() takes 1 argument, found ", arguments.positional.size() + arguments.named.size()));
  }
  const Node* const call = current_;
  const Value inner(Kind::kLoop,
                    heap().make<LoopObject>(outer.node, arguments.positional[0], outer.scope.get(), outer.depth + 1));
  Text text(heap());
  Text* const before = std::exchange(out_, &text);
  run_loop(inner.get<LoopObject>());
  out_ = before;
  current_ = call;
  return finish(std::move(text));
}

}  // namespace infer::jinja
