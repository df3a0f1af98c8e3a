#include <cmath>

#include "src/text/jinja/format.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/number_format.h"
#include "src/text/jinja/numbers.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

Layout parse_layout(std::string_view spec) {
  Layout layout;
  bool has_fill = false;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!spec.empty()) {
    const size_t first = decode_utf8(spec, 0).length;
    if (first < spec.size() && is_align(spec[first])) {
      has_fill = true;
      layout.fill = spec.substr(0, first);
      layout.align = spec[first];
      at = first + 1;
    } else if (is_align(spec[0])) {
      layout.align = spec[0];
      at = 1;
    }
  }
  const auto take = [&](std::string_view among) {
    return at < spec.size() && among.find(spec[at]) != std::string_view::npos ? spec[at++] : '\0';
  };
  const auto number = [&] {
    int64_t n = 0;
    while (at < spec.size() && spec[at] >= '0' && spec[at] <= '9') {
      n = n * 10 + (spec[at++] - '0');
      if (n > INT32_MAX) fail("Too many decimal digits in format string");
    }
    return n;
  };
  if (const char sign = take("+- ")) layout.sign = sign;
  take("z");
  layout.alternate = take("#") != 0;
  if (take("0") != 0) {
    if (!has_fill) layout.fill = "0";
    if (layout.align == 0) layout.align = '=';
  }
  layout.width = number();
  layout.grouping = take(",_");
  if (take(".") != 0) {
    if (at >= spec.size() || spec[at] < '0' || spec[at] > '9') fail("Format specifier missing precision");
    layout.precision = number();
  }
  layout.type = take("bcdeEfFgGnosxX%");
  if (at < spec.size()) fail("Invalid format specifier");
  return layout;
}

void append_number(const Value& value, Layout layout, Text& out) {
  const bool real = value.is(Kind::kFloat) ||
                    (layout.type && std::string_view("eEfFgG%").find(layout.type) != std::string_view::npos);
  bool negative = false;
  std::string digits;
  size_t every = 3;
  if (real) {
    const double number = value.as_float();
    if (layout.type && std::string_view("eEfFgGn%").find(layout.type) == std::string_view::npos) {
      fail(concat("Unknown format code '", layout.type, "' for object of type 'float'"));
    }
    negative = std::signbit(number) && !std::isnan(number);
    digits = float_digits(number, layout.type, layout.precision, layout.alternate);
  } else {
    if (layout.precision >= 0) fail("Precision not allowed in integer format specifier");
    if (layout.type == 's') fail("Unknown format code 's' for object of type 'int'");
    if (layout.type == 'c') {
      if (value.as_int() < 0 || value.as_int() > 0x10FFFF) fail("%c arg not in range(0x110000)");
      append_utf8(static_cast<uint32_t>(value.as_int()), digits);
      append_padded("", digits, layout, '<', out);
      return;
    }
    negative = value.as_int() < 0;
    const char type = layout.type == 0 || layout.type == 'n' ? 'd' : layout.type;
    digits = integer_digits(value.as_int(), type, false);
    if (type != 'd') every = 4;
    if (layout.grouping == ',' && type != 'd') fail(concat("Cannot specify ',' with '", type, "'."));
  }
  std::string sign = negative ? "-" : layout.sign == '-' ? "" : std::string(1, layout.sign);
  if (!real && layout.alternate && layout.type &&
      std::string_view("xXob").find(layout.type) != std::string_view::npos) {
    sign += {'0', layout.type};
  }
  if (layout.grouping) {
    // Padding zeros are part of the digit groups.
    if (layout.fill == "0" && layout.align == '=') {
      if (layout.width > kMaxPrecision) fail_budget(concat("the width ", layout.width, " is too large"));
      size_t whole = digits.find_first_not_of("0123456789abcdefABCDEF");
      if (whole == std::string::npos) whole = digits.size();
      const auto fits = [&] {
        return static_cast<int64_t>(sign.size() + with_grouping(digits, layout.grouping, every).size()) >= layout.width;
      };
      while (!fits()) digits.insert(0, 1, '0');
    }
    digits = with_grouping(digits, layout.grouping, every);
  }
  append_padded(sign, digits, layout, '>', out);
}

