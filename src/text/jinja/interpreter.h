// Evaluates a syntax tree. One Interpreter per render; the tree is shared and never changes.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/text/jinja/iterate.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/syntax.h"
#include "src/text/rendered_text.h"

namespace infer::jinja {

// The variables defined in one body: a loop iteration, a macro or a `with`. Names not found here are looked up in the
// enclosing scope, then among the template's own variables, then among the global functions.
class Scope final : public Object {
 public:
  Scope(Heap& heap, Scope* outer) : Object(heap), outer_(outer), variables_(heap) {
    if (outer_) outer_->retain();
  }
  ~Scope() override {
    if (outer_) outer_->release();
  }
  const Value* find(Symbol symbol) const;  // in this scope only
  void set(Symbol symbol, Value value);
  void forget() noexcept override { variables_.clear(); }
  Scope* outer() const { return outer_; }

 private:
  Scope* outer_;
  Vector<std::pair<Symbol, Value>> variables_;
};

template <typename T>
class Ref {
 public:
  Ref(T* object = nullptr) : object_(object) {  // NOLINT: implicit on purpose
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) object_->release();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_; }

 private:
  T* object_;
};

class MacroObject final : public Object {
 public:
  MacroObject(Heap& heap, const Macro& macro, Scope* scope) : Object(heap), macro(macro), scope(scope) {}
  const Macro& macro;
  const Ref<Scope> scope;  // where it was defined
};

// The variable `loop`, and the state of the loop.
class LoopObject final : public Object {
 public:
  LoopObject(Heap& heap, const For& node, Value source, Scope* scope, int64_t depth)
      : Object(heap), node(node), source(source), items(heap, source), scope(scope), depth(depth), ahead(heap) {}

  void forget() noexcept override {
    previous = current = last_changed = Value();
    ahead.clear();
  }

  const For& node;
  Value source;
  Iterator items;
  const Ref<Scope> scope;  // the scope around the loop
  const int64_t depth;     // 1: outermost
  int64_t index = -1;      // of the current item, counted from 0
  int64_t length = -1;     // computed on first use
  Value previous, current;
  Values ahead;  // items read ahead; the next one is at `ahead_next`
  size_t ahead_next = 0;
  Value last_changed;  // arguments of the last call of changed()
};

class Interpreter final : public Runtime {
 public:
  // `variables` come from the caller. `own` come from the program, and are used where the caller has no variable of
  // that name. Both are JSON objects.
  Interpreter(const SyntaxTree& tree, Heap& heap, const Clock& clock, const nlohmann::ordered_json& variables,
              const nlohmann::ordered_json& own);
  // Throws TemplateError.
  RenderedText render();

  // The next item that passes the loop's test, without consuming it; kMissing at the end.
  Value peek(LoopObject& loop);
  int64_t loop_length(LoopObject& loop);

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };
  class Nested;
  class WithScope;

  // Statements
  Flow run(const Body& body);
  Flow run(const Node* node);
  Flow run_if(const If& node);
  void run_for(const For& node);
  void run_loop(LoopObject& loop);
  void run_set(const Set& node);
  void run_captured(const Captured& node);
  Flow run_scoped(const Scoped& node);
  void run_call_block(const CallBlock& node);
  void output(const Value& value);
  void output(std::string_view text);
  Value capture(const Body& body);
  Value finish(Text&& text);  // captured text: marked safe when autoescape is on
  void assign(Expression target, const Value& value);
  void unpack(const Sequence& target, const Value& value);
  Value next_item(LoopObject& loop);

  // Expressions
  Value evaluate(Expression node);
  Value literal(const Literal& node);
  Value constant(uint32_t index);
  Value look_up(Symbol symbol);
  Value attribute(const Attribute& node);
  Value subscript(const Subscript& node);
  Value binary(const Binary& node);
  Value logic(const Binary& node);
  bool comparison(const Compare& node);
  Value concatenation(const Sequence& node);
  Value sequence(const Sequence& node);
  Value dict(const Dict& node);
  Value conditional(const Conditional& node);
  Value call_expression(const Call& node, const Value* caller = nullptr);
  Value filter(const Apply& node, const Value* input);
  bool test(const Apply& node);
  void evaluate(const CallArguments& node, Arguments& arguments);

  Value call_macro(const Value& macro, Arguments& arguments) override;
  Value call_loop(const Value& loop, Arguments& arguments) override;
  Value macro_attribute(const Value& macro, std::string_view name) override;
  Value loop_attribute(const Value& loop, std::string_view name) override;
  void bind_macro(const MacroObject& macro, Arguments& arguments, Scope& scope);

  const SyntaxTree& tree_;
  Values variables_;  // the template's own, by symbol; kMissing: not set
  Values constants_;  // strings, created on first use
  std::optional<Symbol> loop_symbol_, caller_symbol_, kwargs_symbol_, varargs_symbol_;
  Ref<Scope> scope_;  // null: outermost
  Text* out_ = nullptr;
  const Node* current_ = nullptr;  // being evaluated, for error messages
  int depth_ = 0, call_depth_ = 0;
};

void append_macro_repr(const Value& macro, Text& out);
void append_loop_repr(const Value& loop, Text& out);

}  // namespace infer::jinja
