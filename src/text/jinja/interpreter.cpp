#include "src/text/jinja/interpreter.h"

#include "src/text/jinja/describe.h"
#include "src/text/jinja/from_json.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/interpreter_impl.h"
#include "src/text/jinja/print.h"
#include "src/text/ordered_json.h"

namespace infer::jinja {

const Value* Scope::find(Symbol symbol) const {
  for (const auto& [name, value] : variables_) {
    if (name == symbol) return &value;
  }
  if (variables_.size() > 16) heap().step(variables_.size() / 16);
  return nullptr;
}

void Scope::set(Symbol symbol, Value value) {
  if (const Value* found = find(symbol)) *const_cast<Value*>(found) = std::move(value);
  else variables_.emplace_back(symbol, std::move(value));
}

Interpreter::Interpreter(const SyntaxTree& tree, Heap& heap, const Clock& clock,
                         const nlohmann::ordered_json& variables, const nlohmann::ordered_json& own)
    : Runtime(heap, clock), tree_(tree), variables_(heap), constants_(heap) {
  variables_.resize(tree.symbols.size());
  constants_.resize(tree.constants.size());
  for (Symbol symbol = 0; symbol < tree.symbols.size(); ++symbol) {
    const std::string& name = tree.symbols[symbol];
    if (name == "loop") loop_symbol_ = symbol;
    if (name == "caller") caller_symbol_ = symbol;
    if (name == "kwargs") kwargs_symbol_ = symbol;
    if (name == "varargs") varargs_symbol_ = symbol;
  }
  // Only variables that the template names are converted. For a duplicate name the last value wins, as in JSON.
  const auto take = [&](const nlohmann::ordered_json& values, bool from_caller) {
    std::unordered_map<std::string_view, const nlohmann::ordered_json*> by_name;
    for (const auto& [name, value] : values.items()) by_name[name] = &value;
    for (Symbol symbol = 0; symbol < tree.symbols.size(); ++symbol) {
      const auto found = by_name.find(tree.symbols[symbol]);
      if (found != by_name.end()) variables_[symbol] = from_json(heap, *found->second, from_caller);
    }
  };
  take(own, false);
  take(variables, true);
}

RenderedText Interpreter::render() {
  Text out(heap());
  out_ = &out;
  try {
    run(tree_.body);
  } catch (const Failure& failure) {
    throw TemplateError(failure.kind, current_ ? static_cast<int>(current_->line) : 0,
                        current_ ? describe(*current_, tree_) : "", failure.text);
  }
  RenderedText result = {std::string(out), {}};
  for (const ByteRange& range : out.from_caller()) result.from_caller.push_back({range.begin, range.end});
  return result;
}

Interpreter::Flow Interpreter::run(const Body& body) {
  for (const Node* node : body) {
    const Flow flow = run(node);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run(const Node* node) {
  const Nested nested(*this);
  heap().step();
  current_ = node;
  switch (node->kind) {
    case NodeKind::kData:
      output(static_cast<const Data*>(node)->text);
      break;
    case NodeKind::kOutput: {
      const Value value = evaluate(static_cast<const Output*>(node)->value);
      current_ = node;
      output(value);
      break;
    }
    case NodeKind::kIf:
      return run_if(*static_cast<const If*>(node));
    case NodeKind::kFor:
      run_for(*static_cast<const For*>(node));
      break;
    case NodeKind::kSet:
      run_set(*static_cast<const Set*>(node));
      break;
    case NodeKind::kSetBlock:
    case NodeKind::kFilterBlock:
      run_captured(*static_cast<const Captured*>(node));
      break;
    case NodeKind::kMacro: {
      const auto& macro = *static_cast<const Macro*>(node);
      const Value value(Kind::kMacro, heap().make<MacroObject>(macro, scope_.get()));
      if (scope_) scope_->set(macro.symbol, value);
      else variables_[macro.symbol] = value;
      break;
    }
    case NodeKind::kCallBlock:
      run_call_block(*static_cast<const CallBlock*>(node));
      break;
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      return run_scoped(*static_cast<const Scoped*>(node));
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_if(const If& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truth(evaluate(condition))) return run(body);
  }
  return run(node.otherwise);
}

void Interpreter::run_set(const Set& node) {
  const Value value = evaluate(node.value);
  current_ = &node;
  assign(node.target, value);
}

void Interpreter::run_captured(const Captured& node) {
  Value value;
  {
    const WithScope with_scope(*this, scope_);
    value = capture(node.body);
  }
  if (node.filter) value = filter(*static_cast<const Apply*>(node.filter), &value);
  current_ = &node;
  if (node.target) assign(node.target, value);
  else output(value);
}

Interpreter::Flow Interpreter::run_scoped(const Scoped& node) {
  const Ref<Scope> outer = scope_;
  const WithScope with_scope(*this, node.sees_outer ? outer : Ref<Scope>());
  if (!node.assignments.empty()) {
    const Ref<Scope> inner = scope_;
    for (const auto& [target, expression] : node.assignments) {
      scope_ = outer;
      const Value value = evaluate(expression);
      scope_ = inner;
      assign(target, value);
    }
  }
  if (!node.flag) return run(node.body);
  const bool flag = truth(evaluate(node.flag));
  const bool before = std::exchange(autoescape, flag);
  const Flow flow = run(node.body);
  autoescape = before;
  return flow;
}

void Interpreter::run_call_block(const CallBlock& node) {
  const Value caller(Kind::kMacro, heap().make<MacroObject>(*node.caller, scope_.get()));
  output(call_expression(*node.call, &caller));
}

void Interpreter::output(const Value& value) {
  const size_t before = out_->size();
  if (autoescape && !is_markup(value)) {
    append_escaped(to_text(heap(), value), *out_);
  } else {
    append_str(value, *out_);
  }
  heap().work(out_->size() - before);
  if (out_->size() > heap().limits().output_bytes) output(std::string_view());
}

void Interpreter::output(std::string_view text) {
  heap().work(text.size());
  *out_ += text;
  if (out_->size() > heap().limits().output_bytes) {
    fail_budget(concat("the output is larger than the limit of ", heap().limits().output_bytes >> 20, " MiB"));
  }
}

Value Interpreter::finish(Text&& text) {
  return autoescape ? make_markup(std::move(text)) : Value::of(std::move(text));
}

// On an exception out_ is left dangling, which is safe: nothing below render() catches exceptions.
Value Interpreter::capture(const Body& body) {
  Text text(heap());
  Text* const outer = std::exchange(out_, &text);
  run(body);
  out_ = outer;
  return finish(std::move(text));
}

void Interpreter::assign(Expression target, const Value& value) {
  switch (target->kind) {
    case NodeKind::kName: {
      const Symbol symbol = static_cast<const Name*>(target)->symbol;
      if (scope_) scope_->set(symbol, value);
      else variables_[symbol] = value;
      return;
    }
    case NodeKind::kNamespaceTarget: {
      const auto& place = *static_cast<const NamespaceTarget*>(target);
      const Value object = look_up(place.symbol);
      if (!object.is(Kind::kNamespace)) fail("cannot assign attribute on non-namespace object");
      object.get<NamespaceObject>().set(constant(place.attribute->constant), value);
      return;
    }
    default:
      unpack(*static_cast<const Sequence*>(target), value);
  }
}

void Interpreter::unpack(const Sequence& target, const Value& value) {
  if (!is_iterable(value)) fail(concat("cannot unpack non-iterable ", type_name(value), " object"));
  const size_t expected = target.items.size();
  const Values items = items_of(heap(), value);
  if (items.size() < expected) {
    fail(concat("not enough values to unpack (expected ", expected, ", got ", items.size(), ")"));
  }
  if (items.size() > expected) fail(concat("too many values to unpack (expected ", expected, ")"));
  for (size_t i = 0; i < expected; ++i) assign(target.items[i], items[i]);
}

void Interpreter::run_for(const For& node) {
  const Value source = evaluate(node.iterable);
  current_ = &node;
  // The loop object is a Value, because a reference to `loop` may outlive the loop.
  const Value loop(Kind::kLoop, heap().make<LoopObject>(node, source, scope_.get(), 1));
  run_loop(loop.get<LoopObject>());
}

void Interpreter::run_loop(LoopObject& loop) {
  if (++call_depth_ > heap().limits().call_depth) {
    fail_budget(concat("loops and macros nested more than ", heap().limits().call_depth, " deep"));
  }
  const Value self(Kind::kLoop, &loop);
  const WithScope with_scope(*this, loop.scope);
  bool completed = false;
  for (;;) {
    Value item = next_item(loop);
    if (item.is_missing()) break;
    ++loop.index;
    loop.previous = std::move(loop.current);
    loop.current = item;
    // Every iteration has its own scope, because a macro defined in it may keep the scope alive.
    scope_ = heap().make<Scope>(loop.scope.get());
    if (loop_symbol_) scope_->set(*loop_symbol_, self);
    current_ = &loop.node;
    assign(loop.node.target, item);
    const Flow flow = run(loop.node.body);
    if (flow == Flow::kNormal) completed = true;
    if (flow == Flow::kBreak) break;
  }
  // As in Jinja, an iteration ended by break or continue does not count.
  if (!completed && !loop.node.otherwise.empty()) {
    scope_ = heap().make<Scope>(loop.scope.get());
    run(loop.node.otherwise);
  }
  --call_depth_;
}

Value Interpreter::peek(LoopObject& loop) {
  if (loop.ahead_next < loop.ahead.size()) return loop.ahead[loop.ahead_next];
  const Ref<Scope> before = scope_;
  while (std::optional<Value> item = loop.items.next()) {
    if (loop.node.test) {
      scope_ = heap().make<Scope>(loop.scope.get());
      assign(loop.node.target, *item);
      const bool passed = truth(evaluate(loop.node.test));
      scope_ = before;
      if (!passed) continue;
    }
    if (loop.ahead_next > 0) loop.ahead.clear(), loop.ahead_next = 0;
    loop.ahead.push_back(std::move(*item));
    return loop.ahead.back();
  }
  return {};
}

Value Interpreter::next_item(LoopObject& loop) {
  Value item = peek(loop);
  if (!item.is_missing()) loop.ahead[loop.ahead_next++] = Value();
  return item;
}

int64_t Interpreter::loop_length(LoopObject& loop) {
  if (loop.length >= 0) return loop.length;
  if (!loop.node.test && !loop.source.is(Kind::kGenerator)) return loop.length = length_of(loop.source);
  // Consumes the rest of the iterator, as Jinja does.
  Values rest(heap());
  for (Value item = next_item(loop); !item.is_missing(); item = next_item(loop)) rest.push_back(item);
  loop.ahead = std::move(rest);
  loop.ahead_next = 0;
  return loop.length = loop.index + 1 + static_cast<int64_t>(loop.ahead.size());
}

}  // namespace infer::jinja