class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, const Arguments& arguments, const Value* mapping, bool markup)
      : runtime_(runtime), heap_(runtime.heap()), arguments_(arguments), mapping_(mapping), markup_(markup) {}

  Text run(std::string_view format, int depth) {
    if (depth > 2) fail("Max string recursion exceeded");
    Text out(heap_);
    for (size_t at = 0; at < format.size();) {
      heap_.step();
      const size_t special = std::min(format.find_first_of("{}", at), format.size());
      out += format.substr(at, special - at);
      at = special;
      if (at >= format.size()) break;
      const char c = format[at++];
      if (at < format.size() && format[at] == c) {
        out += c;
        ++at;
        continue;
      }
      if (c == '}') fail("Single '}' encountered in format string");
      at = field(format, at, depth, out);
    }
    return out;
  }

 private:
  // Formats the replacement field at `at`; returns where it ends.
  size_t field(std::string_view format, size_t at, int depth, Text& out) {
    size_t end = at;
    for (int open = 1; end < format.size(); ++end) {
      if (format[end] == '{') ++open;
      if (format[end] == '}' && --open == 0) break;
    }
    if (end >= format.size())
      fail(at >= format.size() ? "Single '{' encountered in format string" : "expected '}' before end of string");
    const std::string_view body = format.substr(at, end - at);
    // name[!conversion][:spec]; ! and : may appear inside brackets.
    size_t name_end = 0;
    for (bool bracket = false; name_end < body.size(); ++name_end) {
      const char c = body[name_end];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == '!' || c == ':')) break;
    }
    std::string_view rest = body.substr(name_end);
    char conversion = 0;
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) fail("expected ':' after conversion specifier");
      conversion = rest[1];
      rest.remove_prefix(2);
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    Value value = look_up(body.substr(0, name_end));
    const Text spec = run(rest, depth + 1);
    const size_t begin = out.size();
    bool from_caller = false;
    if (conversion) {
      if (conversion == 's') {
        value = to_text(heap_, value);
      } else if (conversion == 'r' || conversion == 'a') {
        Text text(heap_), ascii(heap_);
        append_repr(value, text);
        from_caller = text.has_caller_text();
        if (conversion == 'a') append_ascii(text, ascii);
        value = Value::of(conversion == 'a' ? std::move(ascii) : std::move(text));
      } else {
        fail(concat("Unknown conversion specifier '", conversion, "'"));
      }
    }
    if (markup_ && !is_markup(value)) {
      Text text(heap_);
      append_formatted(heap_, value, spec, text);
      from_caller = from_caller || text.has_caller_text();
      append_escaped(text, out);
    } else {
      append_formatted(heap_, value, spec, out);
    }
    if (from_caller || has_caller_text(value)) out.mark_from(begin);
    return end + 1;
  }

  Value look_up(std::string_view path) {
    const size_t first_end = std::min(path.find_first_of(".["), path.size());
    Value value = base(path.substr(0, first_end));
    path.remove_prefix(first_end);
    while (!path.empty()) {
      heap_.step();
      if (path[0] == '.') {
        path.remove_prefix(1);
        const size_t end = std::min(path.find_first_of(".["), path.size());
        if (end == 0) fail("Empty attribute in format string");
        value = runtime_.get_attribute(value, Value::of(heap_, path.substr(0, end)));
        path.remove_prefix(end);
      } else if (path[0] == '[') {
        const size_t end = path.find(']');
        if (end == std::string_view::npos) fail("Missing ']' in format string");
        const std::string_view key = path.substr(1, end - 1);
        if (key.empty()) fail("Empty attribute in format string");
        const bool index = key.find_first_not_of("0123456789") == std::string_view::npos;
        const auto number = index ? parse_int(key, 10) : std::nullopt;
        value = runtime_.get_item(value, number ? Value::of(*number) : Value::of(heap_, key));
        path.remove_prefix(end + 1);
      } else {
        fail("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value base(std::string_view name) {
    const bool index = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (index) {
      if (name.empty() ? next_ < 0 : next_ > 0) {
        fail(name.empty() ? "cannot switch from manual field specification to automatic field numbering"
                          : "cannot switch from automatic field numbering to manual field specification");
      }
      int64_t i = 0;
      if (name.empty()) i = next_++;
      else i = parse_int(name, 10).value_or(0), next_ = -1;
      if (static_cast<size_t>(i) >= arguments_.positional.size()) {
        fail(concat("Replacement index ", i, " out of range for positional args tuple"));
      }
      return arguments_.positional[static_cast<size_t>(i)];
    }
    if (mapping_) {
      const Value* found = mapping_->is(Kind::kDict) ? mapping_->dict().find(name) : nullptr;
      if (!found) fail(concat("the format names '", name.substr(0, 100), "', which was not passed"));
      return *found;
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key.text() == name) return value;
    }
    fail(concat("the format names '", name.substr(0, 100), "', which was not passed"));
  }

  Runtime& runtime_;
  Heap& heap_;
  const Arguments& arguments_;
  const Value* mapping_;
  const bool markup_;
  int64_t next_ = 0;  // automatic number of the next field; -1: fields are numbered explicitly
};

}  // namespace

void append_formatted(Heap& heap, const Value& value, std::string_view spec, Text& out) {
  if (spec.empty()) {
    append_str(value, out);
    return;
  }
  if (value.is_number()) {
    const Layout layout = parse_layout(spec);
    append_number(value, layout, out);
    return;
  }
  if (!value.is_string()) {
    require_defined(value);
    fail(concat("unsupported format string passed to ", type_name(value), ".__format__"));
  }
  const Layout layout = parse_layout(spec);
  if (layout.type != 0 && layout.type != 's') {
    fail(concat("Unknown format code '", layout.type, "' for object of type 'str'"));
  }
  if (layout.align == '=' && layout.fill != "0") fail("'=' alignment not allowed in string format specifier");
  if (layout.sign != '-') fail("Sign not allowed in string format specifier");
  if (layout.grouping) fail(concat("Cannot specify '", layout.grouping, "' with 's'."));
  Layout left = layout;
  if (left.align == '=') left.align = '<';
  const std::string_view text =
      layout.precision >= 0 ? value.text().substr(0, byte_offset(value.string(), layout.precision)) : value.text();
  heap.work(text.size());
  append_padded("", text, left, '<', out);
}

Value format_braces(Runtime& runtime, const Value& text, const Arguments& arguments, const Value* mapping) {
  BraceFormat format(runtime, arguments, mapping, text.string().markup());
  return make_text_like(format.run(text.text(), 0), text);
}

}  // namespace infer::jinja
