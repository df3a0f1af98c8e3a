#include "src/text/jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "src/text/jinja/format.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/search.h"

namespace infer::jinja {
namespace {

constexpr int kMaxComparedDepth = 200;  // of nested values being compared

const char* sign_of(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSubtract:
      return "-";
    case BinaryOp::kMultiply:
      return "*";
    case BinaryOp::kDivide:
      return "/";
    case BinaryOp::kFloorDivide:
      return "//";
    case BinaryOp::kModulo:
      return "%";
    case BinaryOp::kPower:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void fail_overflow() { fail("the result does not fit in 64 bits"); }

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) fail("integer division or modulo by zero");
  if (a == INT64_MIN && b == -1) fail_overflow();
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) fail("integer modulo by zero");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  if (b == 0) fail("float modulo");
  double rest = std::fmod(a, b);
  if (rest == 0) rest = std::copysign(0.0, b);
  else if ((rest < 0) != (b < 0)) rest += b;
  return rest;
}

double floor_divide(double a, double b) {
  if (b == 0) fail("float floor division by zero");
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if (exponent & 1) result = multiply_checked(result, base);
    exponent >>= 1;
    if (exponent > 0) {
      base = multiply_checked(base, base);
    }
  }
  return result;
}

Value power(const Value& left, const Value& right) {
  if (left.is_integer() && right.is_integer()) {
    const int64_t base = left.as_int(), exponent = right.as_int();
    if (exponent >= 0) {
      if (base == 0 || base == 1) return Value::of(exponent == 0 ? int64_t{1} : base);
      if (base == -1) return Value::of(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
      return Value::of(power(base, exponent));
    }
    if (base == 0) fail("0.0 cannot be raised to a negative power");
  }
  const double a = left.as_float(), b = right.as_float();
  if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && b != std::floor(b)) fail("the result of ** is a complex number");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) fail("(34, 'Numerical result out of range')");
  return Value::of(result);
}

Value divide(const Value& left, const Value& right) {
  if (right.as_float() == 0)
    fail(left.is_integer() && right.is_integer() ? "division by zero" : "float division by zero");
  if (left.is_integer() && right.is_integer()) {
    // Exact if the division is; otherwise rounded once from a quotient with more bits than a double has.
    return Value::of(
        static_cast<double>(static_cast<long double>(left.as_int()) / static_cast<long double>(right.as_int())));
  }
  return Value::of(left.as_float() / right.as_float());
}

Value arithmetic(BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::kPower) return power(left, right);
  if (op == BinaryOp::kDivide) return divide(left, right);
  if (left.is_integer() && right.is_integer()) {
    const int64_t a = left.as_int(), b = right.as_int();
    int64_t result = 0;
    switch (op) {
      case BinaryOp::kAdd:
        return Value::of(add_checked(a, b));
      case BinaryOp::kSubtract:
        if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
        return Value::of(result);
      case BinaryOp::kMultiply:
        return Value::of(multiply_checked(a, b));
      case BinaryOp::kFloorDivide:
        return Value::of(floor_divide(a, b));
      default:
        return Value::of(floor_modulo(a, b));
    }
  }
  const double a = left.as_float(), b = right.as_float();
  switch (op) {
    case BinaryOp::kAdd:
      return Value::of(a + b);
    case BinaryOp::kSubtract:
      return Value::of(a - b);
    case BinaryOp::kMultiply:
      return Value::of(a * b);
    case BinaryOp::kFloorDivide:
      return Value::of(floor_divide(a, b));
    default:
      return Value::of(floor_modulo(a, b));
  }
}

