#include "src/engine/kv_cache_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"

namespace infer {
namespace {

int64_t size_of(const GroupTable& t) { return static_cast<int64_t>(t.blocks.size()); }

// Shared by the full and the windowed groups: one block per kBlockTokens positions.
class PagedPolicy : public CachePolicy {
 public:
  using CachePolicy::CachePolicy;

  void publish(GroupTable& t, std::span<const PrefixKey> keys, const CacheLengths&) override {
    for (; t.n_published < static_cast<int64_t>(keys.size()); ++t.n_published) {
      BlockId& block = t.blocks[t.n_published];
      block = pool_.publish(block, keys[t.n_published]);
    }
  }

 protected:
  // Whether the next token's block is shared and must be copied before it is written.
  bool shares_next(const GroupTable& t, int64_t computed) const {
    const int64_t first = computed / kBlockTokens;
    return first < size_of(t) && pool_.references(t.blocks[first]) > 1;
  }
  int64_t missing(const GroupTable& t, int64_t n_tokens) const {
    return std::max<int64_t>(0, blocks_for(n_tokens) - size_of(t));
  }
  void take(GroupTable& t, int64_t n_tokens) {
    while (size_of(t) < blocks_for(n_tokens)) t.blocks.push_back(pool_.allocate().value());
  }
  void make_room(GroupTable& t, int64_t computed, int64_t n_tokens) {
    const int64_t first = computed / kBlockTokens;
    if (shares_next(t, computed)) {
      const BlockId own = pool_.allocate().value();
      copy(t.blocks[first], own);
      pool_.release(t.blocks[first]);
      t.blocks[first] = own;
    } else if (first < size_of(t)) {
      pool_.make_writable(t.blocks[first]);
    }
    take(t, n_tokens);
    CHECK_INTERNAL(pool_.writable(t.blocks[first]));
  }
  void share(const GroupTable& parent, GroupTable& t, int64_t begin, int64_t n_tokens) {
    t.begin = begin;
    t.blocks.assign(begin, kNoBlock);
    t.blocks.insert(t.blocks.end(), parent.blocks.begin() + begin, parent.blocks.begin() + blocks_for(n_tokens));
    for (int64_t i = begin; i < size_of(t); ++i) pool_.retain(t.blocks[i]);
    t.n_published = std::min(parent.n_published, n_tokens / kBlockTokens);
  }
  void drop_after(GroupTable& t, int64_t n_tokens) {
    for (; size_of(t) > std::max(t.begin, blocks_for(n_tokens)); t.blocks.pop_back()) pool_.release(t.blocks.back());
  }
  // Last block first: the end of a text must be evicted before the prefix it depends on.
  void release_all(GroupTable& t) {
    drop_after(t, 0);
    t = {};
  }
};

class FullPolicy final : public PagedPolicy {
 public:
  using PagedPolicy::PagedPolicy;

  int64_t max_tokens() const override { return int64_t{pool_.stats().total} * kBlockTokens; }
  int64_t longest_hit(std::span<const PrefixKey> keys) const override {
    return static_cast<int64_t>(pool_.find_prefix(keys).size());
  }
  std::vector<BlockId> hit_blocks(std::span<const PrefixKey> keys) const override { return pool_.find_prefix(keys); }

  // Leaves one block for each running sequence that may still need one; otherwise this one would soon be preempted
  // again.
  bool can_start(std::span<const BlockId> hit, int64_t n_hit, const CacheLengths& l) const override {
    const auto n_cached = std::count_if(hit.begin(), hit.end(), [&](auto b) { return pool_.references(b) == 0; });
    return pool_.available() - n_cached >= blocks_for(l.known) - n_hit + n_growing_;
  }
  void start(GroupTable& t, std::vector<BlockId> hit, int64_t n_hit, const CacheLengths& l) override {
    for (const BlockId block : hit) pool_.retain(block);
    t.blocks = std::move(hit);
    t.n_published = n_hit;
    take(t, l.known);
    begin_growing(t, l);
  }

