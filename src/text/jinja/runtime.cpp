#include "src/text/jinja/runtime.h"

#include <algorithm>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/slice.h"

namespace infer::jinja {
namespace {

// The caller's values are immutable: methods that would change them are hidden, as in Jinja's immutable sandbox.
bool changes_what_caller_gave(const Value& object, std::string_view name) {
  const bool given = (object.is(Kind::kList) && object.get<ListObject>().from_caller) ||
                     (object.is(Kind::kDict) && object.get<DictObject>().from_caller);
  if (!given) return false;
  const auto methods = changing_methods(object.kind());
  return std::any_of(methods.begin(), methods.end(), [&](const Builtin& method) { return method.name == name; });
}

std::string described(const Value& object) {
  if (object.is_none()) return "None";
  if (object.is(Kind::kNamespace) || object.is(Kind::kCycler) || object.is(Kind::kJoiner)) {
    return concat("jinja2.utils.", type_name(object), " object");
  }
  if (object.is(Kind::kMacro) || object.is(Kind::kLoop)) return concat("jinja2.runtime.", type_name(object), " object");
  return concat(type_name(object), " object");
}

constexpr size_t kLongestName = 200;  // in messages
constexpr int kMaxApplied = 50;

// Calls a filter or test that was looked up by name.
Value apply_builtin(Runtime& runtime, const Builtin& builtin, const Value& input, Arguments& arguments, int& depth) {
  if (++depth > kMaxApplied) fail_budget("filters nested too deeply");
  bind(builtin, arguments);
  Value result = builtin.call(runtime, input, arguments);
  --depth;
  return result;
}

}  // namespace

Value Runtime::not_there(const Value& object, const Value& key) {
  require_defined(object);
  if (key.is_string()) {
    Text name(heap_);
    append_repr(key.text().substr(0, kLongestName), name);
    const std::string what = described(object);
    const char* quote = "'";
    return undefined(concat(quote, what, quote, " has no attribute ", std::string_view(name)));
  }
  Text name(heap_);
  if (key.is_number() || key.is_none()) append_repr(key, name);
  else name += concat('<', type_name(key), '>');
  return undefined(concat(described(object), " has no element ", std::string_view(name)));
}

Value Runtime::find_attribute(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kNamespace: {
      const Value* found = object.get<NamespaceObject>().find(name);
      return found ? *found : Value();
    }
    case Kind::kMacro:
      return macro_attribute(object, name);
    case Kind::kLoop:
      return loop_attribute(object, name);
    case Kind::kTuple:
      if (object.get<ListObject>().group()) {
        if (name == "grouper") return object.items()[0];
        if (name == "list") return object.items()[1];
      }
      break;
    case Kind::kRange: {
      const auto& range = object.get<RangeObject>();
      if (name == "start") return Value::of(range.start);
      if (name == "stop") return Value::of(range.stop);
      if (name == "step") return Value::of(range.step);
      break;
    }
    case Kind::kCycler:
      if (name == "current") {
        const auto& cycler = object.get<CyclerObject>();
        return cycler.items[cycler.position];
      }
      break;
    case Kind::kBool:
    case Kind::kInt:
      if (name == "real" || name == "numerator") return Value::of(object.as_int());
      if (name == "imag") return Value::of(int64_t{0});
      if (name == "denominator") return Value::of(int64_t{1});
      break;
    case Kind::kFloat:
      if (name == "real") return object;
      if (name == "imag") return Value::of(0.0);
      break;
    default:
      break;
  }
  if (name.starts_with('_') || changes_what_caller_gave(object, name)) {
    if (name.starts_with('_') && !name.starts_with("__")) return {};
    return undefined(concat("access to attribute '", name, "' of '", type_name(object), "' object is unsafe."));
  }
  if (const Builtin* method = find_method(object.kind(), name)) {
    return {Kind::kFunction, heap_.make<FunctionObject>(*method, object)};
  }
  return {};
}

Value Runtime::find_item(const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::kDict: {
      if (key.is(Kind::kList) || key.is(Kind::kDict)) return {};
      const Value* found = object.dict().find(key);
      return found ? *found : Value();
    }
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange: {
      if (!key.is_integer()) return {};
      const int64_t n = length_of(object);
      int64_t i = key.as_int();
      if (i < 0) i += n;
      if (i < 0 || i >= n) return {};
      return element(object, i);
    }
    default:
      return {};
  }
}

Value Runtime::get_attribute(const Value& object, const Value& name) {
  require_defined(object);
  Value found = find_attribute(object, name.text());
  if (found.is_missing()) found = find_item(object, name);
  return found.is_missing() ? not_there(object, name) : found;
}

Value Runtime::get_item(const Value& object, const Value& key) {
  require_defined(object);
  Value found = find_item(object, key);
  if (found.is_missing() && key.is_string()) found = find_attribute(object, key.text());
  return found.is_missing() ? not_there(object, key) : found;
}

Value Runtime::call(const Value& callee, Arguments& arguments) {
  heap_.step();
  switch (callee.kind()) {
    case Kind::kFunction: {
      const auto& function = callee.get<FunctionObject>();
      bind(function.builtin, arguments);
      return function.builtin.call(*this, function.self, arguments);
    }
    case Kind::kMacro:
      return call_macro(callee, arguments);
    case Kind::kLoop:
      return call_loop(callee, arguments);
    case Kind::kJoiner: {
      auto& joiner = callee.get<JoinerObject>();
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return text("");
    }
    default:
      require_defined(callee);
      fail(concat("'", type_name(callee), "' object is not callable"));
  }
}

Value Runtime::call_filter(const Value& name, const Value& input, Arguments& arguments) {
  heap_.step();
  const Builtin* filter = name.is_string() ? find_filter(name.text()) : nullptr;
  if (!filter) {
    Value holder;
    fail(concat("No filter named '", text_of(heap_, name, holder).substr(0, kLongestName), "'."));
  }
  return apply_builtin(*this, *filter, input, arguments, applied_);
}

bool Runtime::call_test(const Value& name, const Value& input, Arguments& arguments) {
  heap_.step();
  const Builtin* test = name.is_string() ? find_test(name.text()) : nullptr;
  if (!test) {
    Value holder;
    fail(concat("No test named '", text_of(heap_, name, holder).substr(0, kLongestName), "'."));
  }
  return truth(apply_builtin(*this, *test, input, arguments, applied_));
}

}  // namespace infer::jinja
