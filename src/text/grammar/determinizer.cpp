#include "src/text/grammar/determinizer.h"

#include <algorithm>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"

namespace infer::grammar {
namespace {

// A fragment of n NFA states may get at most n + this many states.
constexpr size_t kMoreStates = 20'000;

}  // namespace

size_t Determinizer::SetHash::operator()(const Set& set) const {
  uint64_t hash = set.size();
  for (const uint32_t state : set) hash = (hash ^ state) * 0x9E3779B97F4A7C15u + (hash >> 29);
  return static_cast<size_t>(hash);
}

Determinizer::Determinizer(const Nfa& nfa, const NfaAnalysis& analysis, const Limits& limits)
    : nfa_(nfa), analysis_(analysis), limits_(limits) {
  start_of_.assign(nfa.fragments().size(), kNoId);
  seen_.assign(nfa.n_states(), 0);
}

Automaton Determinizer::run() {
  wanted_ = {nfa_.root()};
  while (!wanted_.empty()) {
    const uint32_t fragment = wanted_.back();
    wanted_.pop_back();
    if (start_of_[fragment] == kNoId) build_fragment(fragment);
  }
  return finish();
}

void Determinizer::count_work(size_t steps) {
  work_ += steps;
  if (work_ > limits_.work || states_.size() > limits_.states) {
    throw Error(
        ErrorCode::kInvalidArgument,
        concat("[grammar] rule ", nfa_.fragments()[fragment_].name, ": expected a grammar that compiles to at most ",
               grouped(limits_.states), " states in ", grouped(limits_.work), " steps, found a larger one"));
  }
}

void Determinizer::build_fragment(uint32_t fragment) {
  fragment_ = fragment;
  const size_t n_before = states_.size();
  if (build_states(fragment, true)) return;
  states_.resize(n_before);
  build_states(fragment, false);
}

// False if a deterministic automaton would be too large.
bool Determinizer::build_states(uint32_t fragment, bool deterministic) {
  deterministic_ = deterministic;
  ids_.clear();
  id_of_one_.clear();
  unexpanded_.clear();
  const size_t n_before = states_.size(), work_before = work_;
  // The fragment reads at least one byte: its start is not final, even if another state with the same set is.
  Set start = closure({nfa_.fragments()[fragment].start});
  start_of_[fragment] = static_cast<uint32_t>(states_.size());
  states_.emplace_back();
  expand(start_of_[fragment], start);
  states_[start_of_[fragment]].final = false;
  while (!unexpanded_.empty()) {
    const auto [state, set] = std::move(unexpanded_.back());
    unexpanded_.pop_back();
    expand(state, set);
    if (deterministic &&
        (states_.size() - n_before > nfa_.n_states() + kMoreStates || work_ - work_before > limits_.work / 4)) {
      return false;
    }
  }
  return true;
}

Determinizer::Set Determinizer::closure(const Set& targets) {
  ++n_closures_;
  Set rest = targets, out;
  while (!rest.empty()) {
    const uint32_t state = rest.back();
    rest.pop_back();
    if (seen_[state] == n_closures_ || !analysis_.live[state]) continue;
    seen_[state] = n_closures_;
    bool matters = state == nfa_.fragments()[fragment_].end;
    size_t steps = 1;
    nfa_.for_each_edge(state, [&](const NfaEdge& edge) {
      ++steps;
      if (analysis_.is_empty(nfa_, edge)) rest.push_back(edge.to);
      if (edge.kind != NfaEdge::Kind::kEmpty) matters = true;
    });
    count_work(steps);
    if (matters) out.push_back(state);
  }
  std::sort(out.begin(), out.end());
  return out;
}

uint32_t Determinizer::new_state(Set set) {
  const auto [at, is_new] = ids_.try_emplace(std::move(set), static_cast<uint32_t>(states_.size()));
  if (is_new) {
    states_.emplace_back();
    unexpanded_.emplace_back(at->second, at->first);
  }
  return at->second;
}

// REQUIRES: ascending targets.
uint32_t Determinizer::state_of(const Set& targets) {
  if (targets.size() != 1) return new_state(closure(targets));
  const auto found = id_of_one_.find(targets[0]);
  if (found != id_of_one_.end()) return found->second;
  return id_of_one_[targets[0]] = new_state(closure(targets));
}

void Determinizer::expand(uint32_t id, const Set& set) {
  State state;
  std::vector<NfaEdge> bytes;
  std::vector<Call> calls, loops;
  for (const uint32_t nfa_state : set) {
    if (nfa_state == nfa_.fragments()[fragment_].end) state.final = true;
    nfa_.for_each_edge(nfa_state, [&](const NfaEdge& edge) {
      if (!analysis_.live[edge.to]) return;
      if (edge.kind == NfaEdge::Kind::kByte) bytes.push_back(edge);
      if (edge.kind == NfaEdge::Kind::kToken)
        state.tokens.push_back({nfa_.tokens()[edge.argument], state_of({edge.to})});
      if (edge.kind == NfaEdge::Kind::kCall && analysis_.live[nfa_.fragments()[edge.argument].start])
        calls.push_back({edge.argument, edge.to});
      if (edge.kind == NfaEdge::Kind::kLoop && nfa_.loops()[edge.argument].max > 0 &&
          analysis_.live[nfa_.fragments()[nfa_.loops()[edge.argument].body].start])
        loops.push_back({edge.argument, edge.to});
    });
  }
  add_bytes(state, bytes);
  for (const Call& call : calls) wanted_.push_back(call.argument);
  for (const Call& loop : loops) wanted_.push_back(nfa_.loops()[loop.argument].body);
  state.calls = merge_calls(std::move(calls));
  state.loops = merge_calls(std::move(loops));
  count_work(4 * (1 + state.bytes.size() + state.calls.size() + state.loops.size() + state.tokens.size()));
  states_[id] = std::move(state);
}

// Merges calls of the same fragment: they return to one state that stands for all their return states.
std::vector<Determinizer::Call> Determinizer::merge_calls(std::vector<Call> calls) {
  std::sort(calls.begin(), calls.end(),
            [](const Call& a, const Call& b) { return std::pair(a.argument, a.to) < std::pair(b.argument, b.to); });
  std::vector<Call> out;
  for (size_t i = 0; i < calls.size();) {
    Set targets;
    size_t end = i;
    for (; end < calls.size() && calls[end].argument == calls[i].argument && (deterministic_ || end == i); ++end) {
      if (targets.empty() || targets.back() != calls[end].to) targets.push_back(calls[end].to);
    }
    out.push_back({calls[i].argument, state_of(targets)});
    i = end;
  }
  return out;
}

void Determinizer::add_bytes(State& state, std::vector<NfaEdge>& edges) {
  std::sort(edges.begin(), edges.end(), [](const NfaEdge& a, const NfaEdge& b) { return a.first < b.first; });
  bool overlap = false;
  for (size_t i = 1; i < edges.size(); ++i) {
    overlap = overlap || edges[i].first <= edges[i - 1].last;
  }
  if (overlap && deterministic_) return add_overlapping_bytes(state, edges);
  for (const NfaEdge& edge : edges) state.bytes.push_back({edge.first, edge.last, state_of({edge.to})});
}

void Determinizer::add_overlapping_bytes(State& state, const std::vector<NfaEdge>& edges) {
  bool begins[257] = {};  // bytes at which the set of edges may change
  for (const NfaEdge& edge : edges) begins[edge.first] = begins[edge.last + 1] = true;
  Set targets;
  uint32_t to = kNoId;
  for (int byte = 0; byte < 256; ++byte) {
    if (begins[byte]) {
      targets.clear();
      for (const NfaEdge& edge : edges) {
        if (edge.first <= byte && byte <= edge.last) targets.push_back(edge.to);
      }
      count_work(edges.size() / 8 + 1);
      std::sort(targets.begin(), targets.end());
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      to = targets.empty() ? kNoId : state_of(targets);
    }
    if (to == kNoId) continue;
    const auto b = static_cast<uint8_t>(byte);
    if (!state.bytes.empty() && state.bytes.back().to == to && state.bytes.back().last + 1 == byte) {
      state.bytes.back().last = b;
    } else {
      state.bytes.push_back({b, b, to});
    }
  }
}

Automaton Determinizer::finish() const {
  Automaton out;
  const auto starts = [&] {
    return Automaton::State{static_cast<uint32_t>(out.bytes_.size()), static_cast<uint32_t>(out.calls_.size()),
                            static_cast<uint32_t>(out.loops_.size()), static_cast<uint32_t>(out.tokens_.size())};
  };
  for (const State& state : states_) {
    Automaton::State& s = out.states_.emplace_back(starts());
    s.final = state.final;
    s.only_final =
        state.final && state.bytes.empty() && state.calls.empty() && state.loops.empty() && state.tokens.empty();
    out.bytes_.insert(out.bytes_.end(), state.bytes.begin(), state.bytes.end());
    out.tokens_.insert(out.tokens_.end(), state.tokens.begin(), state.tokens.end());
    for (const Call& call : state.calls) out.calls_.push_back({start_of_[call.argument], call.to});
    for (const Call& call : state.loops) {
      const CountedLoop& loop = nfa_.loops()[call.argument];
      out.loops_.push_back({start_of_[loop.body], loop.min, loop.max, call.to});
    }
  }
  out.states_.push_back(starts());
  const uint32_t root = nfa_.root();
  if (analysis_.live[nfa_.fragments()[root].start]) out.start_ = start_of_[root];
  out.accepts_empty_ = analysis_.nullable[root];
  return out;
}

Automaton Automaton::compile(const Rules& rules, const Limits& limits) {
  Nfa nfa(rules, limits);
  const NfaAnalysis analysis(nfa);
  return Determinizer(nfa, analysis, limits).run();
}

}  // namespace infer::grammar
