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

// What Python treats as a mapping here: left-over values of these types are no error.
bool is_subscriptable(const Value& value) {
  return value.is(Kind::kDict) || value.is(Kind::kList) || value.is(Kind::kRange);
}

class PercentFormat {
 public:
  PercentFormat(Heap& heap, const Value& text, const Value& values)
      : heap_(heap), text_(text), format_(text.text()), markup_(text.string().markup()), values_(values), out_(heap) {}

  Value run() {
    for (at_ = 0; at_ < format_.size();) {
      if (format_[at_] != '%') {
        const size_t next = std::min(format_.find('%', at_), format_.size());
        out_ += format_.substr(at_, next - at_);
        at_ = next;
        continue;
      }
      ++at_;
      heap_.step();
      conversion();
    }
    if (values_.is(Kind::kTuple) ? used_ < values_.items().size() : used_ == 0 && !is_subscriptable(values_)) {
      fail("not all arguments converted during string formatting");
    }
    return make_text_like(std::move(out_), text_);
  }

 private:
  char next() {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_[at_++];
  }

  Value value() {
    if (has_key_) return keyed_;
    if (values_.is(Kind::kTuple)) {
      if (used_ >= values_.items().size()) fail("not enough arguments for format string");
      return values_.items()[used_++];
    }
    if (used_++ > 0) fail("not enough arguments for format string");
    return values_;
  }

  void key() {
    size_t end = at_;
    for (int depth = 1; end < format_.size(); ++end) {
      if (format_[end] == '(') ++depth;
      if (format_[end] == ')' && --depth == 0) break;
    }
    if (end >= format_.size()) fail("incomplete format key");
    const std::string_view name = format_.substr(at_, end - at_);
    at_ = end + 1;
    if (!values_.is(Kind::kDict)) fail("format requires a mapping");
    const Value* found = values_.dict().find(name);
    if (!found) fail(concat("the format names '", name.substr(0, 100), "', which was not passed"));
    keyed_ = *found;
    has_key_ = true;
    ++used_;
  }

  // A number in the format, or * for the next value.
  int64_t number() {
    if (at_ < format_.size() && format_[at_] == '*') {
      ++at_;
      return int_of(value(), "*");
    }
    int64_t n = 0;
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      n = n * 10 + (format_[at_++] - '0');
      if (n > INT32_MAX) fail("width too big");
    }
    return n;
  }

  static int64_t int_of(const Value& value, const char* what) {
    if (!value.is_integer()) fail(concat(what, " wants int"));
    return value.as_int();
  }

  void conversion() {
    Layout layout;
    has_key_ = false;
    bool left = false, zero = false;
    if (at_ < format_.size() && format_[at_] == '(') {
      ++at_;
      key();
    }
    layout.sign = 0;
    for (bool flags = true; flags && at_ < format_.size();) {
      switch (format_[at_]) {
        case '-':
          left = true;
          break;
        case '+':
          layout.sign = '+';
          break;
        case ' ':
          if (!layout.sign) layout.sign = ' ';
          break;
        case '#':
          layout.alternate = true;
          break;
        case '0':
          zero = true;
          break;
        default:
          flags = false;
      }
      if (flags) ++at_;
    }
    layout.width = number();
    if (layout.width < 0) left = true, layout.width = -layout.width;
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      layout.precision = std::max(int64_t{0}, number());
    }
    char type = next();
    if (type == 'h' || type == 'l' || type == 'L') type = next();
    if (type == '%') {
      out_ += '%';
      return;
    }
    convert(type, layout, left, zero);
  }

  void convert(char type, Layout& layout, bool left, bool zero) {
    const char align = left ? '<' : '>';
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        text(type, layout, align);
        return;
      case 'c': {
        const Value v = value();
        if (v.is_integer()) {
          if (v.as_int() < 0 || v.as_int() > 0x10FFFF) fail("%c arg not in range(0x110000)");
          std::string character;
          append_utf8(static_cast<uint32_t>(v.as_int()), character);
          append_padded("", character, layout, align, out_);
        } else if (v.is_string() && v.string().length() == 1) {
          const size_t begin = out_.size();
          append_padded("", v.text(), layout, align, out_);
          if (has_caller_text(v)) out_.mark_from(begin);
        } else {
          fail("%c requires int or char");
        }
        return;
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        integer(type, layout, left, zero);
        return;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        const Value v = value();
        require_defined(v);
        if (!v.is_number()) fail(concat("must be real number, not ", type_name(v)));
        signed_number(std::signbit(v.as_float()) && !std::isnan(v.as_float()),
                      float_digits(v.as_float(), type, layout.precision, layout.alternate), layout, left,
                      zero && std::isfinite(v.as_float()));
        return;
      }
      default:
        fail(concat("unsupported format character '", type, "'"));
    }
  }

  void text(char type, const Layout& layout, char align) {
    const Value v = value();
    Text body(heap_);
    if (type != 's') append_repr(v, body);
    else if (markup_ && !is_markup(v)) {
      append_escaped(to_text(heap_, v), body);
    } else {
      append_str(v, body);
    }
    const size_t begin = out_.size();
    const bool from_caller = body.has_caller_text();
    if (type == 'a') body = ascii(body);
    if (layout.precision >= 0) {
      const Value whole = Value::of(std::move(body));
      append_padded("", whole.text().substr(0, byte_offset(whole.string(), layout.precision)), layout, align, out_);
    } else {
      append_padded("", body, layout, align, out_);
    }
    if (from_caller) out_.mark_from(begin);
  }

  Text ascii(std::string_view text) {
    Text out(heap_);
    append_ascii(text, out);
    return out;
  }

  void integer(char type, Layout& layout, bool left, bool zero) {
    const Value v = value();
    require_defined(v);
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!v.is_integer() && !(decimal && v.is(Kind::kFloat))) {
      fail(
          concat("%", type, " format: ", decimal ? "a real number" : "an integer", " is required, not ", type_name(v)));
    }
    int64_t number = 0;
    if (v.is_integer()) {
      number = v.as_int();
    } else {
      if (!(std::fabs(v.as_float()) < 9.2e18)) fail("the number does not fit in 64 bits");
      number = static_cast<int64_t>(v.as_float());
    }
    std::string digits = integer_digits(number, decimal ? 'd' : type, false);
    if (layout.precision > kMaxPrecision) fail_budget(concat("the precision ", layout.precision, " is too large"));
    if (static_cast<int64_t>(digits.size()) < layout.precision) {
      digits.insert(0, static_cast<size_t>(layout.precision) - digits.size(), '0');
    }
    std::string prefix;
    if (layout.alternate && !decimal) prefix = {'0', type};
    signed_number(number < 0, digits, layout, left, zero, prefix);
  }

  void signed_number(bool negative, const std::string& digits, Layout& layout, bool left, bool zero,
                     const std::string& prefix = "") {
    std::string sign = negative ? "-" : layout.sign ? std::string(1, layout.sign) : "";
    sign += prefix;
    if (zero && !left) layout.fill = "0";
    append_padded(sign, digits, layout, left ? '<' : zero ? '=' : '>', out_);
  }

  Heap& heap_;
  const Value text_;  // the format string
  const std::string_view format_;
  const bool markup_;
  const Value& values_;
  Text out_;
  size_t at_ = 0, used_ = 0;
  bool has_key_ = false;
  Value keyed_;
};

}  // namespace

Value format_percent(Runtime& runtime, const Value& text, const Value& values) {
  return PercentFormat(runtime.heap(), text, values).run();
}

}  // namespace infer::jinja
