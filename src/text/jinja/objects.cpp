// Attributes of `loop` and of macros, and their methods.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/print.h"

namespace infer::jinja {
namespace {

Value loop_cycle(Runtime&, const Value& self, Arguments& arguments) {
  const Values& values = arguments.positional;
  if (values.empty()) fail("no items for cycling given");
  if (!arguments.named.empty()) fail("cycle() takes no keyword arguments");
  return values[static_cast<size_t>(self.get<LoopObject>().index) % values.size()];
}

Value loop_changed(Runtime&, const Value& self, Arguments& arguments) {
  auto& loop = self.get<LoopObject>();
  const Value now = make_tuple(std::move(arguments.positional));
  if (!loop.last_changed.is_missing() && equals(loop.last_changed, now)) return Value::of(false);
  loop.last_changed = now;
  return Value::of(true);
}

constexpr Builtin kLoopMethods[] = {{"cycle", "*", loop_cycle}, {"changed", "*", loop_changed}};

}  // namespace

Value Interpreter::loop_attribute(const Value& value, std::string_view name) {
  auto& loop = value.get<LoopObject>();
  if (name == "index") return Value::of(loop.index + 1);
  if (name == "index0") return Value::of(loop.index);
  if (name == "first") return Value::of(loop.index == 0);
  if (name == "last") return Value::of(peek(loop).is_missing());
  if (name == "length") return Value::of(loop_length(loop));
  if (name == "revindex") return Value::of(loop_length(loop) - loop.index);
  if (name == "revindex0") return Value::of(loop_length(loop) - loop.index - 1);
  if (name == "depth") return Value::of(loop.depth);
  if (name == "depth0") return Value::of(loop.depth - 1);
  if (name == "previtem") return loop.index == 0 ? undefined("there is no previous item") : loop.previous;
  if (name == "nextitem") {
    Value next = peek(loop);
    return next.is_missing() ? undefined("there is no next item") : next;
  }
  for (const Builtin& method : kLoopMethods) {
    if (method.name == name) return {Kind::kFunction, heap().make<FunctionObject>(method, value)};
  }
  return {};
}

Value Interpreter::macro_attribute(const Value& value, std::string_view name) {
  const Macro& macro = value.get<MacroObject>().macro;
  if (name == "name") return text(macro.name->text);
  if (name == "arguments") {
    Values names(heap());
    for (const auto& [symbol, parameter] : macro.parameters) names.push_back(text(parameter->text));
    return make_tuple(std::move(names));
  }
  if (name == "catch_kwargs") return Value::of(macro.uses_kwargs);
  if (name == "catch_varargs") return Value::of(macro.uses_varargs);
  if (name == "caller") return Value::of(macro.uses_caller);
  return {};
}

void append_macro_repr(const Value& macro, Text& out) {
  out += "<Macro ";
  append_repr(macro.get<MacroObject>().macro.name->text, out);
  out += '>';
}

void append_loop_repr(const Value& loop, Text& out) {
  const auto& object = loop.get<LoopObject>();
  out += concat("<LoopContext ", object.index + 1, "/",
                object.length >= 0 ? object.length
                                   : object.index + 1 + object.items.remaining() +
                                         static_cast<int64_t>(object.ahead.size() - object.ahead_next),
                ">");
}

}  // namespace infer::jinja