// Repeats a string, list or tuple.
Value repeat(Heap& heap, const Value& sequence, int64_t count) {
  const size_t n = count < 0 ? 0 : static_cast<size_t>(count);
  if (sequence.is_string()) {
    const std::string_view text = sequence.text();
    Text out(heap);
    if (n > 0 && text.size() > SIZE_MAX / 2 / n) fail_budget("the repeated string is too large");
    out.reserve(text.size() * n);
    // Doubles the text each time.
    const size_t size = text.size() * n;
    if (size > 0) out += text;
    while (out.size() < size) out.append(std::string_view(out).substr(0, size - out.size()));
    return make_text_like(std::move(out), sequence);
  }
  const Values& items = sequence.items();
  Values out(heap);
  if (n > 0 && items.size() > SIZE_MAX / 64 / n) fail_budget("the repeated list is too large");
  out.reserve(items.size() * n);
  heap.step(items.size() * n / 4);
  if (!items.empty()) {
    for (size_t i = 0; i < n; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  return sequence.is(Kind::kList) ? make_list(std::move(out)) : make_tuple(std::move(out));
}

Value concatenate(Heap& heap, const Value& left, const Value& right) {
  if (left.is_string()) {
    const bool markup = left.string().markup() || right.string().markup();
    Text out(heap);
    out.reserve(left.text().size() + right.text().size());
    const auto add = [&](const Value& part) {
      if (markup && !part.string().markup()) append_escaped(part, out);
      else out.append_part(part.string().marked_text(), 0, part.text().size());
    };
    add(left);
    add(right);
    return markup ? make_markup(std::move(out)) : Value::of(std::move(out));
  }
  Values out(heap);
  out.reserve(left.items().size() + right.items().size());
  heap.step((left.items().size() + right.items().size()) / 4);
  out.insert(out.end(), left.items().begin(), left.items().end());
  out.insert(out.end(), right.items().begin(), right.items().end());
  return left.is(Kind::kList) ? make_list(std::move(out)) : make_tuple(std::move(out));
}

bool keys_in_dict(const DictObject& a, const DictObject& b, int depth) {
  for (const auto& [key, value] : a.entries()) {
    a.heap().step();
    const Value* other = b.find(key);
    if (!other || !equals(value, *other, depth)) return false;
  }
  return true;
}

std::optional<int> order_of_numbers(const Value& left, const Value& right) {
  if (left.is_integer() && right.is_integer()) {
    return left.as_int() < right.as_int() ? -1 : left.as_int() > right.as_int();
  }
  // On x86, long double holds any int64_t and any double exactly; elsewhere it is at least as wide as a double.
  const auto exact = [](const Value& v) {
    return v.is(Kind::kFloat) ? static_cast<long double>(v.as_float()) : static_cast<long double>(v.as_int());
  };
  const long double a = exact(left), b = exact(right);
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return a < b ? -1 : a > b;
}

}  // namespace

int64_t add_checked(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) fail_overflow();
  return result;
}

int64_t multiply_checked(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
  return result;
}

void require_defined(const Value& value) {
  if (value.is_undefined()) fail(std::string(value.get<UndefinedObject>().why()));
}

Value apply(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  Heap& heap = runtime.heap();
  if (left.is_number() && right.is_number()) return arithmetic(op, left, right);
  if (op == BinaryOp::kModulo && left.is_string()) return format_percent(runtime, left, right);
  require_defined(left);
  require_defined(right);
  const auto sequence = [](const Value& v) { return v.is_string() || v.is_sequence(); };
  if (op == BinaryOp::kAdd && sequence(left)) {
    if (left.kind() == right.kind()) return concatenate(heap, left, right);
    const std::string_view type = left.is_string() ? "str" : type_name(left);
    fail(concat("can only concatenate ", type, " (not \"", type_name(right), "\") to ", type));
  }
  if (op == BinaryOp::kMultiply && sequence(left) && right.is_integer()) return repeat(heap, left, right.as_int());
  if (op == BinaryOp::kMultiply && sequence(right) && left.is_integer()) return repeat(heap, right, left.as_int());
  if (op == BinaryOp::kMultiply && (sequence(left) || sequence(right))) {
    fail(concat("can't multiply sequence by non-int of type '", type_name(sequence(left) ? right : left), "'"));
  }
  fail(concat("unsupported operand type(s) for ", sign_of(op), ": '", type_name(left), "' and '", type_name(right),
              "'"));
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is(Kind::kFloat)) return Value::of(-value.as_float());
  if (!value.is_integer()) fail(concat("bad operand type for unary -: '", type_name(value), "'"));
  if (value.as_int() == INT64_MIN) fail_overflow();
  return Value::of(-value.as_int());
}

Value unary_plus(const Value& value) {
  require_defined(value);
  if (!value.is_number()) fail(concat("bad operand type for unary +: '", type_name(value), "'"));
  return value.is(Kind::kBool) ? Value::of(value.as_int()) : value;
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_int() != 0;
    case Kind::kFloat:
      return value.as_float() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return value.dict().size() > 0;
    case Kind::kView:
      return value.get<ViewObject>().dict().size() > 0;
    case Kind::kRange:
      return value.get<RangeObject>().size > 0;
    default:
      return true;
  }
}

