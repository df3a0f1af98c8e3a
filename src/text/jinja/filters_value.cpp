// Filters for numbers and for values of any kind.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/json_text.h"
#include "src/text/jinja/numbers.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/pretty.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"

namespace infer::jinja {
namespace {

Value absolute(Runtime&, const Value& self, Arguments&) {
  require_defined(self);
  if (self.is(Kind::kFloat)) return Value::of(std::fabs(self.as_float()));
  if (!self.is_integer()) fail(concat("bad operand type for abs(): '", type_name(self), "'"));
  return self.as_int() < 0 ? negate(self) : Value::of(self.as_int());
}

// Looks up attributes only, not the keys of a mapping.
Value attribute(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value& name = arguments.positional[0];
  const std::string_view text = text_argument(name, "attr");
  if (self.is(Kind::kDict) && !find_method(Kind::kDict, text)) {
    return runtime.undefined(concat("'dict object' has no attribute '", text.substr(0, 100), "'"));
  }
  return runtime.get_attribute(self, name);
}

Value default_value(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value &fallback = arguments.positional[0], &boolean = arguments.positional[1];
  if (!self.is_undefined() && !(truth(boolean) && !truth(self))) return self;
  return fallback.is_missing() ? runtime.text("") : fallback;
}

// The string may be of any length, so its work is charged first.
std::optional<double> float_of(Runtime& runtime, const Value& string) {
  runtime.heap().scan(string.text().size());
  return parse_float(string.text());
}

Value to_int(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value &fallback = arguments.positional[0], &base = arguments.positional[1];
  require_defined(self);
  std::optional<int64_t> number;
  std::optional<double> real;
  if (self.is_integer()) {
    number = self.as_int();
  } else if (self.is(Kind::kFloat)) {
    real = self.as_float();
    if (std::isinf(*real)) fail("cannot convert float infinity to integer");
  } else if (self.is_string()) {
    runtime.heap().scan(self.text().size());
    number = parse_int(self.text(), static_cast<int>(int_or(base, 10, "int")));
    if (!number) real = float_of(runtime, self);
  }
  if (!number && real && std::isfinite(*real)) {
    if (std::fabs(*real) >= 9223372036854775808.0) fail("the number does not fit in 64 bits");
    number = static_cast<int64_t>(*real);
  }
  if (number) return Value::of(*number);
  return fallback.is_missing() ? Value::of(int64_t{0}) : fallback;
}

Value to_float(Runtime& runtime, const Value& self, Arguments& arguments) {
  require_defined(self);
  if (self.is_number()) return Value::of(self.as_float());
  if (self.is_string()) {
    if (const auto number = float_of(runtime, self)) return Value::of(*number);
  }
  const Value& fallback = arguments.positional[0];
  return fallback.is_missing() ? Value::of(0.0) : fallback;
}

Value round_number(Runtime&, const Value& self, Arguments& arguments) {
  const Value& method = arguments.positional[1];
  const int64_t precision = int_or(arguments.positional[0], 0, "precision");
  const std::string_view how = method.is_missing() ? "common" : text_argument(method, "method");
  if (how != "common" && how != "ceil" && how != "floor") fail("method must be common, ceil or floor");
  require_defined(self);
  if (!self.is_number()) fail(concat("type ", type_name(self), " doesn't define __round__ method"));
  if (how == "common") {
    return self.is_integer() ? Value::of(round_to(self.as_int(), precision))
                             : Value::of(round_to(self.as_float(), precision));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = self.as_float() * scale;
  if (!std::isfinite(scaled)) fail("cannot convert float infinity to integer");
  return Value::of((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value length(Runtime&, const Value& self, Arguments&) { return Value::of(length_of(self)); }
Value string(Runtime& runtime, const Value& self, Arguments&) { return to_text(runtime.heap(), self); }

Value random(Runtime&, const Value&, Arguments&) {
  fail("random is not available: a prompt must depend on its variables only");
}

Value to_json(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  JsonLayout layout;
  layout.ensure_ascii = !a[0].is_missing() && truth(a[0]);
  Value holder;
  if (!a[1].is_missing() && !a[1].is_none()) {
    layout.indented = true;
    if (a[1].is_string()) layout.indent = a[1].text();
    else layout.indent = std::string(static_cast<size_t>(indent_width(int_argument(a[1], "indent"))), ' ');
    layout.item_separator = ",";
  }
  if (!a[2].is_missing() && !a[2].is_none()) {
    const bool pair = a[2].is_sequence() && a[2].items().size() == 2;
    if (!pair) fail("separators: expected a pair of strings");
    layout.item_separator = text_argument(a[2].items()[0], "separators");
    layout.key_separator = text_argument(a[2].items()[1], "separators");
  }
  layout.sort_keys = !a[3].is_missing() && truth(a[3]);
  Text out(runtime.heap());
  append_json(self, layout, out);
  const bool separators = a[2].is_sequence() && (has_caller_text(a[2].items()[0]) || has_caller_text(a[2].items()[1]));
  if (separators || has_caller_text(a[1])) out.mark_from(0);
  return Value::of(std::move(out));
}

Value pretty(Runtime& runtime, const Value& self, Arguments&) {
  Text out(runtime.heap());
  append_pretty(self, out);
  return Value::of(std::move(out));
}

Value file_size(Runtime& runtime, const Value& self, Arguments& arguments) {
  require_defined(self);
  std::optional<double> bytes;
  if (self.is_number()) bytes = self.as_float();
  else if (self.is_string()) bytes = float_of(runtime, self);
  if (!bytes) fail("could not convert value to float");
  const bool binary = truth(arguments.positional[0]);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return runtime.text("1 Byte");
  if (*bytes < base) return runtime.text(concat(static_cast<int64_t>(*bytes), " Bytes"));
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base * base;
  size_t i = 0;
  for (; i + 1 < kPrefixes.size() && *bytes >= unit; ++i) unit *= base;
  char text[400];
  const char prefix = binary && i == 0 ? 'K' : kPrefixes[i];
  std::snprintf(text, sizeof(text), "%.1f %c%sB", base * *bytes / unit, prefix, binary ? "i" : "");
  return runtime.text(text);
}

constexpr Builtin kValueFilters[] = {
    {"abs", "", absolute},
    {"attr", "name", attribute},
    {"default", "[default_value] [boolean]", default_value},
    {"d", "[default_value] [boolean]", default_value},
    {"int", "[default] [base]", to_int},
    {"float", "[default]", to_float},
    {"round", "[precision] [method]", round_number},
    {"length", "", length},
    {"count", "", length},
    {"string", "", string},
    {"random", "", random},
    {"tojson", "[ensure_ascii] [indent] [separators] [sort_keys]", to_json},
    {"pprint", "", pretty},
    {"filesizeformat", "[binary]", file_size},
};

}  // namespace

std::span<const Builtin> value_filters() { return kValueFilters; }

}  // namespace infer::jinja
