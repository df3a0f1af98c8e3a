// Shared by interpreter.cpp and evaluate.cpp.
#pragma once

#include "src/text/jinja/interpreter.h"

namespace infer::jinja {

// Counts nested evaluations.
class Interpreter::Nested {
 public:
  explicit Nested(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter_.depth_ > interpreter_.heap().limits().depth) fail_budget("evaluation nested too deep");
  }
  ~Nested() { --interpreter_.depth_; }

 private:
  Interpreter& interpreter_;
};

// Enters a new scope inside `outer`; restores the previous scope when destroyed.
class Interpreter::WithScope {
 public:
  WithScope(Interpreter& interpreter, const Ref<Scope>& outer)
      : interpreter_(interpreter), before_(interpreter.scope_) {
    interpreter_.scope_ = interpreter_.heap().make<Scope>(outer.get());
  }
  ~WithScope() { interpreter_.scope_ = before_; }

 private:
  Interpreter& interpreter_;
  const Ref<Scope> before_;
};

}  // namespace infer::jinja
