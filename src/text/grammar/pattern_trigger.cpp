#include "src/text/grammar/pattern_trigger.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "src/text/grammar/automaton.h"
#include "src/text/grammar/regex.h"

namespace infer::grammar {
namespace {

constexpr size_t kMaxStates = 4000;

[[noreturn]] void refuse(const std::string& place, std::string_view expected, std::string_view found) {
  throw Error(ErrorCode::kInvalidArgument, concat(place, ": expected ", expected, ", found ", found));
}

// Any text, in the ways it is usually written.
constexpr std::string_view kAnyText[] = {"[\\s\\S]*?", "[\\s\\S]*", "(?:[\\s\\S]*?)", "(?:[\\s\\S]*)", ".*?", ".*"};

bool take_any(std::string_view& pattern, bool at_start) {
  for (const std::string_view any : kAnyText) {
    if (at_start ? !pattern.starts_with(any) : !pattern.ends_with(any)) continue;
    if (at_start) pattern.remove_prefix(any.size());
    else pattern.remove_suffix(any.size());
    return true;
  }
  return false;
}

struct Group {
  size_t begin = 0, end = 0;  // of its parentheses; begin == end: there is none
};

// The first capturing group.
Group first_group(std::string_view pattern, const std::string& place) {
  std::vector<size_t> open;
  Group group;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      const bool captures = !pattern.substr(i).starts_with("(?") || pattern.substr(i).starts_with("(?<");
      if (captures && group.end == 0 && group.begin == group.end) {
        if (!open.empty()) refuse(place, "a capturing group outside of other groups", pattern);
        group.begin = i + 1;
      }
      open.push_back(i);
    } else if (c == ')' && !open.empty()) {
      if (group.begin == open.back() + 1 && group.end == 0) group.end = i;
      open.pop_back();
    }
  }
  return group.end == 0 ? Group() : Group{group.begin - 1, group.end + 1};
}

// A deterministic automaton as a table. State 0 is the beginning of the text, and 1 that nothing can match any more.
struct Table {
  std::vector<std::array<uint32_t, 256>> next;
  std::vector<bool> matches;
};

Table table_of(const Rules& rules, const std::string& place) {
  Limits limits;
  limits.states = kMaxStates;
  const Automaton automaton = Automaton::compile(rules, limits);
  Table table;
  const auto n_states = static_cast<uint32_t>(automaton.n_states()) - 1;  // without the one that ends the list
  table.next.resize(n_states + 2);
  table.matches.assign(n_states + 2, false);
  for (auto& next : table.next) next.fill(1);
  table.matches[0] = automaton.accepts_empty();
  const auto number = [](uint32_t state) { return state + 2; };
  for (uint32_t state = 0; state < n_states; ++state) {
    if (!automaton.calls(state).empty() || automaton.n_loops(state) > 0)
      refuse(place, "a pattern without large counts", "one that cannot be searched for");
    auto& next = table.next[number(state)];
    for (const ByteEdge& edge : automaton.bytes(state)) {
      for (int byte = edge.first; byte <= edge.last; ++byte) {
        if (next[static_cast<size_t>(byte)] != 1) refuse(place, "a simpler pattern", "one with too many states");
        next[static_cast<size_t>(byte)] = number(edge.to);
      }
    }
    table.matches[number(state)] = automaton.is_final(state);
  }
  if (automaton.start() != kNoId) table.next[0] = table.next[number(automaton.start())];
  return table;
}

// What comes before a trigger, followed by the trigger itself if `with_trigger`.
Table table_of(std::span<const PatternTrigger> patterns, std::span<const std::string> words, bool with_trigger,
               const std::string& place) {
  Rules rules;
  std::vector<ExprId> choices;
  const auto add = [&](bool anywhere, ExprId before, ExprId at) {
    std::vector<ExprId> parts;
    if (anywhere) parts.push_back(rules.without({}));
    parts.push_back(before);
    if (with_trigger) parts.push_back(at);
    choices.push_back(rules.sequence(std::move(parts)));
  };
  for (const PatternTrigger& pattern : patterns) {
    add(pattern.anywhere, parse_text_regex(rules, pattern.before, place), parse_text_regex(rules, pattern.at, place));
  }
  for (const std::string& word : words) add(true, rules.nothing(), rules.bytes(word));
  const RuleId root = rules.declare("the triggers");
  rules.define(root, rules.choice(std::move(choices)));
  rules.set_root(root);
  return table_of(rules, place);
}

// The texts that `found` matches no beginning of; they may end where `before` matches them.
ScanTable without_match(const Table& found, const Table& before, const std::string& place) {
  ScanTable scan;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids;
  std::vector<std::pair<uint32_t, uint32_t>> states;
  const auto id_of = [&](uint32_t f, uint32_t b) {
    if (found.matches[f]) return ScanTable::kStop;
    const auto [at, is_new] = ids.try_emplace({f, b}, static_cast<uint32_t>(states.size()));
    if (is_new) states.emplace_back(f, b);
    return at->second;
  };
  id_of(0, 0);
  for (size_t i = 0; i < states.size(); ++i) {
    if (states.size() > kMaxStates)
      refuse(place, concat("patterns of at most ", grouped(kMaxStates), " states"), "more");
    const auto [f, b] = states[i];
    auto& next = scan.next.emplace_back();
    for (size_t byte = 0; byte < 256; ++byte) next[byte] = id_of(found.next[f][byte], before.next[b][byte]);
    scan.may_end.push_back(before.matches[b]);
  }
  return scan;
}

}  // namespace

PatternTrigger read_pattern_trigger(std::string_view pattern, bool whole, const std::string& place) {
  const std::string_view written = pattern;
  if (pattern.starts_with('^')) {
    pattern.remove_prefix(1);
    whole = true;
  }
  if (pattern.ends_with('$') && !pattern.ends_with("\\$")) pattern.remove_suffix(1);
  PatternTrigger trigger;
  trigger.anywhere = take_any(pattern, true) || !whole;
  const Group group = first_group(pattern, place);
  if (group.begin == group.end) {
    take_any(pattern, false);
    trigger.at = pattern;
    return trigger;
  }
  std::string_view after = pattern.substr(group.end);
  take_any(after, true);
  if (!after.empty()) refuse(place, "a pattern that ends with its capturing group, or with any text", written);
  trigger.before = pattern.substr(0, group.begin);
  trigger.at = pattern.substr(group.begin, group.end - group.begin);
  return trigger;
}

TriggerTexts trigger_texts(Rules& rules, std::span<const PatternTrigger> patterns, std::span<const std::string> words,
                           const std::string& place) {
  const Table found = table_of(patterns, words, true, place), before = table_of(patterns, words, false, place);
  if (found.matches[0]) refuse(place, "a pattern that matches some text", "one that matches the empty text");
  TriggerTexts texts;
  const auto table = rules.add_scan(without_match(found, before, place));
  texts.free = rules.scan(table, true);
  texts.before = rules.scan(table, false);
  return texts;
}

}  // namespace infer::grammar
