// The tests that may follow `is`.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

template <bool (*Is)(const Value&)>
Value check(Runtime&, const Value& self, Arguments&) {
  return Value::of(Is(self));
}

template <CompareOp Op>
Value comparison(Runtime& runtime, const Value& self, Arguments& arguments) {
  return Value::of(compare(runtime, Op, self, arguments.positional[0]));
}

// The remainder, as the number tests use it.
Value modulo(Runtime& runtime, const Value& number, const Value& by) {
  return apply(runtime, BinaryOp::kModulo, number, by);
}

Value is_odd(Runtime& runtime, const Value& self, Arguments&) {
  return Value::of(equals(modulo(runtime, self, Value::of(int64_t{2})), Value::of(int64_t{1})));
}

Value is_even(Runtime& runtime, const Value& self, Arguments&) {
  return Value::of(equals(modulo(runtime, self, Value::of(int64_t{2})), Value::of(int64_t{0})));
}

Value is_divisible(Runtime& runtime, const Value& self, Arguments& arguments) {
  return Value::of(equals(modulo(runtime, self, arguments.positional[0]), Value::of(int64_t{0})));
}

// Whether there is at least one letter and every letter has the wanted case.
template <bool (*Wanted)(uint32_t), bool (*Other)(uint32_t)>
Value is_in_case(Runtime& runtime, const Value& self, Arguments&) {
  Value holder;
  bool some = false, all = true;
  const std::string_view text = text_of(runtime.heap(), self, holder);
  runtime.heap().scan(text.size());
  each_character(text, [&](uint32_t code, std::string_view) {
    some = some || Wanted(code);
    all = all && !Other(code) && !is_title(code);
  });
  return Value::of(some && all);
}

bool is_callable(const Value& value) {
  return value.is(Kind::kFunction) || value.is(Kind::kMacro) || value.is(Kind::kLoop) || value.is(Kind::kJoiner) ||
         value.is_undefined();
}

bool is_sequence(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
      return true;
    default:
      // Undefined has a length and accepts any attribute name.
      return value.is_undefined();
  }
}

Value is_same(Runtime&, const Value& self, Arguments& arguments) {
  return Value::of(self.same_as(arguments.positional[0]));
}

Value is_filter(Runtime&, const Value& self, Arguments&) {
  return Value::of(self.is_string() && find_filter(self.text()) != nullptr);
}

Value is_test(Runtime&, const Value& self, Arguments&) {
  return Value::of(self.is_string() && find_test(self.text()) != nullptr);
}

constexpr Builtin kTests[] = {
    {"odd", "", is_odd},
    {"even", "", is_even},
    {"divisibleby", "num", is_divisible},
    {"defined", "", check<[](const Value& v) { return !v.is_undefined(); }>},
    {"undefined", "", check<[](const Value& v) { return v.is_undefined(); }>},
    {"filter", "", is_filter},
    {"test", "", is_test},
    {"none", "", check<[](const Value& v) { return v.is_none(); }>},
    {"boolean", "", check<[](const Value& v) { return v.is(Kind::kBool); }>},
    {"false", "", check<[](const Value& v) { return v.is(Kind::kBool) && v.as_int() == 0; }>},
    {"true", "", check<[](const Value& v) { return v.is(Kind::kBool) && v.as_int() != 0; }>},
    {"integer", "", check<[](const Value& v) { return v.is(Kind::kInt); }>},
    {"float", "", check<[](const Value& v) { return v.is(Kind::kFloat); }>},
    {"lower", "", is_in_case<is_lower, is_upper>},
    {"upper", "", is_in_case<is_upper, is_lower>},
    {"string", "", check<[](const Value& v) { return v.is_string(); }>},
    {"mapping", "", check<[](const Value& v) { return v.is(Kind::kDict); }>},
    {"number", "", check<[](const Value& v) { return v.is_number(); }>},
    {"sequence", "", check<is_sequence>},
    {"iterable", "", check<is_iterable>},
    {"callable", "", check<is_callable>},
    {"sameas", "other", is_same},
    {"escaped", "", check<[](const Value& v) { return is_markup(v); }>},
    {"in", "seq", comparison<CompareOp::kIn>},
    {"==", ".", comparison<CompareOp::kEqual>},
    {"eq", ".", comparison<CompareOp::kEqual>},
    {"equalto", ".", comparison<CompareOp::kEqual>},
    {"!=", ".", comparison<CompareOp::kNotEqual>},
    {"ne", ".", comparison<CompareOp::kNotEqual>},
    {">", ".", comparison<CompareOp::kGreater>},
    {"gt", ".", comparison<CompareOp::kGreater>},
    {"greaterthan", ".", comparison<CompareOp::kGreater>},
    {">=", ".", comparison<CompareOp::kGreaterEqual>},
    {"ge", ".", comparison<CompareOp::kGreaterEqual>},
    {"<", ".", comparison<CompareOp::kLess>},
    {"lt", ".", comparison<CompareOp::kLess>},
    {"lessthan", ".", comparison<CompareOp::kLess>},
    {"<=", ".", comparison<CompareOp::kLessEqual>},
    {"le", ".", comparison<CompareOp::kLessEqual>},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

}  // namespace infer::jinja
