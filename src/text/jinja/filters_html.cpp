// Filters for HTML and URLs.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

Value escaped(Runtime& runtime, const Value& value, bool even_if_safe) {
  if (is_markup(value) && !even_if_safe) return value;
  Text out(runtime.heap());
  append_escaped(to_text(runtime.heap(), value), out);
  return make_markup(std::move(out));
}

Value escape(Runtime& runtime, const Value& self, Arguments&) { return escaped(runtime, self, false); }
Value force_escape(Runtime& runtime, const Value& self, Arguments&) { return escaped(runtime, self, true); }

Value safe(Runtime& runtime, const Value& self, Arguments&) {
  Text out(runtime.heap());
  append_str(self, out);
  return make_markup(std::move(out));
}

Value strip_tags(Runtime& runtime, const Value& self, Arguments&) {
  Text out(runtime.heap());
  const Value text = to_text(runtime.heap(), self);
  append_without_tags(text.text(), out);
  if (has_caller_text(text)) out.mark_from(0);
  return Value::of(std::move(out));
}

// Percent-encodes everything except letters, digits, _ . - ~ and, in a path, /.
void append_quoted(std::string_view text, bool in_query, Text& out) {
  out.get_allocator().heap().scan(text.size() / 2);
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '.' || c == '-' || c == '~' || (c == '/' && !in_query);
    if (plain) {
      out += c;
    } else if (in_query && c == ' ') {
      out += '+';
    } else {
      constexpr char kHex[] = "0123456789ABCDEF";
      out += '%';
      out += kHex[static_cast<uint8_t>(c) >> 4];
      out += kHex[static_cast<uint8_t>(c) & 15];
    }
  }
}

Value url_encode(Runtime& runtime, const Value& self, Arguments&) {
  Heap& heap = runtime.heap();
  Text out(heap);
  Value holder;
  if (self.is_string() || !is_iterable(self)) {
    append_quoted(text_of(heap, self, holder), false, out);
    return Value::of(std::move(out));
  }
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += '&';
    append_quoted(text_of(heap, key, holder), true, out);
    out += '=';
    append_quoted(text_of(heap, value, holder), true, out);
  };
  if (self.is(Kind::kDict)) {
    for (const auto& [key, value] : self.dict().entries()) add(key, value);
  } else {
    Iterator pairs(heap, self);
    while (const auto pair = pairs.next()) {
      const Values items = items_of(heap, *pair);
      if (items.size() != 2)
        fail(concat("urlencode: expected pairs of key and value, found ", items.size(), " values"));
      add(items[0], items[1]);
    }
  }
  return Value::of(std::move(out));
}

Value xml_attributes(Runtime& runtime, const Value& self, Arguments& arguments) {
  require_defined(self);
  if (!self.is(Kind::kDict)) fail(concat("'", type_name(self), "' object has no attribute 'items'"));
  const bool space = arguments.positional[0].is_missing() || truth(arguments.positional[0]);
  Text out(runtime.heap());
  for (const auto& [key, value] : self.dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    const std::string_view name = text_argument(key, "attribute name");
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      fail(concat("Invalid character in attribute name: '", name.substr(0, 100), "'"));
    }
    runtime.heap().step();
    if (space || !out.empty()) out += ' ';
    append_str(escaped(runtime, key, false), out);
    out += "=\"";
    append_str(escaped(runtime, value, false), out);
    out += '"';
  }
  return runtime.autoescape ? make_markup(std::move(out)) : Value::of(std::move(out));
}

constexpr Builtin kHtmlFilters[] = {
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", force_escape},
    {"safe", "", safe},
    {"striptags", "", strip_tags},
    {"urlencode", "", url_encode},
    {"xmlattr", "[autospace]", xml_attributes},
};

}  // namespace

std::span<const Builtin> html_filters() { return kHtmlFilters; }

}  // namespace infer::jinja
