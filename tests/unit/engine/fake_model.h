// A model for scheduler tests. The "keys and values" of a position are a hash of all tokens up to it, stored in
// simulated cache blocks; the recurrent state is the same hash, updated token by token in a slot. Computing a token
// reads the cache through the block table and checks everything that the token may see, so a block that is wrongly
// shared, copied, released or reused is noticed at once. The correct text of a request can be computed without a cache.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "src/engine/scheduler.h"

namespace infer::test {

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9;
  return x ^ (x >> 32);
}

inline uint64_t hash_of(std::span<const TokenId> tokens) {
  uint64_t h = 0;
  for (const TokenId t : tokens) h = mix(h, static_cast<uint64_t>(t));
  return h;
}

constexpr TokenId kEog = 0;

class FakeModel {
 public:
  FakeModel(std::vector<CacheGroup> groups, size_t n_vocab) : groups_(std::move(groups)), n_vocab_(n_vocab) {
    for (const CacheGroup& g : groups_) cache_.emplace_back(static_cast<size_t>(g.n_blocks) * values_per_block(g), 0);
  }

  // The token that `seed` samples after a text with this hash; the end of generation once in 64 times.
  TokenId draw(uint64_t seed, uint64_t text_hash) const {
    const uint64_t r = mix(seed, text_hash);
    return r % 64 == 0 ? kEog : static_cast<TokenId>(1 + (r >> 8) % (n_vocab_ - 1));
  }

  void copy(const StepPlan& plan) {
    for (const BlockCopy& c : plan.copies) {
      REQUIRE(c.from != c.to);
      const auto n = static_cast<std::ptrdiff_t>(values_per_block(groups_[c.group]));
      const auto from = cache_[c.group].begin() + c.from * n, to = cache_[c.group].begin() + c.to * n;
      std::copy(from, from + n, to);
    }
  }

  // Computes the share of one sequence, drafts included, and samples its tokens.
  std::vector<TokenId> run(const ScheduledSequence& scheduled, uint64_t seed) {
    const Sequence& s = *scheduled.sequence;
    const std::vector<uint64_t> hashes = hashes_of(s.tokens());
    check_visible(s, hashes, scheduled.first_position);
    std::vector<TokenId> sampled;
    bool sampling = scheduled.samples;
    for (int row = 0; row < scheduled.n_tokens; ++row) {
      const int64_t position = scheduled.first_position + row;
      for (size_t g = 0; g < groups_.size(); ++g) compute(s, g, hashes, position);
      if (!sampling || row < scheduled.first_sampled_row()) continue;
      REQUIRE(row >= scheduled.first_output);
      REQUIRE(s.history(position).size() == static_cast<size_t>(position) + 1);
      sampled.push_back(draw(seed, hashes[position + 1]));
      const bool last = row + 1 == scheduled.n_tokens;
      sampling = !last && sampled.back() == s.tokens()[position + 1];
    }
    return sampled;
  }

  // The choices' first tokens, for the sequences that sample their first token in this step.
  std::vector<Choice> draw_choices(const StepPlan& plan) const {
    std::vector<Choice> choices;
    for (const ScheduledSequence& scheduled : plan.sequences) {
      const Request& r = scheduled.sequence->request();
      if (!scheduled.samples) continue;
      for (uint32_t i = 0; i < r.choices.size(); ++i) {
        choices.push_back({r.id, i + 1, r.choices[i], scheduled.sequence->sampler().for_choice(i + 1),
                           draw(r.choices[i], hash_of(r.prompt))});
      }
    }
    return choices;
  }

  // Checks what the query at `position` may see, in the groups that have entries per position.
  void check_visible(const Sequence& s, int64_t position) { check_visible(s, hashes_of(s.tokens()), position); }

  // The correct text of a request: prompt and answer.
  std::vector<TokenId> expected(std::vector<TokenId> text, int32_t max_new, bool ignore_eog, int64_t max_known,
                                uint64_t seed) const {
    const size_t n_prompt = text.size();
    while (max_new < 0 || text.size() < n_prompt + static_cast<size_t>(max_new)) {
      text.push_back(draw(seed, hash_of(text)));
      if (text.back() == kEog && !ignore_eog) break;
      if (static_cast<int64_t>(text.size()) >= max_known) break;
    }
    return text;
  }

 private:
  static size_t values_per_block(const CacheGroup& g) { return g.kind == CacheKind::kState ? 1 : kBlockTokens; }

  // hashes[n]: of the first n tokens.
  static std::vector<uint64_t> hashes_of(std::span<const TokenId> tokens) {
    std::vector<uint64_t> hashes = {0};
    for (const TokenId t : tokens) hashes.push_back(mix(hashes.back(), static_cast<uint64_t>(t)));
    return hashes;
  }

  int64_t first_visible(size_t g, int64_t position) const {
    return groups_[g].kind == CacheKind::kWindow ? std::max<int64_t>(0, position - groups_[g].window + 1) : 0;
  }

  void check_visible(const Sequence& s, const std::vector<uint64_t>& hashes, int64_t position) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].kind == CacheKind::kState) continue;
      bool right = true;
      for (int64_t p = first_visible(g, position); p < position; ++p) right = right && at(s, g, p) == hashes[p + 1];
      REQUIRE(right);
    }
  }

  void compute(const Sequence& s, size_t g, const std::vector<uint64_t>& hashes, int64_t position) {
    const auto token = static_cast<uint64_t>(s.tokens()[position]);
    if (groups_[g].kind == CacheKind::kState) {
      REQUIRE(s.cache().table(g).size() == 1);
      uint64_t& slot = cache_[g][s.cache().table(g)[0]];
      if (position == 0) slot = 0;  // whatever it contained
      REQUIRE(slot == hashes[position]);
      slot = mix(slot, token);
      return;
    }
    const int64_t first = first_visible(g, position);
    const uint64_t before = first < position ? at(s, g, position - 1) : hashes[position];
    REQUIRE(before == hashes[position]);
    at(s, g, position) = mix(before, token);
    REQUIRE(at(s, g, first) == hashes[first + 1]);
  }

  uint64_t& at(const Sequence& s, size_t g, int64_t position) {
    const auto table = s.cache().table(g);
    const size_t i = static_cast<size_t>(position / kBlockTokens);
    if (i >= table.size() || table[i] < 0) FAIL("position " << position << " is not in the cache of group " << g);
    return cache_[g][static_cast<size_t>(table[i]) * kBlockTokens + position % kBlockTokens];
  }

  std::vector<CacheGroup> groups_;
  size_t n_vocab_;
  std::vector<std::vector<uint64_t>> cache_;  // [group][n_blocks * values_per_block]
};

inline CacheGroup group_of(CacheKind kind, int32_t n_blocks, int32_t window = 0) {
  CacheGroup group;
  group.kind = kind;
  group.n_blocks = n_blocks;
  group.window = window;
  return group;
}
inline CacheGroup full_group(int32_t n_blocks) { return group_of(CacheKind::kFull, n_blocks); }
inline CacheGroup latent_group(int32_t n_blocks) { return group_of(CacheKind::kLatent, n_blocks); }
inline CacheGroup window_group(int32_t n_blocks, int32_t window) {
  return group_of(CacheKind::kWindow, n_blocks, window);
}
inline CacheGroup state_group(int32_t n_slots) { return group_of(CacheKind::kState, n_slots); }

}  // namespace infer::test
