// What builtin functions have access to: memory, lookup of attributes and items, calls. One per render.
#pragma once

#include <ctime>
#include <functional>

#include "src/text/jinja/value.h"

namespace infer::jinja {

using Clock = std::function<std::tm()>;

class Runtime {
 public:
  Runtime(Heap& heap, const Clock& clock) : heap_(heap), clock_(clock) {}
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Heap& heap() { return heap_; }
  Value text(std::string_view text) { return Value::of(heap_, text); }
  Value undefined(std::string_view why) { return Value::undefined(heap_, why); }
  std::tm now() const { return clock_(); }

  // `object.name` and `object[key]`; undefined if there is no such attribute or item.
  Value get_attribute(const Value& object, const Value& name);
  Value get_item(const Value& object, const Value& key);

  // Calls any function, method, macro, loop or joiner; throws Failure for a value that is not callable.
  Value call(const Value& callee, Arguments& arguments);
  Value call_filter(const Value& name, const Value& input, Arguments& arguments);
  bool call_test(const Value& name, const Value& input, Arguments& arguments);

  bool autoescape = false;

 protected:
  virtual Value call_macro(const Value& macro, Arguments& arguments) = 0;
  virtual Value call_loop(const Value& loop, Arguments& arguments) = 0;
  virtual Value macro_attribute(const Value& macro, std::string_view name) = 0;  // kMissing: no such attribute
  virtual Value loop_attribute(const Value& loop, std::string_view name) = 0;

 private:
  Value find_attribute(const Value& object, std::string_view name);
  Value find_item(const Value& object, const Value& key);
  Value not_there(const Value& object, const Value& key);

  Heap& heap_;
  const Clock& clock_;
  int applied_ = 0;  // nesting of filters and tests called by name: map('map', 'map', ...)
};

}  // namespace infer::jinja