bool equals(const Value& left, const Value& right, int depth) {
  if (depth > kMaxComparedDepth) fail_budget("values nested too deeply to be compared");
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      if (left.text().size() != right.text().size()) return false;
      left.object()->heap().work(left.text().size());
      return left.text() == right.text();
    case Kind::kList:
    case Kind::kTuple: {
      const Values &a = left.items(), &b = right.items();
      if (a.size() != b.size()) return false;
      if (&a == &b) return true;
      for (size_t i = 0; i < a.size(); ++i) {
        left.object()->heap().step();
        if (!equals(a[i], b[i], depth + 1)) return false;
      }
      return true;
    }
    case Kind::kDict:
      if (left.object() == right.object()) return true;
      return left.dict().size() == right.dict().size() && keys_in_dict(left.dict(), right.dict(), depth + 1);
    case Kind::kRange: {
      const auto &a = left.get<RangeObject>(), &b = right.get<RangeObject>();
      if (a.size != b.size) return false;
      return a.size == 0 || (a.start == b.start && (a.size == 1 || a.step == b.step));
    }
    case Kind::kView: {
      const auto &a = left.get<ViewObject>(), &b = right.get<ViewObject>();
      if (a.part() != b.part() || a.part() == ViewObject::kValues) return left.object() == right.object();
      if (a.dict().size() != b.dict().size()) return false;
      if (a.part() == ViewObject::kItems) return keys_in_dict(a.dict(), b.dict(), depth + 1);
      for (const auto& [key, value] : a.dict().entries()) {
        a.heap().step();
        if (!b.dict().find(key)) return false;
      }
      return true;
    }
    case Kind::kFunction: {
      const auto &a = left.get<FunctionObject>(), &b = right.get<FunctionObject>();
      return &a.builtin == &b.builtin && a.self.kind() == b.self.kind() && a.self.same_as(b.self);
    }
    default:
      return left.object() == right.object();
  }
}

std::optional<int> order(const Value& left, const Value& right, std::string_view op, int depth) {
  if (depth > kMaxComparedDepth) fail_budget("values nested too deeply to be compared");
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right);
  require_defined(left);
  require_defined(right);
  if (left.is_string() && right.is_string()) {
    left.object()->heap().work(std::min(left.text().size(), right.text().size()));
    const int c = left.text().compare(right.text());  // UTF-8 sorts in code point order
    return c < 0 ? -1 : c > 0;
  }
  if (left.kind() == right.kind() && left.is_sequence()) {
    const Values &a = left.items(), &b = right.items();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      left.object()->heap().step();
      if (!equals(a[i], b[i], depth + 1)) return order(a[i], b[i], op, depth + 1);
    }
    return a.size() < b.size() ? -1 : a.size() > b.size();
  }
  fail(concat("'", op, "' not supported between instances of '", type_name(left), "' and '", type_name(right), "'"));
}

void sort_keyed(Heap& heap, Vector<Keyed>& items, bool descending) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    heap.step();
    return order(descending ? b.key : a.key, descending ? a.key : b.key).value_or(0) < 0;
  });
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        fail(concat("'in <string>' requires string as left operand, not ", type_name(item)));
      }
      return find_first(container.object()->heap(), container.text(), item.text()) != kNotFound;
    case Kind::kDict:
      return container.dict().find(item) != nullptr;
    case Kind::kView:
      if (container.get<ViewObject>().part() == ViewObject::kKeys) {
        return container.get<ViewObject>().dict().find(item) != nullptr;
      }
      break;
    case Kind::kRange: {
      if (!item.is_number()) return false;
      const auto& range = container.get<RangeObject>();
      const double x = item.as_float();
      if (x != std::floor(x) || std::fabs(x) > 9e18) return false;
      const int64_t n = item.is_integer() ? item.as_int() : static_cast<int64_t>(x);
      int64_t offset = 0;
      if (__builtin_sub_overflow(n, range.start, &offset)) return false;
      return offset % range.step == 0 && offset / range.step >= 0 && offset / range.step < range.size;
    }
    default:
      break;
  }
  if (!is_iterable(container)) fail(concat("argument of type '", type_name(container), "' is not iterable"));
  if (container.is_undefined()) return false;
  Iterator iterator(container.object()->heap(), container);
  while (const auto other = iterator.next()) {
    if (equals(*other, item)) return true;
  }
  return false;
}

bool compare(Runtime&, CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEqual:
      return equals(left, right);
    case CompareOp::kNotEqual:
      return !equals(left, right);
    case CompareOp::kIn:
      return contains(right, left);
    case CompareOp::kNotIn:
      return !contains(right, left);
    case CompareOp::kLess: {
      const auto o = order(left, right, "<");
      return o && *o < 0;
    }
    case CompareOp::kLessEqual: {
      const auto o = order(left, right, "<=");
      return o && *o <= 0;
    }
    case CompareOp::kGreater: {
      const auto o = order(left, right, ">");
      return o && *o > 0;
    }
    case CompareOp::kGreaterEqual: {
      const auto o = order(left, right, ">=");
      return o && *o >= 0;
    }
  }
  return false;
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.string().length();
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().size());
    case Kind::kView:
      return static_cast<int64_t>(value.get<ViewObject>().dict().size());
    case Kind::kRange:
      return value.get<RangeObject>().size;
    default:
      fail(concat("object of type '", type_name(value), "' has no len()"));
  }
}

}  // namespace infer::jinja
