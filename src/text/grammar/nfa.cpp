#include "src/text/grammar/nfa.h"

#include <algorithm>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/grammar/json_text.h"
#include "src/text/grammar/word_search.h"

namespace infer::grammar {
namespace {

// Repetitions are written out up to this many copies (and copies times expressions); others are counted.
constexpr uint32_t kMaxCopies = 16;
constexpr size_t kMaxCopiedSize = 64;
// How deep inlined expressions and rules may nest.
constexpr size_t kMaxInlinedDepth = 1000;

}  // namespace

Nfa::Nfa(const Rules& rules, const Limits& limits) : rules_(rules), limits_(limits) {
  count_calls();
  fragment_of_rule_.assign(rules.n_rules(), kNoId);
  inlined_.assign(rules.n_rules(), false);
  root_ = fragment_of(rules.root());
  build_fragments();
  // Builds rules that the root does not reach too, to check them for left recursion.
  for (RuleId rule = 0; rule < rules.n_rules(); ++rule) {
    if (calls_[rule] == 0) fragment_of(rule);
  }
  build_fragments();
  for (RuleId rule = 0; rule < rules.n_rules(); ++rule) {
    if (!inlined_[rule]) fragment_of(rule);
    build_fragments();
  }
}

void Nfa::build_fragments() {
  for (; n_built_ < unbuilt_.size(); ++n_built_) {
    building_ = static_cast<uint32_t>(n_built_);
    const uint32_t start = add_state();
    fragments_[n_built_].start = start;
    fragments_[n_built_].end = build(unbuilt_[n_built_], start);
  }
}

void Nfa::count_calls() {
  calls_.assign(rules_.n_rules(), 0);
  for (ExprId id = 0; id < rules_.n_exprs(); ++id) {
    const Expr& e = rules_.expr(id);
    if (e.kind == Expr::Kind::kRule) ++calls_[e.a];
  }
}

uint32_t Nfa::add_state() {
  first_edge_.push_back(kNoId);
  return static_cast<uint32_t>(first_edge_.size() - 1);
}

void Nfa::add_edge(uint32_t from, NfaEdge edge) {
  if (edges_.size() >= limits_.nfa_edges) {
    throw Error(ErrorCode::kInvalidArgument,
                concat("[grammar] rule ", fragments_[building_].name, ": expected at most ", grouped(limits_.nfa_edges),
                       " transitions in the whole grammar, found more"));
  }
  edge.next = first_edge_[from];
  first_edge_[from] = static_cast<uint32_t>(edges_.size());
  edges_.push_back(edge);
}

uint32_t Nfa::fragment_of(RuleId rule) {
  uint32_t& fragment = fragment_of_rule_[rule];
  if (fragment == kNoId) {
    fragment = static_cast<uint32_t>(fragments_.size());
    fragments_.push_back({rules_.name(rule)});
    unbuilt_.push_back(rules_.definition(rule));
  }
  return fragment;
}

uint32_t Nfa::build(ExprId id, uint32_t from) {
  struct Depth {
    explicit Depth(size_t& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    size_t& depth;
  } depth(depth_);
  const Expr& e = rules_.expr(id);
  switch (e.kind) {
    case Expr::Kind::kBytes:
      return build_bytes(e.bytes, from);
    case Expr::Kind::kCodePoint:
      return build_code_point(rules_.set(e), from);
    case Expr::Kind::kSequence:
      for (const ExprId child : e.children) from = build(child, from);
      return from;
    case Expr::Kind::kChoice:
      return build_choice(e, from);
    case Expr::Kind::kRepeat:
      return build_repeat(e, from);
    case Expr::Kind::kRule:
      return build_call(e.a, from);
    case Expr::Kind::kToken: {
      const uint32_t to = add_state();
      tokens_.push_back(rules_.literal(e));
      const auto argument = static_cast<uint32_t>(tokens_.size() - 1);
      add_edge(from, {.kind = NfaEdge::Kind::kToken, .argument = argument, .to = to});
      return to;
    }
    case Expr::Kind::kPartial:
      return build_partial(e, from);
    case Expr::Kind::kListed:
      return build_listed(e, from);
    case Expr::Kind::kOtherKey:
      return build_other_key(rules_.words(e), from);
    case Expr::Kind::kUpTo:
    case Expr::Kind::kWithout:
      return build_free_text(e, from);
    case Expr::Kind::kScan:
      return build_scan(e, from);
  }
  return from;
}

uint32_t Nfa::build_bytes(std::string_view bytes, uint32_t from) {
  for (const char c : bytes) {
    const uint32_t to = add_state();
    const auto byte = static_cast<uint8_t>(c);
    add_edge(from, {.kind = NfaEdge::Kind::kByte, .first = byte, .last = byte, .to = to});
    from = to;
  }
  return from;
}

uint32_t Nfa::build_code_point(const CodePoints& set, uint32_t from) {
  const uint32_t end = add_state();
  for_each_utf8_sequence(set, [&](const ByteSequence& sequence) {
    uint32_t at = from;
    for (int i = 0; i < sequence.length; ++i) {
      const uint32_t to = i + 1 == sequence.length ? end : add_state();
      const ByteSequence::Range range = sequence.bytes[static_cast<size_t>(i)];
      add_edge(at, {.kind = NfaEdge::Kind::kByte, .first = range.first, .last = range.last, .to = to});
      at = to;
    }
  });
  return end;
}

uint32_t Nfa::build_choice(const Expr& e, uint32_t from) {
  const uint32_t end = add_state();
  std::vector<std::string_view> words;
  for (const ExprId child : e.children) {
    const Expr& c = rules_.expr(child);
    if (c.kind == Expr::Kind::kBytes) words.push_back(c.bytes);
    else link(build(child, from), end);
  }
  if (!words.empty()) link(build_words(words, from), end);
  return end;
}

// Builds a prefix tree, because lists of words can be long.
uint32_t Nfa::build_words(const std::vector<std::string_view>& words, uint32_t from) {
  const uint32_t end = add_state();
  std::vector<std::string_view> sorted = words;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint32_t> path = {from};  // the states along the previous word
  std::string_view previous;
  for (const std::string_view word : sorted) {
    size_t common = 0;
    while (common < std::min(word.size(), previous.size()) && word[common] == previous[common]) ++common;
    path.resize(common + 1);
    for (size_t i = common; i < word.size(); ++i) path.push_back(build_bytes(word.substr(i, 1), path.back()));
    link(path.back(), end);
    previous = word;
  }
  return end;
}

size_t Nfa::size_of(ExprId id, size_t limit) const {
  std::vector<ExprId> rest = {id};
  size_t size = 0;
  while (!rest.empty() && size <= limit) {
    const Expr& e = rules_.expr(rest.back());
    rest.pop_back();
    if (e.kind == Expr::Kind::kRepeat && e.max != kUnbounded && e.max > 1) return limit + 1;
    size += std::max<size_t>(1, e.bytes.size());
    if (e.kind == Expr::Kind::kRule && may_inline(e.a)) rest.push_back(rules_.definition(e.a));
    if (e.kind == Expr::Kind::kCodePoint) size += rules_.set(e).ranges().back().last > 0x7F ? 16 : 0;
    rest.insert(rest.end(), e.children.begin(), e.children.end());
  }
  return size;
}

uint32_t Nfa::build_repeat(const Expr& e, uint32_t from) {
  const uint32_t copies = e.max == kUnbounded ? e.min : e.max;
  if (copies > 1) {
    const size_t size = copies > kMaxCopies ? kMaxCopiedSize : size_of(e.children[0], kMaxCopiedSize);
    if (copies > kMaxCopies || size * copies > kMaxCopiedSize) return build_counted(e, from);
  }
  if (e.max == kUnbounded) return build_unbounded(e, from);
  for (uint32_t i = 0; i < e.min; ++i) from = build(e.children[0], from);
  const uint32_t end = add_state();
  link(from, end);
  for (uint32_t i = e.min; i < e.max; ++i) {
    from = build(e.children[0], from);
    link(from, end);
  }
  return end;
}

uint32_t Nfa::build_unbounded(const Expr& e, uint32_t from) {
  for (uint32_t i = 1; i < e.min; ++i) from = build(e.children[0], from);
  // Separate states, so that other paths through `from` or the end cannot enter the loop.
  const uint32_t loop = add_state(), end = add_state();
  link(from, loop);
  const uint32_t body_end = build(e.children[0], loop);
  link(body_end, loop);
  link(e.min == 0 ? loop : body_end, end);
  return end;
}

uint32_t Nfa::build_counted(const Expr& e, uint32_t from) {
  const auto [at, is_new] = body_of_.try_emplace(e.children[0], static_cast<uint32_t>(fragments_.size()));
  if (is_new) {
    fragments_.push_back({fragments_[building_].name});
    unbuilt_.push_back(e.children[0]);
  }
  const uint32_t to = add_state();
  loops_.push_back({at->second, e.min, e.max});
  const auto loop = static_cast<uint32_t>(loops_.size() - 1);
  add_edge(from, {.kind = NfaEdge::Kind::kLoop, .argument = loop, .to = to});
  return to;
}

// A rule with a single caller is inlined the first time; if its caller is built again, it calls the rule.
bool Nfa::may_inline(RuleId rule) const {
  return calls_[rule] == 1 && !inlined_[rule] && fragment_of_rule_[rule] == kNoId && depth_ < kMaxInlinedDepth;
}

uint32_t Nfa::build_call(RuleId rule, uint32_t from) {
  const ExprId definition = rules_.definition(rule);
  if (may_inline(rule)) {
    inlined_[rule] = true;
    return build(definition, from);
  }
  const uint32_t to = add_state();
  add_edge(from, {.kind = NfaEdge::Kind::kCall, .argument = fragment_of(rule), .to = to});
  return to;
}

uint32_t Nfa::build_partial(const Expr& e, uint32_t from) {
  const uint32_t end = add_state();
  if (e.min == 0) link(from, end);
  for (size_t i = 0; i < e.children.size(); ++i) {
    from = build(e.children[i], from);
    if (i + 1 >= e.min) link(from, end);
  }
  return end;
}

uint32_t Nfa::build_listed(const Expr& e, uint32_t from) {
  uint32_t first = add_state(), more = add_state();  // before the next item: without and with earlier items
  link(from, first);
  for (size_t i = 1; i < e.children.size(); ++i) {
    const uint32_t item = add_state(), next_first = add_state(), next_more = add_state();
    link(first, item);
    link(build(e.children[0], more), item);
    link(build(e.children[i], item), e.bytes[i - 1] == kRepeated ? more : next_more);
    if (e.bytes[i - 1] != kRequired) {
      link(first, next_first);
      link(more, next_more);
    }
    first = next_first;
    more = next_more;
  }
  const uint32_t end = add_state();
  link(more, end);
  if (e.min == 0) link(first, end);
  return end;
}

uint32_t Nfa::build_free_text(const Expr& e, uint32_t from) {
  const bool up_to = e.kind == Expr::Kind::kUpTo;
  const WordSearch search(rules_.words(e), !up_to && e.min == 1);
  const uint32_t end = add_state();
  std::vector<uint32_t> states;  // [states of the search]
  for (uint32_t s = 0; s < search.n_states(); ++s) states.push_back(search.found(s) ? end : add_state());
  link(from, states[0]);
  for (uint32_t s = 0; s < search.n_states(); ++s) {
    if (search.found(s)) continue;
    if (!up_to) link(states[s], end);
    for (int first = 0, last = 0; first < 256; first = last + 1) {
      const uint32_t to = search.next(s, static_cast<uint8_t>(first));
      for (last = first; last < 255 && search.next(s, static_cast<uint8_t>(last + 1)) == to;) ++last;
      if (search.found(to) && !up_to) continue;
      add_edge(states[s], {.kind = NfaEdge::Kind::kByte,
                           .first = static_cast<uint8_t>(first),
                           .last = static_cast<uint8_t>(last),
                           .to = states[to]});
    }
  }
  return end;
}

uint32_t Nfa::build_scan(const Expr& e, uint32_t from) {
  const ScanTable& table = rules_.scan_table(e);
  const uint32_t end = add_state();
  std::vector<uint32_t> states;  // [of the table]
  for (size_t s = 0; s < table.next.size(); ++s) states.push_back(add_state());
  link(from, states[0]);
  for (size_t s = 0; s < table.next.size(); ++s) {
    if (e.min == 1 || table.may_end[s]) link(states[s], end);
    for (size_t first = 0, last = 0; first < 256; first = last + 1) {
      const uint32_t to = table.next[s][first];
      for (last = first; last < 255 && table.next[s][last + 1] == to;) ++last;
      if (to == ScanTable::kStop) continue;
      add_edge(states[s], {.kind = NfaEdge::Kind::kByte,
                           .first = static_cast<uint8_t>(first),
                           .last = static_cast<uint8_t>(last),
                           .to = states[to]});
    }
  }
  return end;
}

uint32_t Nfa::build_other_key(const std::vector<std::string>& words, uint32_t from) {
  const auto& characters = json_characters();
  const uint32_t end = add_state();
  std::vector<uint32_t> free;  // [character states]: the text is no longer a prefix of any word
  for (size_t i = 0; i < characters.size(); ++i) free.push_back(add_state());
  link(free[0], end);
  const auto add_range = [&](uint32_t at, int first, int last, uint32_t to) {
    if (first > last) return;
    add_edge(at, {.kind = NfaEdge::Kind::kByte,
                  .first = static_cast<uint8_t>(first),
                  .last = static_cast<uint8_t>(last),
                  .to = to});
  };
  for (size_t i = 0; i < characters.size(); ++i) {
    for (const CharacterEdge& edge : characters[i]) add_range(free[i], edge.first, edge.last, free[edge.to]);
  }

  std::vector<std::string_view> sorted(words.begin(), words.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  // Words [begin, end) share the first `length` bytes; `at` and `character` are the states after them.
  struct Node {
    size_t begin, end, length;
    uint32_t at;
    uint32_t character;
  };
  std::vector<Node> nodes = {{0, sorted.size(), 0, from, 0}};
  while (!nodes.empty()) {
    Node node = nodes.back();
    nodes.pop_back();
    const bool is_word = node.begin < node.end && sorted[node.begin].size() == node.length;
    if (is_word) ++node.begin;
    else if (node.character == 0) link(node.at, end);
    std::vector<Node> children;
    for (size_t i = node.begin; i < node.end;) {
      const char byte = sorted[i][node.length];
      Node child = {i, i, node.length + 1, add_state(), 0};
      while (child.end < node.end && sorted[child.end][node.length] == byte) ++child.end;
      i = child.end;
      children.push_back(child);
    }
    for (const CharacterEdge& edge : characters[node.character]) {
      int first = edge.first;
      for (Node& child : children) {
        const int byte = static_cast<uint8_t>(sorted[child.begin][node.length]);
        if (byte < edge.first || byte > edge.last) continue;
        add_range(node.at, first, byte - 1, free[edge.to]);
        add_range(node.at, byte, byte, child.at);
        child.character = edge.to;
        first = byte + 1;
      }
      add_range(node.at, first, edge.last, free[edge.to]);
    }
    nodes.insert(nodes.end(), children.begin(), children.end());
  }
  return end;
}

}  // namespace infer::grammar
