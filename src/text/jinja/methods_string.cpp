// Methods of str: case, characters, layout. For searching and splitting see methods_search.cpp.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/format.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/string_tools.h"
#include "src/text/jinja/unicode.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

template <Case How>
Value in_case(Runtime& runtime, const Value& self, Arguments&) {
  return make_text_like(to_case(runtime.heap(), self.text(), How), self);
}

template <Text (*Convert)(Heap&, std::string_view)>
Value converted_string(Runtime& runtime, const Value& self, Arguments&) {
  return make_text_like(Convert(runtime.heap(), self.text()), self);
}

// Whether the string is non-empty and all its characters satisfy `Is`.
template <bool (*Is)(uint32_t)>
Value all_are(Runtime& runtime, const Value& self, Arguments&) {
  bool all = !self.text().empty();
  runtime.heap().scan(self.text().size());
  each_character(self.text(), [&](uint32_t code, std::string_view) { all = all && Is(code); });
  return Value::of(all);
}

Value is_ascii(Runtime&, const Value& self, Arguments&) { return Value::of(self.string().ascii()); }

Value is_all_printable(Runtime& runtime, const Value& self, Arguments& arguments) {
  return self.text().empty() ? Value::of(true) : all_are<is_printable>(runtime, self, arguments);
}

Value is_identifier(Runtime& runtime, const Value& self, Arguments&) {
  runtime.heap().scan(self.text().size());
  bool first = true, all = !self.text().empty();
  each_character(self.text(), [&](uint32_t code, std::string_view) {
    all = all && (std::exchange(first, false) ? is_identifier_start(code) : is_identifier_part(code));
  });
  return Value::of(all);
}

template <bool Upper>
Value is_in_case(Runtime& runtime, const Value& self, Arguments&) {
  bool some = false, all = true;
  runtime.heap().scan(self.text().size());
  each_character(self.text(), [&](uint32_t code, std::string_view) {
    some = some || (Upper ? is_upper(code) : is_lower(code));
    all = all && !(Upper ? is_lower(code) : is_upper(code)) && !is_title(code);
  });
  return Value::of(some && all);
}

// Uppercase at the start of each word and nowhere else.
Value is_all_title(Runtime& runtime, const Value& self, Arguments&) {
  bool some = false, all = true, in_word = false;
  runtime.heap().scan(self.text().size());
  each_character(self.text(), [&](uint32_t code, std::string_view) {
    const bool upper = is_upper(code) || is_title(code), lower = is_lower(code);
    if ((upper && in_word) || (lower && !in_word)) all = false;
    some = some || upper || lower;
    in_word = upper || lower;
  });
  return Value::of(some && all);
}

template <Side Filled>
Value justified(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value& fill = arguments.positional[1];
  const int64_t width = int_argument(arguments.positional[0], "width");
  if (!fill.is_missing() && (!fill.is_string() || fill.string().length() != 1)) {
    fail("The fill character must be exactly one character long");
  }
  return justify(runtime.heap(), self, width, fill.is_missing() ? " " : fill.text(), Filled);
}

Value zero_fill(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t width = int_argument(arguments.positional[0], "width");
  const std::string_view text = self.text();
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const Value digits = make_piece(self, text.substr(sign ? 1 : 0));
  const Value filled = justify(runtime.heap(), digits, width - (sign ? 1 : 0), "0", Side::kLeft);
  Text out(text.substr(0, sign ? 1 : 0), runtime.heap());
  out += filled.text();
  return make_text_like(std::move(out), self);
}

template <Side Where>
Value stripped(Runtime& runtime, const Value& self, Arguments& arguments) {
  return strip_value(runtime.heap(), self, arguments.positional[0], Where);
}

Value remove_prefix(Runtime&, const Value& self, Arguments& arguments) {
  const std::string_view part = text_argument(arguments.positional[0], "removeprefix");
  if (!self.text().starts_with(part)) return self;
  return make_piece(self, self.text().substr(part.size()));
}

Value remove_suffix(Runtime&, const Value& self, Arguments& arguments) {
  const std::string_view part = text_argument(arguments.positional[0], "removesuffix");
  if (!self.text().ends_with(part)) return self;
  return make_piece(self, self.text().substr(0, self.text().size() - part.size()));
}

Value replace_parts(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  text_argument(a[0], "replace");
  text_argument(a[1], "replace");
  return replace_value(runtime.heap(), self, a[0], a[1], int_or(a[2], -1, "count"), false);
}

Value join_strings(Runtime& runtime, const Value& self, Arguments& arguments) {
  Iterator items(runtime.heap(), arguments.positional[0]);
  Values parts(runtime.heap());
  while (auto item = items.next()) {
    if (!item->is_string()) {
      fail(concat("sequence item ", parts.size(), ": expected str instance, ", type_name(*item), " found"));
    }
    parts.push_back(std::move(*item));
  }
  Text out(runtime.heap());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) append_str(self, out);
    append_str(parts[i], out);
  }
  return self.string().markup() ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value expand_tabs(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t size = int_or(arguments.positional[0], 8, "tabsize");
  if (size > 10000) fail_budget(concat("the tab size ", size, " is too large"));
  Text out(runtime.heap());
  int64_t column = 0;
  runtime.heap().scan(self.text().size());
  each_character(self.text(), [&](uint32_t code, std::string_view bytes) {
    if (code != '\t') {
      out += bytes;
      column = code == '\n' || code == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t blanks = size - column % size;
      out.append(static_cast<size_t>(blanks), ' ');
      column += blanks;
    }
  });
  return make_text_like(std::move(out), self);
}

