#include "src/text/grammar/mask_cache.h"

#include <algorithm>

namespace infer::grammar {
namespace {

constexpr size_t kMaxCachedBytes = size_t{16} << 20;
constexpr size_t kMaxLoopFrames = 4;   // always part of the key
constexpr size_t kMaxExtraFrames = 4;  // added to the key if too many tokens escape
constexpr size_t kManyEscapes = 400;
constexpr size_t kFewTokens = 512;

void set_bit(std::vector<uint64_t>& bits, TokenId token) {
  bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

// Clamps the counts of a loop to what a token of at most `reach` bytes can distinguish.
Frame within_reach(Frame frame, uint32_t reach) {
  frame.need = std::min(frame.need, reach + 1);
  if (frame.more > reach) frame.more = kUnbounded;
  return frame;
}

void append(std::string& key, uint32_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }

}  // namespace

MaskCache::MaskCache(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const GrammarVocabulary> vocabulary)
    : grammar_(std::move(grammar)),
      vocabulary_(std::move(vocabulary)),
      n_words_((vocabulary_->n_tokens() + 63) / 64),
      short_{&vocabulary_->short_tokens(), {}},
      long_{&vocabulary_->long_tokens(), {}},
      lookahead_(*grammar_) {}

void MaskCache::allowed(const MatchState& state, std::vector<uint64_t>& bits) {
  bits.assign(n_words_, 0);
  const std::lock_guard lock(mutex_);
  if (lookahead_.is_full()) lookahead_.clear();
  if (cached_bytes_ > kMaxCachedBytes) {
    short_.entries.clear();
    long_.entries.clear();
    cached_bytes_ = 0;
  }
  for (const Reading& reading : state.readings()) {
    if (reading.state == Reading::kDone) continue;
    add_token_literals(reading, bits);
    add_tokens(short_, reading, bits);
    add_tokens(long_, reading, bits);
  }
  // Negated literals also allow end tokens, but those are allowed only where the grammar can end.
  for (const TokenId token : vocabulary_->end_tokens()) {
    uint64_t& word = bits[static_cast<size_t>(token) / 64];
    const uint64_t bit = uint64_t{1} << (token % 64);
    word = state.can_end() ? word | bit : word & ~bit;
  }
}

bool MaskCache::allows(const MatchState& state, TokenId token) const {
  if (vocabulary_->is_end(token)) return state.can_end();
  return !after(state, token).is_dead();
}

MatchState MaskCache::after(const MatchState& state, TokenId token) const {
  if (vocabulary_->is_end(token)) return MatchState::at(Reading());
  const Automaton& automaton = grammar_->automaton();
  MatchState next = state.after_token(automaton, grammar_->limits(), token);
  const std::string_view text = vocabulary_->text(token);
  if (!text.empty()) next.merge(grammar_->after(state, text));
  return next;
}

void MaskCache::add_token_literals(const Reading& reading, std::vector<uint64_t>& bits) const {
  for (const TokenEdge& edge : grammar_->automaton().tokens(reading.state)) {
    const auto n = static_cast<TokenId>(vocabulary_->n_tokens());
    if (!edge.literal.negated) {
      if (edge.literal.token >= 0 && edge.literal.token < n) set_bit(bits, edge.literal.token);
      continue;
    }
    for (TokenId token = 0; token < n; ++token) {
      if (token != edge.literal.token) set_bit(bits, token);
    }
  }
}

MaskCache::Local MaskCache::local_of(const Reading& reading, uint32_t reach, size_t extra_frames) const {
  Local local;
  append(local.key, reading.state);
  std::vector<Frame> frames;
  Stack rest = reading.stack;
  size_t n_loops = 0;
  while (!rest.empty()) {
    const Frame& top = rest.top();
    if (top.is_loop ? n_loops++ == kMaxLoopFrames : extra_frames-- == 0) break;
    frames.push_back(within_reach(top, reach));
    const Frame& frame = frames.back();
    append(local.key, frame.to * 2 + (frame.is_loop ? 1 : 0));
    append(local.key, frame.need);
    append(local.key, frame.more);
    if (rest.n_below() > 1) {
      for (size_t i = 0; i < rest.n_below(); ++i) local.rest.push_back(rest.below(i));
      break;
    }
    rest = rest.below();
  }
  if (local.rest.empty()) local.rest.push_back(rest);
  local.whole = local.rest.size() == 1 && local.rest[0].empty();
  local.reading.state = reading.state;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    local.reading.stack = local.reading.stack.pushed(*frame);
  return local;
}

void MaskCache::add_tokens(Layer& layer, const Reading& reading, std::vector<uint64_t>& bits) {
  if (layer.trie->size() == 0 || grammar_->automaton().bytes(reading.state).empty()) return;
  size_t extra_frames = 0;
  Local local = local_of(reading, layer.trie->max_depth(), extra_frames);
  Entry* entry = &entry_of(layer, local, true);
  while (entry->deepen) {
    const std::string known = local.key;
    local = local_of(reading, layer.trie->max_depth(), ++extra_frames);
    // If the key does not change, the stacks branch here and no more frames can be added.
    const bool more = local.key != known && extra_frames < kMaxExtraFrames && !local.whole && local.rest.size() == 1;
    if (local.key == known) local.key += "end";
    entry = &entry_of(layer, local, more);
  }
  if (entry->bits.empty()) {
    for (const TokenId token : entry->tokens) set_bit(bits, token);
  } else {
    for (size_t i = 0; i < n_words_; ++i) bits[i] |= entry->bits[i];
  }
  if (!entry->escapes.empty() && !local.whole) follow_escapes(layer, local.rest, entry->escapes, bits);
}

MaskCache::Entry& MaskCache::entry_of(Layer& layer, const Local& local, bool may_deepen) {
  const std::string key = local.key + (may_deepen ? "+" : "-");
  const auto known = layer.entries.find(key);
  if (known != layer.entries.end()) return known->second;
  Entry entry;
  std::vector<uint64_t> bits(n_words_, 0);
  walk_any(*layer.trie, MatchState::at(local.reading), nullptr, 0, bits, entry.escapes);
  if (may_deepen && !local.whole && entry.escapes.size() > kManyEscapes) {
    entry = Entry();
    entry.deepen = true;
  } else {
    size_t n_tokens = 0;
    for (const uint64_t word : bits) n_tokens += static_cast<size_t>(__builtin_popcountll(word));
    if (n_tokens > kFewTokens) {
      entry.bits = std::move(bits);
    } else {
      for (size_t i = 0; i < bits.size(); ++i) {
        for (uint64_t word = bits[i]; word != 0; word &= word - 1)
          entry.tokens.push_back(static_cast<TokenId>(i * 64 + static_cast<size_t>(__builtin_ctzll(word))));
      }
    }
  }
  cached_bytes_ += 256 + key.size() + entry.bits.size() * 8 + (entry.tokens.size() + entry.escapes.size()) * 4;
  return layer.entries.emplace(key, std::move(entry)).first->second;
}

void MaskCache::follow_escapes(const Layer& layer, std::vector<Stack> rest, const std::vector<uint32_t>& escapes,
                               std::vector<uint64_t>& bits) {
  struct Step {
    std::vector<Stack> rest;
    std::vector<uint32_t> escapes;
  };
  std::vector<Step> steps = {{std::move(rest), escapes}};
  while (!steps.empty()) {
    const Step step = std::move(steps.back());
    steps.pop_back();
    const MatchState after = MatchState::after_end(grammar_->automaton(), grammar_->limits(), step.rest);
    for (const Reading& reading : after.readings()) {
      if (reading.state == Reading::kDone || grammar_->automaton().bytes(reading.state).empty()) continue;
      Local local = local_of(reading, layer.trie->max_depth(), 0);
      std::vector<uint32_t> more;
      walk_any(*layer.trie, MatchState::at(local.reading), step.escapes.data(), step.escapes.size(), bits, more);
      if (!more.empty() && !local.whole) steps.push_back({std::move(local.rest), std::move(more)});
    }
  }
}

// Visits the nodes below [from, n_from), or all of the trie if there are none.
template <typename Machine>
void MaskCache::walk(Machine& machine, const TokenTrie& trie, const MatchState& start, const uint32_t* from,
                     size_t n_from, std::vector<uint64_t>& bits, std::vector<uint32_t>& escapes) {
  std::vector<typename Machine::State> path(trie.max_depth() + 1);
  path[0] = machine.number(start);
  for (size_t f = 0; f < std::max<size_t>(n_from, 1); ++f) {
    const uint32_t end = n_from > 0 ? trie.end(from[f]) : trie.size();
    const uint32_t base = n_from > 0 ? trie.depth(from[f]) : 0;
    for (uint32_t node = n_from > 0 ? from[f] + 1 : 0; node < end;) {
      const uint32_t depth = trie.depth(node) - base;
      typename Machine::State state = machine.next(path[depth - 1], trie.byte(node));
      if (machine.is_dead(state)) {
        node = trie.end(node);
        continue;
      }
      // Text on which the state stays the same is allowed as a whole.
      const bool stays = state == path[depth - 1] && machine.is_live(state) && !machine.escapes(state);
      const AsciiSet* below = stays ? trie.below(node) : nullptr;
      if (below && below->within(machine.loops(state))) {
        for (const TokenId token : trie.subtree_tokens(node)) set_bit(bits, token);
        node = trie.end(node);
        continue;
      }
      for (const TokenId token : trie.tokens(node)) set_bit(bits, token);
      if (machine.escapes(state) && trie.end(node) > node + 1) escapes.push_back(node);
      if (machine.is_live(state)) {
        path[depth] = std::move(state);
        ++node;
      } else {
        node = trie.end(node);
      }
    }
  }
}

void MaskCache::walk_any(const TokenTrie& trie, const MatchState& start, const uint32_t* from, size_t n_from,
                         std::vector<uint64_t>& bits, std::vector<uint32_t>& escapes) {
  const size_t n_before = escapes.size();
  try {
    walk(lookahead_, trie, start, from, n_from, bits, escapes);
  } catch (const Lookahead::Full&) {
    // Bits already set are correct; start the walk again.
    escapes.resize(n_before);
    lookahead_.clear();
    DirectLookahead direct(*grammar_);
    walk(direct, trie, start, from, n_from, bits, escapes);
  }
}

}  // namespace infer::grammar
