// A model for scheduler tests: the "keys and values" of a position are a hash of all tokens up to it, stored in
// simulated cache blocks. Computing a token reads the cache through the block table, so that a block that is shared,
// copied, evicted or reused wrongly gives a wrong text; and the right text of a request can be told without a cache.
#pragma once

#include <doctest/doctest.h>

#include <map>
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
  FakeModel(const std::vector<CacheGroup>& groups, size_t n_vocab) : n_vocab_(n_vocab) {
    for (const CacheGroup& g : groups) cache_.emplace_back(static_cast<size_t>(g.n_blocks) * kBlockTokens, 0);
  }

  // What `seed` draws after a text of this hash: end of generation once in 64 times.
  TokenId draw(uint64_t seed, uint64_t text_hash) const {
    const uint64_t r = mix(seed, text_hash);
    return r % 64 == 0 ? kEog : static_cast<TokenId>(1 + (r >> 8) % (n_vocab_ - 1));
  }

  void copy(const StepPlan& plan) {
    for (const BlockCopy& c : plan.copies) {
      REQUIRE(c.from != c.to);
      for (int i = 0; i < kBlockTokens; ++i) slot(c.group, c.to, i) = slot(c.group, c.from, i);
    }
  }

  // Computes the share of one sequence and draws its tokens.
  std::vector<TokenId> run(const ScheduledSequence& scheduled, uint64_t seed) {
    const Sequence& s = *scheduled.sequence;
    std::vector<TokenId> sampled;
    for (int row = 0; row < scheduled.n_tokens; ++row) {
      const int64_t position = scheduled.first_position + row;
      uint64_t hash = 0;
      for (size_t g = 0; g < cache_.size(); ++g) {
        const uint64_t before = position == 0 ? 0 : at(s, g, position - 1);
        hash = mix(before, static_cast<uint64_t>(s.tokens()[position]));
        at(s, g, position) = hash;
      }
      if (!scheduled.samples || row < scheduled.first_sampled_row()) continue;
      REQUIRE(row >= scheduled.first_output);
      REQUIRE(s.history(position).size() == static_cast<size_t>(position) + 1);
      sampled.push_back(draw(seed, hash));
      const bool last = row + 1 == scheduled.n_tokens;
      if (!last && sampled.back() != s.tokens()[position + 1]) break;
    }
    return sampled;
  }

  // First tokens of the choices of the sequences that draw their first token in this step.
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

  // Every computed position of a sequence holds the hash of its own text.
  void check_cache(const Sequence& s) {
    uint64_t hash = 0;
    for (int64_t p = 0; p < s.computed(); ++p) {
      hash = mix(hash, static_cast<uint64_t>(s.tokens()[p]));
      for (size_t g = 0; g < cache_.size(); ++g) REQUIRE(at(s, g, p) == hash);
    }
  }

  // The text that a request must get: prompt and answer.
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
  uint64_t& slot(size_t g, BlockId block, int64_t i) {
    return cache_[g][static_cast<size_t>(block) * kBlockTokens + i];
  }
  uint64_t& at(const Sequence& s, size_t g, int64_t position) {
    REQUIRE(static_cast<size_t>(position / kBlockTokens) < s.table(g).size());
    return slot(g, s.table(g)[position / kBlockTokens], position % kBlockTokens);
  }

  size_t n_vocab_;
  std::vector<std::vector<uint64_t>> cache_;  // [group][n_blocks * kBlockTokens]
};

inline CacheGroup full_group(int32_t n_blocks) {
  CacheGroup group;
  group.n_blocks = n_blocks;
  return group;
}

}  // namespace infer::test