  bool holds(const GroupTable& t, int64_t n) const override { return blocks_for(n) <= size_of(t); }
  bool can_resume(const GroupTable& t, int64_t n, const CacheLengths& l) const override {
    int64_t available = pool_.available();
    for (int64_t i = blocks_for(n); i < size_of(t); ++i) available += pool_.references(t.blocks[i]) == 1;
    const bool copies = n % kBlockTokens != 0 && shares_next(t, n);
    return available >= blocks_for(l.known) - blocks_for(n) + copies + n_growing_;
  }
  void resume(GroupTable& t, int64_t n, const CacheLengths& l) override {
    drop_after(t, n);
    t.n_published = std::min(t.n_published, n / kBlockTokens);
    make_room(t, n, l.known);
    begin_growing(t, l);
  }
  bool can_fork(const GroupTable& parent, int64_t n, const CacheLengths&) const override { return holds(parent, n); }
  void fork(const GroupTable& parent, GroupTable& t, int64_t n, const CacheLengths& child) override {
    share(parent, t, 0, n);
    begin_growing(t, child);
  }

  bool can_extend(const GroupTable& t, const CacheLengths& l, int64_t n, int64_t) const override {
    return pool_.available() >= missing(t, l.computed + n) + shares_next(t, l.computed);
  }
  bool extend(GroupTable& t, const CacheLengths& l, int64_t n, int64_t) override {
    if (!can_extend(t, l, n, 0)) return false;
    n_growing_ -= grows(t);
    make_room(t, l.computed, l.computed + n);
    n_growing_ += grows(t);
    return true;
  }
  int64_t rollback(GroupTable&, int64_t n) override { return n; }
  void cut(GroupTable& t, int64_t n) override {
    n_growing_ -= grows(t);
    drop_after(t, n);
    t.n_published = std::min(t.n_published, n / kBlockTokens);
    n_growing_ += grows(t);
  }
  void trim(GroupTable& t, const CacheLengths& l) override {
    n_growing_ -= grows(t);
    drop_after(t, l.known);
    n_growing_ += grows(t);
  }
  void retire(GroupTable& t) override {
    n_growing_ -= grows(t);
    t.most = 0;
  }
  void release(GroupTable& t) override {
    n_growing_ -= grows(t);
    release_all(t);
  }

 private:
  static bool grows(const GroupTable& t) { return size_of(t) < t.most; }
  void begin_growing(GroupTable& t, const CacheLengths& l) {
    t.most = blocks_for(l.longest);
    n_growing_ += grows(t);
  }

  int64_t n_growing_ = 0;  // running sequences that may still need a block
};

// Reservations: each running sequence may hold `most` blocks, shared ones included, and the reservations together never
// exceed the pool. So while a sequence holds fewer than it reserved, some block is free, cached or retained.
class WindowPolicy final : public PagedPolicy {
 public:
  WindowPolicy(int32_t index, const CacheGroup& group, int64_t max_chunk, std::vector<BlockCopy>& copies)
      : PagedPolicy(index, group.n_blocks, copies), window_(group.window), max_chunk_(max_chunk) {}

  int64_t max_tokens() const override {
    const int64_t total = pool_.stats().total;
    return total >= blocks_touched(window_) ? std::numeric_limits<int64_t>::max() : total * kBlockTokens;
  }
  int64_t fit_chunk(const GroupTable& t, const CacheLengths& l, int64_t n) const override {
    return std::min(n, (first_seen(l.computed) + t.most) * kBlockTokens - l.computed);
  }

  int64_t longest_hit(std::span<const PrefixKey> keys) const override {
    int64_t end = static_cast<int64_t>(keys.size());
    for (int64_t i = end - 1; i >= first_seen(end * kBlockTokens); --i) {
      if (!pool_.find(keys[i])) end = i;
    }
    return end;
  }
  std::vector<BlockId> hit_blocks(std::span<const PrefixKey> keys) const override {
    std::vector<BlockId> blocks(keys.size(), kNoBlock);
    for (size_t i = first_seen(static_cast<int64_t>(keys.size()) * kBlockTokens); i < keys.size(); ++i) {
      blocks[i] = pool_.find(keys[i]).value();
    }
    return blocks;
  }
  bool can_start(std::span<const BlockId>, int64_t, const CacheLengths& l) const override { return can_claim(l); }
  void start(GroupTable& t, std::vector<BlockId> hit, int64_t n_hit, const CacheLengths& l) override {
    t.blocks = std::move(hit);
    t.begin = first_seen(n_hit * kBlockTokens);
    for (int64_t i = t.begin; i < n_hit; ++i) pool_.retain(t.blocks[i]);
    t.n_published = n_hit;
    claim(t, l);
  }

