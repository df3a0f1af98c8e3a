// Filters for text.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/format.h"
#include "src/text/jinja/numbers.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/string_tools.h"
#include "src/text/jinja/unicode.h"
#include "src/text/jinja/word_wrap.h"

namespace infer::jinja {
namespace {

template <Text (*Convert)(Heap&, std::string_view)>
Value converted(Runtime& runtime, const Value& self, Arguments&) {
  const Value text = to_text(runtime.heap(), self);
  return make_text_like(Convert(runtime.heap(), text.text()), text);
}

Text upper(Heap& heap, std::string_view text) { return to_case(heap, text, Case::kUpper); }
Text lower(Heap& heap, std::string_view text) { return to_case(heap, text, Case::kLower); }

// Words begin after white space and after - ( { [ <, not after every non-letter.
Text title(Heap& heap, std::string_view text) {
  Text out(heap);
  heap.scan(text.size());
  size_t word = 0;
  const auto flush = [&](size_t end) {
    if (word == end) return;
    heap.step(2);
    size_t length = 0;
    code_at(text, word, length);
    out += to_case(heap, text.substr(word, length), Case::kUpper);
    out += to_case(heap, text.substr(word + length, end - word - length), Case::kLower);
  };
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    const uint32_t code = code_at(text, at, length);
    const bool separates = is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' || code == '<';
    if (separates) {
      flush(at);
      out += text.substr(at, length);
      word = at + length;
    }
  }
  flush(text.size());
  return out;
}

Value center(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value text = to_text(runtime.heap(), self);
  return justify(runtime.heap(), text, int_or(arguments.positional[0], 80, "width"), " ", Side::kBoth);
}

Value format(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  Value values;
  if (arguments.named.empty()) {
    values = make_tuple(std::move(arguments.positional));
  } else {
    values = Value(Kind::kDict, runtime.heap().make<DictObject>());
    for (const auto& [name, value] : arguments.named) values.get<DictObject>().set(name, value);
  }
  return format_percent(runtime, to_text(runtime.heap(), self), values);
}

Value trim(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value text = to_text(runtime.heap(), self);
  return strip_value(runtime.heap(), text, arguments.positional[0], Side::kBoth);
}

Value indent(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  require_defined(self);
  if (!self.is_string()) fail(concat("indent: expected a string, found ", type_name(self)));
  const bool first = !a[1].is_missing() && truth(a[1]), blank = !a[2].is_missing() && truth(a[2]);
  Text indentation(heap);
  if (a[0].is_string()) append_str(a[0], indentation);
  else indentation.append(static_cast<size_t>(indent_width(a[0].is_missing() ? 4 : int_argument(a[0], "width"))), ' ');
  Text text(heap), out(heap);
  append_str(self, text);
  heap.scan(text.size());
  text += '\n';  // so that a trailing line break also ends a line
  if (first) out.append_part(indentation, 0, indentation.size());
  size_t at = 0;
  for (bool begun = false; const auto line = next_line(text, at); begun = true) {
    if (begun) {
      out += '\n';
      if (blank || !line->text.empty()) out.append_part(indentation, 0, indentation.size());
    }
    if (!line->text.empty()) {
      out.append_part(text, static_cast<size_t>(line->text.data() - text.data()), line->text.size());
    }
  }
  return self.string().markup() ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value truncate(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  const int64_t length = int_or(a[0], 255, "length"), leeway = int_or(a[3], 5, "leeway");
  const bool killwords = !a[1].is_missing() && truth(a[1]);
  const std::string_view end = a[2].is_missing() ? "..." : text_argument(a[2], "end");
  const int64_t end_length = code_points(end);
  if (length < end_length) fail(concat("expected length >= ", end_length, ", got ", length));
  if (leeway < 0) fail(concat("expected leeway >= 0, got ", leeway));
  const int64_t n = length_of(self);
  if (n <= add_checked(length, leeway)) return self;
  text_argument(self, "truncate");
  std::string_view kept = self.text().substr(0, byte_offset(self.string(), length - end_length));
  if (!killwords) kept = kept.substr(0, kept.rfind(' '));
  Text out(heap);
  out.append_part(self.string().marked_text(), 0, kept.size());
  if (a[2].is_missing()) out += end;
  else append_str(a[2], out);
  return self.string().markup() ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value replace(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  return replace_value(heap, to_text(heap, self), to_text(heap, a[0]), to_text(heap, a[1]), int_or(a[2], -1, "count"),
                       runtime.autoescape);
}

Value word_count(Runtime& runtime, const Value& self, Arguments&) {
  Value holder;
  int64_t words = 0;
  bool in_word = false;
  const std::string_view text = text_of(runtime.heap(), self, holder);
  runtime.heap().scan(text.size());
  each_character(text, [&](uint32_t code, std::string_view) {
    const bool part = code == '_' || is_alphanumeric(code);
    if (part && !in_word) ++words;
    in_word = part;
  });
  return Value::of(words);
}

Value wrap(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  WrapOptions options;
  options.width = int_or(a[0], 79, "width");
  options.break_long_words = a[1].is_missing() || truth(a[1]);
  options.break_on_hyphens = a[3].is_missing() || truth(a[3]);
  const std::string_view line_end = a[2].is_missing() || a[2].is_none() ? "\n" : text_argument(a[2], "wrapstring");
  Text out = word_wrap(runtime.heap(), text_argument(self, "wordwrap"), line_end, options);
  if (has_caller_text(self) || has_caller_text(a[2])) out.mark_from(0);
  return Value::of(std::move(out));
}

constexpr Builtin kTextFilters[] = {
    {"upper", "", converted<upper>},
    {"lower", "", converted<lower>},
    {"capitalize", "", converted<to_capitalized>},
    {"title", "", converted<title>},
    {"center", "[width]", center},
    {"format", "*", format},
    {"trim", "[chars]", trim},
    {"indent", "[width] [first] [blank]", indent},
    {"truncate", "[length] [killwords] [end] [leeway]", truncate},
    {"replace", "old new [count]", replace},
    {"wordcount", "", word_count},
    {"wordwrap", "[width] [break_long_words] [wrapstring] [break_on_hyphens]", wrap},
};

}  // namespace

std::span<const Builtin> text_filters() { return kTextFilters; }

}  // namespace infer::jinja