Value format_fields(Runtime& runtime, const Value& self, Arguments& arguments) {
  return format_braces(runtime, self, arguments);
}

Value format_map(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Arguments none(runtime.heap());
  return format_braces(runtime, self, none, &arguments.positional[0]);
}

// The table maps code points (or characters, as from maketrans) to text, a code point or none.
Value translate(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value& table = arguments.positional[0];
  if (!table.is(Kind::kDict)) fail(concat("translate: expected a dict, found ", type_name(table)));
  Text out(runtime.heap());
  each_character(self.text(), [&](uint32_t code, std::string_view bytes) {
    runtime.heap().step();
    const Value* found = table.dict().find(Value::of(static_cast<int64_t>(code)));
    if (!found) {
      out += bytes;
    } else if (found->is_string()) {
      append_str(*found, out);
    } else if (found->is_integer()) {
      std::string character;
      append_utf8(static_cast<uint32_t>(found->as_int()), character);
      out += std::string_view(character);
    } else if (!found->is_none()) {
      fail("character mapping must return integer, None or str");
    }
  });
  return make_text_like(std::move(out), self);
}

// str.maketrans: takes one dict, or two strings of the same length and optionally characters to delete.
Value make_translation(Runtime& runtime, const Value&, Arguments& arguments) {
  const Values& a = arguments.positional;
  const Value result(Kind::kDict, runtime.heap().make<DictObject>());
  auto& table = result.get<DictObject>();
  const auto code_of = [](const Value& key) {
    if (!key.is_string()) return key;
    if (key.string().length() != 1) fail("string keys in translate table must be of length 1");
    size_t length = 0;
    return Value::of(static_cast<int64_t>(code_at(key.text(), 0, length)));
  };
  if (a[1].is_missing()) {
    if (!a[0].is(Kind::kDict)) fail("if you give only one argument to maketrans it must be a dict");
    for (const auto& [key, value] : a[0].dict().entries()) table.set(code_of(key), value);
    return result;
  }
  text_argument(a[0], "maketrans");
  text_argument(a[1], "maketrans");
  if (a[0].string().length() != a[1].string().length()) {
    fail("the first two maketrans arguments must have equal length");
  }
  Iterator from(runtime.heap(), a[0]), to(runtime.heap(), a[1]);
  while (const auto key = from.next()) table.set(code_of(*key), code_of(*to.next()));
  if (!a[2].is_missing()) {
    text_argument(a[2], "maketrans");
    Iterator dropped(runtime.heap(), a[2]);
    while (const auto key = dropped.next()) table.set(code_of(*key), Value::none());
  }
  return result;
}

constexpr Builtin kStringMethods[] = {
    {"upper", "", in_case<Case::kUpper>},
    {"lower", "", in_case<Case::kLower>},
    {"casefold", "", in_case<Case::kFold>},
    {"capitalize", "", converted_string<to_capitalized>},
    {"title", "", converted_string<to_title>},
    {"swapcase", "", converted_string<swap_case>},
    {"isalnum", "", all_are<is_alphanumeric>},
    {"isalpha", "", all_are<is_alphabetic>},
    {"isascii", "", is_ascii},
    {"isdecimal", "", all_are<is_decimal>},
    {"isdigit", "", all_are<is_digit>},
    {"isidentifier", "", is_identifier},
    {"islower", "", is_in_case<false>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isprintable", "", is_all_printable},
    {"isspace", "", all_are<is_space>},
    {"istitle", "", is_all_title},
    {"isupper", "", is_in_case<true>},
    {"center", ". [.]", justified<Side::kBoth>},
    {"ljust", ". [.]", justified<Side::kRight>},
    {"rjust", ". [.]", justified<Side::kLeft>},
    {"zfill", ".", zero_fill},
    {"strip", "[.]", stripped<Side::kBoth>},
    {"lstrip", "[.]", stripped<Side::kLeft>},
    {"rstrip", "[.]", stripped<Side::kRight>},
    {"removeprefix", ".", remove_prefix},
    {"removesuffix", ".", remove_suffix},
    {"replace", ". . [.]", replace_parts},
    {"join", ".", join_strings},
    {"expandtabs", "[tabsize]", expand_tabs},
    {"format", "*", format_fields},
    {"format_map", ".", format_map},
    {"translate", ".", translate},
    {"maketrans", ". [.] [.]", make_translation},
};

}  // namespace

std::span<const Builtin> string_methods() { return kStringMethods; }

}  // namespace infer::jinja