  bool holds(const GroupTable& t, int64_t n) const override {
    return t.begin <= first_seen(n) && blocks_for(n) <= size_of(t);
  }
  bool can_resume(const GroupTable&, int64_t, const CacheLengths& l) const override { return can_claim(l); }
  void resume(GroupTable& t, int64_t n, const CacheLengths& l) override {
    drop_after(t, n);
    slide(t, n);
    t.n_published = std::min(t.n_published, n / kBlockTokens);
    claim(t, l);
  }
  bool can_fork(const GroupTable& parent, int64_t n, const CacheLengths& child) const override {
    return holds(parent, n) && can_claim(child);
  }
  void fork(const GroupTable& parent, GroupTable& t, int64_t n, const CacheLengths& child) override {
    share(parent, t, first_seen(n), n);
    claim(t, child);
  }

  bool can_extend(const GroupTable& t, const CacheLengths& l, int64_t n, int64_t) const override {
    const int64_t more = missing(t, l.computed + n);
    return size_of(t) - t.begin + more <= t.most && pool_.available() >= more + shares_next(t, l.computed);
  }
  bool extend(GroupTable& t, const CacheLengths& l, int64_t n, int64_t) override {
    if (!can_extend(t, l, n, 0)) return false;
    make_room(t, l.computed, l.computed + n);
    return true;
  }
  int64_t rollback(GroupTable& t, int64_t n) override { return t.begin <= first_seen(n) ? n : 0; }
  void cut(GroupTable& t, int64_t n) override {
    drop_after(t, n);
    t.n_published = std::min(t.n_published, n / kBlockTokens);
  }
  void trim(GroupTable& t, const CacheLengths& l) override {
    drop_after(t, l.known);
    slide(t, l.computed);
  }
  void retire(GroupTable& t) override {
    claimed_ -= t.most;
    t.most = 0;
  }
  void release(GroupTable& t) override {
    claimed_ -= t.most;
    release_all(t);
  }

 private:
  // The first block that the query at `position` sees.
  int64_t first_seen(int64_t position) const { return std::max<int64_t>(0, position - window_ + 1) / kBlockTokens; }
  void slide(GroupTable& t, int64_t computed) {
    for (; t.begin < first_seen(computed); ++t.begin) {
      pool_.release(std::exchange(t.blocks[t.begin], kNoBlock));
    }
  }
  int64_t claim_of(const CacheLengths& l) const {
    return std::min<int64_t>({pool_.stats().total, blocks_touched(window_ - 1 + max_chunk_), blocks_for(l.longest)});
  }
  bool can_claim(const CacheLengths& l) const { return claimed_ + claim_of(l) <= pool_.stats().total; }
  void claim(GroupTable& t, const CacheLengths& l) {
    t.most = claim_of(l);
    claimed_ += t.most;
  }

  const int64_t window_, max_chunk_;
  int64_t claimed_ = 0;  // reserved blocks, all sequences together
};

class StatePolicy final : public CachePolicy {
 public:
  using CachePolicy::CachePolicy;

  int64_t max_tokens() const override { return std::numeric_limits<int64_t>::max(); }
  int64_t fit_chunk(const GroupTable&, const CacheLengths& l, int64_t n) const override {
    if (!l.publishes) return n;
    const int64_t end = l.computed + n;
    const int64_t border = std::min(end, l.prompt) / kBlockTokens * kBlockTokens;
    return border > l.computed ? border - l.computed : n;
  }

