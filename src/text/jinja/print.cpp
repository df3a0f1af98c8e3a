#include "src/text/jinja/print.h"

#include <charconv>
#include <cmath>

#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

constexpr int kMaxPrintedDepth = 200;

void append_escape(uint32_t code, Text& out) {
  char escape[16];
  std::snprintf(escape, sizeof(escape), code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
  out += escape;
}

class Printer {
 public:
  explicit Printer(Text& out) : out_(out), heap_(out.get_allocator().heap()) {}

  void repr(const Value& value) {
    heap_.step();
    switch (value.kind()) {
      case Kind::kMissing:
      case Kind::kUndefined:
        out_ += "Undefined";
        return;
      case Kind::kNone:
        out_ += "None";
        return;
      case Kind::kBool:
        out_ += value.as_int() ? "True" : "False";
        return;
      case Kind::kInt:
        integer(value.as_int());
        return;
      case Kind::kFloat:
        out_ += float_repr(value.as_float());
        return;
      case Kind::kString:
        string(value);
        return;
      case Kind::kList:
      case Kind::kTuple:
        sequence(value);
        return;
      case Kind::kDict:
        nested(value.object(), "{...}", [&] { entries(value.dict().entries()); });
        return;
      case Kind::kView:
        view(value.get<ViewObject>());
        return;
      case Kind::kRange:
        range(value.get<RangeObject>());
        return;
      case Kind::kNamespace:
        nested(value.object(), "<Namespace {...}>", [&] {
          out_ += "<Namespace ";
          entries(value.get<NamespaceObject>().entries);
          out_ += '>';
        });
        return;
      case Kind::kGenerator:
        out_ += concat("<generator object ", value.get<GeneratorObject>().name, '>');
        return;
      case Kind::kFunction:
        out_ += concat("<function ", value.get<FunctionObject>().builtin.name, '>');
        return;
      case Kind::kMacro:
        append_macro_repr(value, out_);
        return;
      case Kind::kLoop:
        append_loop_repr(value, out_);
        return;
      default:
        out_ += concat("<jinja2.utils.", type_name(value), " object>");
        return;
    }
  }

 private:
  void integer(int64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    out_.append(digits, static_cast<size_t>(end - digits));
  }

  void string(const Value& value) {
    const size_t begin = out_.size();
    if (value.string().markup()) out_ += "Markup(";
    append_repr(value.text(), out_);
    if (value.string().markup()) out_ += ')';
    if (has_caller_text(value)) out_.mark_from(begin);
  }

  void range(const RangeObject& range) {
    out_ += concat("range(", range.start, ", ", range.stop);
    if (range.step != 1) out_ += concat(", ", range.step);
    out_ += ')';
  }

  template <typename Body>
  void nested(const Object* object, std::string_view again, Body body) {
    for (int i = 0; i < depth_; ++i) {
      if (open_[i] == object) {
        out_ += again;
        return;
      }
    }
    heap_.step(static_cast<uint64_t>(depth_) / 16);
    if (depth_ == kMaxPrintedDepth) fail_budget("the value is nested too deeply to be printed");
    open_[depth_++] = object;
    body();
    --depth_;
  }

  void sequence(const Value& value) {
    const bool list = value.is(Kind::kList);
    nested(value.object(), list ? "[...]" : "(...)", [&] {
      const Values& items = value.items();
      out_ += list ? '[' : '(';
      for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out_ += ", ";
        repr(items[i]);
      }
      if (!list && items.size() == 1) out_ += ',';
      out_ += list ? ']' : ')';
    });
  }

  void entries(const Vector<std::pair<Value, Value>>& pairs) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : pairs) {
      if (!first) out_ += ", ";
      first = false;
      repr(key);
      out_ += ": ";
      repr(value);
    }
    out_ += '}';
  }

  void view(const ViewObject& view) {
    constexpr std::string_view kNames[] = {"dict_keys([", "dict_values([", "dict_items(["};
    nested(&view, "...", [&] {
      out_ += kNames[view.part()];
      for (size_t i = 0; i < view.dict().size(); ++i) {
        if (i > 0) out_ += ", ";
        repr(view.at(i));
      }
      out_ += "])";
    });
  }

  Text& out_;
  Heap& heap_;
  const Object* open_[kMaxPrintedDepth] = {};
  int depth_ = 0;
};

}  // namespace

// The shortest digits that read back as the same number. As in Python, exponents from 1e16 and below 1e-4.
std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<size_t>(end - buffer));
  const size_t e = text.find('e');
  int exponent = 0;
  const char* digits_of_exponent = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits_of_exponent, end, exponent);
  std::string digits, out;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (text[0] == '-') out += '-';
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out += '.' + digits.substr(1);
    const int magnitude = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    if (magnitude < 10) out += '0';
    return out + std::to_string(magnitude);
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + '.' +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

void append_repr(std::string_view text, Text& out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.get_allocator().heap().scan(text.size());
  out += quote;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == quote || c == '\\') {
      out += '\\';
      out += c;
      ++at;
    } else if (c >= ' ' && c < 0x7F) {
      out += c;
      ++at;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
      ++at;
    } else {
      const Utf8Char next = decode_utf8(text, at);
      if (next.valid && is_printable(next.code)) {
        out += text.substr(at, next.length);
      } else {
        append_escape(next.valid ? next.code : 0xDC00u + static_cast<uint8_t>(c), out);
      }
      at += next.length;
    }
  }
  out += quote;
}

void append_ascii(std::string_view text, Text& out) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text, at);
    if (next.code < 0x80) out += text[at];
    else append_escape(next.valid ? next.code : 0xDC00u + static_cast<uint8_t>(text[at]), out);
    at += next.length;
  }
}

void append_repr(const Value& value, Text& out) { Printer(out).repr(value); }

void append_str(const Value& value, Text& out) {
  if (value.is_string()) out.append_part(value.string().marked_text(), 0, value.text().size());
  else if (!value.is_undefined()) append_repr(value, out);
}

Value to_text(Heap& heap, const Value& value) {
  if (value.is_string()) return value;
  Text out(heap);
  append_str(value, out);
  return Value::of(std::move(out));
}

std::string_view text_of(Heap& heap, const Value& value, Value& holder) {
  holder = to_text(heap, value);
  return holder.text();
}

}  // namespace infer::jinja
