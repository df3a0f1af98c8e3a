#include "src/text/grammar/nfa_analysis.h"

#include "ggml-like/error.h"

namespace infer::grammar {
namespace {

uint32_t callee(const Nfa& nfa, const NfaEdge& edge) {
  return edge.kind == NfaEdge::Kind::kCall ? edge.argument : nfa.loops()[edge.argument].body;
}

}  // namespace

NfaAnalysis::NfaAnalysis(Nfa& nfa) {
  find_nullable(nfa);
  for (CountedLoop& loop : nfa.loops()) {
    if (nullable[loop.body]) loop.min = 0;
  }
  refuse_left_recursion(nfa);
  find_live(nfa);
}

bool NfaAnalysis::is_empty(const Nfa& nfa, const NfaEdge& edge) const {
  switch (edge.kind) {
    case NfaEdge::Kind::kEmpty:
      return true;
    case NfaEdge::Kind::kCall:
      return nullable[edge.argument];
    case NfaEdge::Kind::kLoop:
      return nfa.loops()[edge.argument].min == 0 || nullable[nfa.loops()[edge.argument].body];
    case NfaEdge::Kind::kByte:
    case NfaEdge::Kind::kToken:
      return false;
  }
  return false;
}

void NfaAnalysis::find_nullable(const Nfa& nfa) {
  const auto& fragments = nfa.fragments();
  nullable.assign(fragments.size(), false);
  // owner[state]: the fragment that ends in this state.
  std::vector<uint32_t> owner(nfa.n_states(), kNoId);
  for (size_t f = 0; f < fragments.size(); ++f) owner[fragments[f].end] = static_cast<uint32_t>(f);
  std::vector<bool> reached(nfa.n_states(), false);
  std::vector<std::vector<uint32_t>> waiting(fragments.size());  // states reached once a fragment is nullable
  std::vector<uint32_t> rest;
  for (const Fragment& fragment : fragments) rest.push_back(fragment.start);
  while (!rest.empty()) {
    const uint32_t state = rest.back();
    rest.pop_back();
    if (reached[state]) continue;
    reached[state] = true;
    if (owner[state] != kNoId && !nullable[owner[state]]) {
      nullable[owner[state]] = true;
      rest.insert(rest.end(), waiting[owner[state]].begin(), waiting[owner[state]].end());
    }
    nfa.for_each_edge(state, [&](const NfaEdge& edge) {
      if (edge.kind == NfaEdge::Kind::kByte || edge.kind == NfaEdge::Kind::kToken) return;
      if (is_empty(nfa, edge)) rest.push_back(edge.to);
      else waiting[callee(nfa, edge)].push_back(edge.to);
    });
  }
}

// Searches the graph of fragments for a cycle. An edge leads to each fragment that can be entered before anything is
// read.
void NfaAnalysis::refuse_left_recursion(const Nfa& nfa) const {
  const size_t n = nfa.fragments().size();
  std::vector<std::vector<uint32_t>> calls(n);
  std::vector<uint32_t> seen(nfa.n_states(), kNoId), rest;
  for (uint32_t f = 0; f < n; ++f) {
    rest = {nfa.fragments()[f].start};
    while (!rest.empty()) {
      const uint32_t state = rest.back();
      rest.pop_back();
      if (seen[state] == f) continue;
      seen[state] = f;
      nfa.for_each_edge(state, [&](const NfaEdge& edge) {
        if (edge.kind == NfaEdge::Kind::kCall || edge.kind == NfaEdge::Kind::kLoop)
          calls[f].push_back(callee(nfa, edge));
        if (is_empty(nfa, edge)) rest.push_back(edge.to);
      });
    }
  }
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> mark(n, kNew);
  std::vector<std::pair<uint32_t, size_t>> path;
  for (uint32_t f = 0; f < n; ++f) {
    if (mark[f] == kNew) path.push_back({f, 0});
    while (!path.empty()) {
      auto& [at, next] = path.back();
      mark[at] = kOpen;
      if (next == calls[at].size()) {
        mark[at] = kDone;
        path.pop_back();
        continue;
      }
      const uint32_t to = calls[at][next++];
      if (mark[to] == kOpen) {
        throw Error(ErrorCode::kInvalidArgument,
                    concat("[grammar] rule ", nfa.fragments()[to].name,
                           ": expected to read something before it refers to itself, found left recursion"));
      }
      if (mark[to] == kNew) path.push_back({to, 0});
    }
  }
}

void NfaAnalysis::find_live(const Nfa& nfa) {
  const size_t n = nfa.n_states();
  // Edges by target.
  struct Back {
    uint32_t from, next;
    const NfaEdge* edge;
  };
  std::vector<Back> backs;
  std::vector<uint32_t> first(n, kNoId);
  for (uint32_t state = 0; state < n; ++state) {
    nfa.for_each_edge(state, [&](const NfaEdge& edge) {
      backs.push_back({state, first[edge.to], &edge});
      first[edge.to] = static_cast<uint32_t>(backs.size() - 1);
    });
  }
  const auto& fragments = nfa.fragments();
  std::vector<uint32_t> owner(n, kNoId);  // the fragment that starts in this state
  std::vector<uint32_t> rest;
  for (uint32_t f = 0; f < fragments.size(); ++f) {
    owner[fragments[f].start] = f;
    rest.push_back(fragments[f].end);
  }
  live.assign(n, false);
  std::vector<std::vector<uint32_t>> waiting(fragments.size());  // states that become live once a fragment is
  while (!rest.empty()) {
    const uint32_t state = rest.back();
    rest.pop_back();
    if (live[state]) continue;
    live[state] = true;
    if (owner[state] != kNoId) rest.insert(rest.end(), waiting[owner[state]].begin(), waiting[owner[state]].end());
    for (uint32_t b = first[state]; b != kNoId; b = backs[b].next) {
      const NfaEdge& edge = *backs[b].edge;
      const bool enters =
          (edge.kind == NfaEdge::Kind::kCall || edge.kind == NfaEdge::Kind::kLoop) && !is_empty(nfa, edge);
      if (!enters || live[fragments[callee(nfa, edge)].start]) rest.push_back(backs[b].from);
      else waiting[callee(nfa, edge)].push_back(backs[b].from);
    }
  }
}

}  // namespace infer::grammar