  int64_t longest_hit(std::span<const PrefixKey> keys) const override {
    size_t n = keys.size();
    while (n > 0 && !pool_.find(keys[n - 1])) --n;
    return static_cast<int64_t>(n);
  }
  std::vector<BlockId> hit_blocks(std::span<const PrefixKey> keys) const override {
    if (keys.empty()) return {};
    return {pool_.find(keys.back()).value()};
  }
  bool can_start(std::span<const BlockId>, int64_t, const CacheLengths&) const override {
    return pool_.available() > 0;
  }
  void start(GroupTable& t, std::vector<BlockId> hit, int64_t n_hit, const CacheLengths&) override {
    if (!hit.empty()) pool_.retain(hit[0]);
    if (const auto slot = pool_.allocate()) {
      t.blocks = {*slot};
      if (!hit.empty()) {
        copy(hit[0], *slot);
        pool_.release(hit[0]);
      }
    } else {  // the checkpoint is the last free slot
      pool_.make_writable(hit[0]);
      t.blocks = {hit[0]};
    }
    t.state_end = n_hit * kBlockTokens;
  }

  bool holds(const GroupTable& t, int64_t n) const override { return t.state_end == n; }
  bool can_resume(const GroupTable&, int64_t, const CacheLengths&) const override { return true; }
  void resume(GroupTable&, int64_t, const CacheLengths&) override {}
  bool can_fork(const GroupTable& parent, int64_t n, const CacheLengths&) const override {
    return holds(parent, n) && pool_.available() > 0;
  }
  void fork(const GroupTable& parent, GroupTable& t, int64_t n, const CacheLengths&) override {
    t.blocks = {pool_.allocate().value()};
    t.state_end = n;
    copy(parent.blocks[0], t.blocks[0]);
  }

  bool can_extend(const GroupTable& t, const CacheLengths&, int64_t, int64_t n_drafts) const override {
    return n_drafts == 0 || t.saved != kNoBlock || pool_.available() > 0;
  }
  bool extend(GroupTable& t, const CacheLengths& l, int64_t n, int64_t n_drafts) override {
    if (!can_extend(t, l, n, n_drafts)) return false;
    if (n_drafts > 0 && t.saved == kNoBlock) {
      t.saved = pool_.allocate().value();
      t.saved_end = l.computed;
      copy(t.blocks[0], t.saved);
    }
    t.state_end = l.computed + n;
    return true;
  }
  int64_t rollback(GroupTable& t, int64_t n) override {
    if (t.state_end > n && t.saved != kNoBlock && t.saved_end <= n) {
      copy(t.saved, t.blocks[0]);
      t.state_end = t.saved_end;
    }
    if (t.saved != kNoBlock) pool_.release(std::exchange(t.saved, kNoBlock));
    return t.state_end <= n ? t.state_end : 0;
  }
  void publish(GroupTable& t, std::span<const PrefixKey> keys, const CacheLengths& l) override {
    if (l.computed == 0 || l.computed % kBlockTokens != 0 || l.computed > l.prompt) return;
    const PrefixKey& key = keys[l.computed / kBlockTokens - 1];
    if (pool_.available() == 0 || pool_.find(key)) return;
    const BlockId checkpoint = pool_.allocate().value();
    copy(t.blocks[0], checkpoint);
    pool_.publish(checkpoint, key);
    pool_.release(checkpoint);
  }
  void trim(GroupTable&, const CacheLengths&) override {}
  void retire(GroupTable&) override {}
  void release(GroupTable& t) override {
    if (t.saved != kNoBlock) pool_.release(t.saved);
    for (const BlockId slot : t.blocks) pool_.release(slot);
    t = {};
  }
};

}  // namespace

std::unique_ptr<CachePolicy> make_cache_policy(int32_t index, const CacheGroup& group, int64_t max_chunk,
                                               std::vector<BlockCopy>& copies) {
  switch (group.kind) {
    case CacheKind::kFull:
    case CacheKind::kLatent:
      return std::make_unique<FullPolicy>(index, group.n_blocks, copies);
    case CacheKind::kWindow:
      if (group.window < 1) {
        throw Error(ErrorCode::kInvalidArgument,
                    expected_found("cache", concat("group ", index), "a window of at least 1 position", group.window));
      }
      return std::make_unique<WindowPolicy>(index, group, max_chunk, copies);
    case CacheKind::kState:
      return std::make_unique<StatePolicy>(index, group.n_blocks, copies);
  }
  throw Error(ErrorCode::kInvalidArgument, expected_found("cache", concat("group ", index), "a known kind", "another"));
}

}  // namespace infer
