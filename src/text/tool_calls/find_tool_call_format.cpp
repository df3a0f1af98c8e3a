// Compares messages with one and with two calls to find the texts around a call, a series of calls and an argument.
#include <algorithm>
#include <initializer_list>
#include <optional>

#include "src/text/ordered_json.h"
#include "src/text/reasoning.h"
#include "src/text/tool_calls/call_families.h"
#include "src/text/tool_calls/call_probe.h"
#include "src/text/tool_calls/json_scanner.h"
#include "src/text/tool_calls/template_tokens.h"
#include "src/text/tool_calls/tool_call_format.h"

namespace infer {
namespace {

using nlohmann::ordered_json;
using Kind = ToolCallFormat::Kind;

// The position of a call in a message: [begin, end), without the surrounding texts.
struct CallRange {
  size_t begin = 0, end = 0;
};

size_t after(std::string_view text, std::string_view word, size_t from) {
  const size_t at = text.find(word, from);
  return at == std::string_view::npos ? at : at + word.size();
}

// The end of the JSON object that begins at `at`; npos if there is none.
size_t end_of_object(std::string_view text, size_t at) {
  JsonScanner scanner;
  for (size_t i = at; i < text.size(); ++i) {
    const auto status = scanner.add(text[i]);
    if (status == JsonScanner::Status::kBroken) return std::string_view::npos;
    if (status == JsonScanner::Status::kDone) return i + 1;
  }
  return std::string_view::npos;
}

bool are_arguments(const ordered_json& value) {
  if (value.is_string()) return are_arguments(ordered_json::parse(value.get<std::string>(), nullptr, false));
  return value.is_object() && value.contains(kProbeKeys[0]) && value[std::string(kProbeKeys[0])] == kProbeValues[0];
}

// The innermost object around `at`, if it is a call.
std::optional<ordered_json> object_around(std::string_view text, size_t at, CallRange& place) {
  const size_t begin = text.rfind('{', at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = end_of_object(text, begin);
  if (end == std::string_view::npos) return std::nullopt;
  // The placeholder of an id is a character that JSON does not allow.
  std::string object(text.substr(begin, end - begin));
  std::replace(object.begin(), object.end(), kIdPlace, '#');
  ordered_json value = ordered_json::parse(object, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  place = {begin, end};
  return value;
}

// Finds a call that is an object, and the names of its members.
std::optional<CallRange> find_object(std::string_view text, size_t from, std::string_view name, CallKeys& keys) {
  const size_t at = text.find(name, from);
  CallRange place;
  if (at == std::string_view::npos) return std::nullopt;
  const auto object = object_around(text, at, place);
  if (!object || place.begin < from) return std::nullopt;
  bool named = false, has_arguments = false;
  keys.id.clear();
  for (const auto& [key, value] : object->items()) {
    const bool is_id = value.is_string() && (key == "id" || key.ends_with("_id"));
    if (value == name) keys.name = key, named = true;
    else if (are_arguments(value)) keys.arguments = key, has_arguments = true;
    else if (is_id && keys.id.empty()) keys.id = key;
  }
  if (!named || !has_arguments) return std::nullopt;
  return place;
}

// The texts around the calls of a message.
struct Around {
  std::string before, between, after;  // `between` is "" if the template writes only one call
  bool several = false;
};

// Splits these texts into those of a series of calls and those of each call.
CallSpelling cut(const Around& around, const std::string& after_name) {
  CallSpelling cut;
  cut.after_name = after_name;
  cut.several = around.several;
  if (!around.several) {
    cut.call_begin = around.before;
    cut.call_end = around.after;
    return cut;
  }
  const size_t end = common_start(around.between, around.after);
  cut.call_end = around.between.substr(0, end);
  cut.series_end = around.after.substr(end);
  const std::string rest = around.between.substr(end);
  const size_t begin = common_end(around.before, rest);
  cut.call_begin = rest.substr(rest.size() - begin);
  cut.separator = rest.substr(0, rest.size() - begin);
  cut.series_begin = around.before.substr(0, around.before.size() - begin);
  return cut;
}

// Sets the patterns and ends of a format. `then`: what must follow the text before the arguments.
void set_patterns(const RenderedCalls& calls, const Around& around, const std::string& after_name,
                  const std::vector<std::string>& then, ToolCallFormat& format) {
  const CallSpelling parts = cut(around, after_name);
  format.spelling = parts;
  format.first = CallPattern(parts.series_begin + parts.call_begin + after_name, then);
  format.next = around.several ? CallPattern(parts.separator + parts.call_begin + after_name, then) : format.first;
  const std::string separator(trimmed(parts.separator));
  if (trimmed(around.before).empty() && !separator.empty() && calls.header.ends_with(separator)) {
    // The prompt already contains what begins a message, be it a call or content: >>>f and >>>all.
    format.first = format.next;
    format.primed = separator;
    format.ignored.push_back(separator + std::string(trimmed(calls.before_content)));
  }
  for (const std::string* text : {&parts.call_end, &parts.series_end}) {
    for (std::string& end : tags_and_words(*text)) format.ends.push_back(std::move(end));
  }
  format.known_names_only = !format.first.has_tag();
}

bool find_object_format(const RenderedCalls& calls, ToolCallFormat& format) {
  const auto place = find_object(calls.one, 0, kProbeNames[0], format.keys);
  if (!place) return false;
  Around around{calls.one.substr(0, place->begin), "", calls.one.substr(place->end), false};
  CallKeys ignored;
  const auto first = find_object(calls.two, 0, kProbeNames[0], ignored);
  const auto second = first ? find_object(calls.two, first->end, kProbeNames[1], ignored) : std::nullopt;
  if (second) {
    around.several = true;
    around.between = calls.two.substr(first->end, second->begin - first->end);
  }
  format.kind = Kind::kObject;
  set_patterns(calls, around, "", {"{"}, format);
  return true;
}

// Replaces the name by its placeholder.
std::string with_places(std::string text, std::string_view name) {
  const size_t at = text.find(name);
  if (at != std::string::npos) text.replace(at, name.size(), 1, kNamePlace);
  return text;
}

// `find_arguments`: finds the arguments after an offset.
template <typename FindArguments>
bool find_named_format(const RenderedCalls& calls, Kind kind, const std::vector<std::string>& then,
                       FindArguments find_arguments, ToolCallFormat& format) {
  const std::string one = with_places(calls.one, kProbeNames[0]);
  const std::string two = with_places(with_places(calls.two, kProbeNames[0]), kProbeNames[1]);
  const auto name_at = [](const std::string& text, size_t from) {
    const size_t at = text.find(kNamePlace, from);
    return at == std::string::npos ? text.find(kIdPlace, from) : at;
  };
  const size_t name = name_at(one, 0);
  if (name == std::string::npos) return false;
  const std::optional<CallRange> arguments = find_arguments(one, name + 1);
  if (!arguments) return false;
  Around around{one.substr(0, name), "", one.substr(arguments->end), false};
  const size_t first = name_at(two, 0);
  const auto first_arguments = first == std::string::npos ? std::nullopt : find_arguments(two, first + 1);
  const size_t second = first_arguments ? name_at(two, first_arguments->end) : std::string::npos;
  if (second != std::string::npos) {
    around.several = true;
    around.between = two.substr(first_arguments->end, second - first_arguments->end);
  }
  format.kind = kind;
  set_patterns(calls, around, one.substr(name, arguments->begin - name), then, format);
  return true;
}

bool find_json_format(const RenderedCalls& calls, ToolCallFormat& format) {
  const auto find = [](const std::string& text, size_t from) -> std::optional<CallRange> {
    const size_t key = text.find('"' + std::string(kProbeKeys[0]) + '"', from);
    const size_t begin = key == std::string::npos ? key : text.rfind('{', key);
    if (begin == std::string::npos || begin < from) return std::nullopt;
    const size_t end = end_of_object(text, begin);
    if (end == std::string::npos ||
        !are_arguments(ordered_json::parse(text.substr(begin, end - begin), nullptr, false)))
      return std::nullopt;
    return CallRange{begin, end};
  };
  return find_named_format(calls, Kind::kJson, {"{"}, find, format);
}

bool find_bare_format(const RenderedCalls& calls, ToolCallFormat& format) {
  const size_t key = after(calls.one, "{" + std::string(kProbeKeys[0]) + ":", 0);
  if (key == std::string::npos) return false;
  const size_t value = calls.one.find(kProbeValues[0], key);
  if (value == std::string::npos || value - key < 2 || value - key > 16) return false;
  format.quote = calls.one.substr(key, value - key);
  const auto find = [](const std::string& text, size_t from) -> std::optional<CallRange> {
    const size_t begin = text.find("{" + std::string(kProbeKeys[0]) + ":", from);
    const size_t last = begin == std::string::npos ? begin : after(text, kProbeValues[1], begin);
    if (last == std::string::npos || last == text.size() || text[last] != '}') return std::nullopt;
    return CallRange{begin, last + 1};
  };
  return find_named_format(calls, Kind::kBare, {"{"}, find, format);
}

bool find_python_format(const RenderedCalls& calls, ToolCallFormat& format) {
  const auto find = [](const std::string& text, size_t from) -> std::optional<CallRange> {
    const size_t begin = from + 1;
    if (text.compare(from, begin - from, "(") != 0 || !std::string_view(text).substr(begin).starts_with(kProbeKeys[0]))
      return std::nullopt;
    const size_t last = after(text, kProbeValues[1], begin);
    if (last == std::string::npos || last == text.size() || text[last] != ')') return std::nullopt;
    return CallRange{begin, last + 1};
  };
  return find_named_format(calls, Kind::kPython, {}, find, format);
}

// The texts before, between and after the keys and values of two arguments.
struct ArgumentTexts {
  std::string begin, string_value, between, value, end;
};

std::optional<ArgumentTexts> argument_texts(const std::string& text, size_t name) {
  const size_t key = text.find(kProbeKeys[0], name), key_end = after(text, kProbeKeys[0], name);
  if (key == std::string::npos) return std::nullopt;
  const size_t value = text.find(kProbeValues[0], key_end), value_end = after(text, kProbeValues[0], key_end);
  if (value == std::string::npos) return std::nullopt;
  const size_t more = text.find(kProbeKeys[1], value_end), more_end = after(text, kProbeKeys[1], value_end);
  if (more == std::string::npos) return std::nullopt;
  const size_t number = text.find(kProbeValues[1], more_end), number_end = after(text, kProbeValues[1], more_end);
  if (number == std::string::npos) return std::nullopt;
  return ArgumentTexts{text.substr(name, key - name), text.substr(key_end, value - key_end),
                       text.substr(value_end, more - value_end), text.substr(more_end, number - more_end),
                       text.substr(number_end)};
}

bool find_tagged_format(const RenderedCalls& calls, ToolCallFormat& format) {
  const size_t name = after(calls.one, kProbeNames[0], 0);
  const auto texts = name == std::string::npos ? std::nullopt : argument_texts(calls.one, name);
  if (!texts || texts->string_value.empty()) return false;
  const size_t begin = common_end(texts->begin, texts->between), end = common_start(texts->between, texts->end);
  const std::string argument_begin = texts->between.substr(texts->between.size() - begin);
  const std::string argument_end = texts->between.substr(0, end);
  if (!contains_tag(argument_begin) || !contains_tag(argument_end) || end == texts->end.size()) return false;
  ArgumentTags& tags = format.tags;
  tags.begin_word = std::string(trimmed(argument_begin));
  tags.end = std::string(trimmed(argument_end));
  tags.string_value = CallPattern(texts->string_value, {});
  tags.value = CallPattern(texts->value, {});
  tags.typed = trimmed(texts->string_value) != trimmed(texts->value);
  tags.line_break = texts->string_value.ends_with('\n') && argument_end.starts_with('\n');

  const size_t in_name = texts->begin.size() - begin;  // the rest of the tag that contains the name
  const std::string call_end(trimmed(std::string_view(texts->end).substr(end)));
  const std::vector<std::string> ends = tags_and_words(call_end);
  const auto find = [&](const std::string& text, size_t from) -> std::optional<CallRange> {
    const auto found = argument_texts(text, from);
    if (!found) return std::nullopt;
    return CallRange{from + in_name, text.size() - found->end.size() + end};
  };
  if (!find_named_format(calls, Kind::kTagged, {tags.begin_word, ends.front()}, find, format)) return false;
  format.spelling.argument_begin = tags.begin_word;
  format.spelling.string_value = texts->string_value;
  format.spelling.value = texts->value;
  format.spelling.argument_end = argument_end.substr(0, argument_end.find_last_not_of(" \t\r\n") + 1);
  return true;
}

bool is_harmony(std::string_view call) {
  const auto has = [&](std::string_view text) { return call.find(text) != std::string_view::npos; };
  return has("<|channel|>") && has("<|message|>") && has("to=functions.");
}

bool is_reasoning_tag(std::string_view text) {
  return std::any_of(reasoning_tags().begin(), reasoning_tags().end(),
                     [&](const ReasoningTags& tags) { return text == tags.open || text == tags.close; });
}

std::optional<ToolCallFormat> format_of(const RenderedCalls& calls) {
  ToolCallFormat format;
  if (is_harmony(calls.one)) format.kind = Kind::kHarmony;
  else if (!find_object_format(calls, format) && !find_json_format(calls, format) && !find_bare_format(calls, format) &&
           !find_python_format(calls, format) && !find_tagged_format(calls, format))
    return std::nullopt;
  if (format.kind == Kind::kTagged && format.ends.empty()) return std::nullopt;
  for (const std::string* text : {&calls.before_content, &calls.after_content}) {
    for (std::string& tag : tags_and_words(*text)) {
      const bool ignored = contains_tag(tag) && !is_reasoning_tag(tag) && format.kind != Kind::kHarmony;
      if (ignored) format.ignored.push_back(std::move(tag));
    }
  }
  format.stops = format.ends;
  for (const std::string& word : tags_and_words(calls.one)) {
    if (!contains_tag(word)) continue;
    format.stops.push_back(word);
    break;
  }
  format.family = call_family(format.kind, calls.one);
  return format;
}

// Finds reasoning tags that only this template uses. After its reasoning, a message may repeat the prompt's header.
void find_reasoning(const ChatTemplate& chat_template, const ProbeStyle& style, const RenderedCalls& calls,
                    ToolCallFormat& format) {
  const auto reasoning = render_reasoning(chat_template, style, calls.header);
  if (!reasoning || format.kind == Kind::kHarmony) return;
  const std::vector<std::string> open = tags_and_words(reasoning->before), close = tags_and_words(reasoning->between);
  if (open.size() != 1 || close.empty() || !contains_tag(open[0]) || !contains_tag(close[0])) return;
  if (is_reasoning_tag(open[0]) || is_reasoning_tag(close[0])) return;
  format.reasoning_open = open[0];
  format.reasoning_close = close[0];
  std::string_view again =
      trimmed_start(std::string_view(reasoning->between).substr(reasoning->between.find(close[0]) + close[0].size()));
  again = trimmed(again.substr(0, again.rfind(trimmed(calls.before_content))));
  if (contains_tag(again)) format.ignored.emplace_back(again);
}

}  // namespace

ToolCallFormat find_tool_call_format(const ChatTemplate& chat_template) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    const ProbeStyle style{.ids_with_names = (bits & 4) != 0,
                           .text_arguments = (bits & 2) != 0,
                           .null_content = (bits & 1) != 0,
                           .without_tools = (bits & 8) != 0};
    const auto calls = render_calls(chat_template, style);
    auto format = calls ? format_of(*calls) : std::nullopt;
    if (!format) continue;
    format->tags.cdata = chat_template.source().find("<![CDATA[") != std::string::npos;
    find_reasoning(chat_template, style, *calls, *format);
    format->short_ids = chat_template.traits().needs_short_ids;
    return *std::move(format);
  }
  return {};
}

std::vector<std::string> texts_of(const ToolCallFormat& format) {
  const CallSpelling& spelling = format.spelling;
  std::vector<std::string> texts = {spelling.series_begin,   spelling.call_begin,   spelling.after_name,
                                    spelling.call_end,       spelling.separator,    spelling.series_end,
                                    spelling.argument_begin, spelling.string_value, spelling.value,
                                    spelling.argument_end,   format.quote,          format.primed,
                                    format.reasoning_open,   format.reasoning_close};
  texts.insert(texts.end(), format.ignored.begin(), format.ignored.end());
  return texts;
}

}  // namespace infer
