#include "src/engine/kv_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/step_inputs.h"  // kMaxCacheGroups
#include "src/engine/sequence.h"

namespace infer {

KvCache::KvCache(std::vector<CacheGroup> groups, int64_t max_chunk, PrefixHasher hasher)
    : groups_(std::move(groups)), max_chunk_(max_chunk), hasher_(hasher) {
  if (groups_.empty() || groups_.size() > kMaxCacheGroups) {
    throw Error(ErrorCode::kInvalidArgument,
                expected_found("cache", concat("1 to ", kMaxCacheGroups, " cache groups"), groups_.size()));
  }
  policies_ = make_policies();
}

KvCache::Policies KvCache::make_policies() {
  Policies policies;
  for (size_t g = 0; g < groups_.size(); ++g) {
    policies.push_back(make_cache_policy(static_cast<int32_t>(g), groups_[g], max_chunk_, copies_));
  }
  return policies;
}

void KvCache::reset() {
  policies_ = make_policies();
  copies_.clear();
  retained_.clear();
}

int64_t KvCache::max_tokens() const {
  int64_t most = std::numeric_limits<int64_t>::max();
  for (const auto& policy : policies_) most = std::min(most, policy->max_tokens());
  return most;
}

CacheLengths KvCache::lengths(const Sequence& s) {
  return {s.prompt_length(), s.known(), s.computed(), s.max_known(), s.request().reuse_prefix};
}

void KvCache::extend_keys(Sequence& s, int64_t n_blocks) const {
  std::vector<PrefixKey>& keys = s.cache().keys_;
  while (static_cast<int64_t>(keys.size()) < n_blocks) {
    const PrefixKey previous = keys.empty() ? hasher_.root(s.request().cache_salt) : keys.back();
    keys.push_back(hasher_.next(previous, s.known_tokens().subspan(keys.size() * kBlockTokens, kBlockTokens)));
  }
}

int64_t KvCache::match_prefix(Sequence& s) const {
  if (!s.request().takes_cached_blocks()) return 0;
  int64_t n_hit = (s.known() - 1) / kBlockTokens;
  extend_keys(s, n_hit);
  const std::span<const PrefixKey> keys = s.cache().keys_;
  // A group that can serve less shortens the hit for all; a group that could serve the longer hit may not serve the
  // shorter one. So repeat until all agree.
  for (size_t n_agreed = 0, g = 0; n_agreed < policies_.size(); g = (g + 1) % policies_.size()) {
    const int64_t found = policies_[g]->longest_hit(keys.first(n_hit));
    n_agreed = found == n_hit ? n_agreed + 1 : 1;
    n_hit = found;
  }
  return n_hit * kBlockTokens;
}

std::optional<int64_t> KvCache::start(Sequence& s) {
  const int64_t n_cached = match_prefix(s), n_hit = n_cached / kBlockTokens;
  if (const auto i = find_retained(s); i && s.request().takes_cached_blocks()) {
    const int64_t n = match_retained(s, retained_[*i]);
    if (n > n_cached) return resume(s, *i, n) ? std::optional(n) : std::nullopt;
  }
  const CacheLengths l = lengths(s);
  std::vector<std::vector<BlockId>> hits;
  for (const auto& policy : policies_) {
    hits.push_back(policy->hit_blocks(std::span<const PrefixKey>(s.cache().keys_).first(n_hit)));
    if (!policy->can_start(hits.back(), n_hit, l)) return std::nullopt;
  }
  s.cache().tables_.resize(policies_.size());
  for (size_t g = 0; g < policies_.size(); ++g) {
    policies_[g]->start(s.cache().tables_[g], std::move(hits[g]), n_hit, l);
  }
  return n_cached;
}

std::optional<size_t> KvCache::find_retained(const Sequence& s) const {
  const Request& request = s.request();
  if (request.conversation == 0) return std::nullopt;
  for (size_t i = 0; i < retained_.size(); ++i) {
    if (retained_[i].conversation == request.conversation && retained_[i].cache_salt == request.cache_salt) return i;
  }
  return std::nullopt;
}

int64_t KvCache::match_retained(const Sequence& s, const RetainedConversation& retained) const {
  const auto known = s.known_tokens().first(s.known() - 1);
  const auto end = std::mismatch(known.begin(), known.end(), retained.tokens.begin(), retained.tokens.end()).first;
  const int64_t n = end - known.begin();
  for (size_t g = 0; g < policies_.size(); ++g) {
    if (!policies_[g]->holds(retained.tables[g], n)) return 0;
  }
  return n;
}

bool KvCache::resume(Sequence& s, size_t i, int64_t n) {
  const CacheLengths l = lengths(s);
  for (size_t g = 0; g < policies_.size(); ++g) {
    if (!policies_[g]->can_resume(retained_[i].tables[g], n, l)) return false;
  }
  s.cache().tables_ = std::move(retained_[i].tables);
  retained_.erase(retained_.begin() + static_cast<std::ptrdiff_t>(i));
  for (size_t g = 0; g < policies_.size(); ++g) policies_[g]->resume(s.cache().tables_[g], n, l);
  return true;
}

bool KvCache::fork(const Sequence& parent, Sequence& child, int64_t n) {
  const std::vector<GroupTable>& from = parent.cache().tables_;
  const CacheLengths l = lengths(child);
  if (from.empty()) return false;
  for (size_t g = 0; g < policies_.size(); ++g) {
    if (!policies_[g]->can_fork(from[g], n, l)) return false;
  }
  SequenceCache& to = child.cache();
  to.tables_.resize(policies_.size());
  for (size_t g = 0; g < policies_.size(); ++g) policies_[g]->fork(from[g], to.tables_[g], n, l);
  const std::vector<PrefixKey>& keys = parent.cache().keys_;
  to.keys_.assign(keys.begin(), keys.begin() + std::min<std::ptrdiff_t>(std::ssize(keys), n / kBlockTokens));
  return true;
}

int64_t KvCache::fit_chunk(const Sequence& s, int64_t n) const {
  const CacheLengths l = lengths(s);
  for (size_t g = 0; g < policies_.size(); ++g) n = policies_[g]->fit_chunk(s.cache().tables_[g], l, n);
  return n;
}

bool KvCache::allocate(Sequence& s, int64_t n, int64_t n_drafts) {
  const CacheLengths l = lengths(s);
  std::vector<GroupTable>& tables = s.cache().tables_;
  if (policies_.size() == 1) return policies_[0]->extend(tables[0], l, n, n_drafts);
  for (size_t g = 0; g < policies_.size(); ++g) {
    if (!policies_[g]->can_extend(tables[g], l, n, n_drafts)) return false;
  }
  for (size_t g = 0; g < policies_.size(); ++g) policies_[g]->extend(tables[g], l, n, n_drafts);
  return true;
}

std::vector<BlockCopy> KvCache::take_copies() { return std::exchange(copies_, {}); }

int64_t KvCache::rollback(Sequence& s, int64_t n) {
  // If one group has to go back further, the others must follow; repeat until all agree.
  for (size_t n_agreed = 0, g = 0; n_agreed < policies_.size(); g = (g + 1) % policies_.size()) {
    const int64_t valid = policies_[g]->rollback(s.cache().tables_[g], n);
    n_agreed = valid == n ? n_agreed + 1 : 1;
    n = valid;
  }
  return n;
}

int64_t KvCache::truncate(Sequence& s, int64_t n) {
  SequenceCache& cache = s.cache();
  cache.keys_.resize(std::min(cache.keys_.size(), static_cast<size_t>(n / kBlockTokens)));
  const int64_t valid = cache.tables_.empty() ? 0 : rollback(s, std::min(n, s.computed()));
  for (size_t g = 0; g < cache.tables_.size(); ++g) policies_[g]->cut(cache.tables_[g], valid);
  cache.n_publishable_ = std::min(cache.n_publishable_, valid / kBlockTokens);
  return valid;
}

void KvCache::publish(Sequence& s) {
  const int64_t n_full = s.computed() / kBlockTokens;
  if (n_full <= s.cache().n_publishable_ || !s.request().reuse_prefix) return;
  s.cache().n_publishable_ = n_full;
  const CacheLengths l = lengths(s);
  extend_keys(s, n_full);
  const auto keys = std::span<const PrefixKey>(s.cache().keys_).first(n_full);
  for (size_t g = 0; g < policies_.size(); ++g) policies_[g]->publish(s.cache().tables_[g], keys, l);
}

void KvCache::trim(Sequence& s) {
  for (size_t g = 0; g < policies_.size(); ++g) {
    GroupTable& table = s.cache().tables_[g];
    // Other groups have blocks to release only after drafts. This runs for every decode of every step.
    if (groups_[g].kind == CacheKind::kWindow || std::ssize(table.blocks) > blocks_for(s.known())) {
      policies_[g]->trim(table, lengths(s));
    }
  }
}

void KvCache::release(Sequence& s) {
  std::vector<GroupTable>& tables = s.cache().tables_;
  for (size_t g = 0; g < tables.size(); ++g) policies_[g]->release(tables[g]);
  tables.clear();
  s.cache().n_publishable_ = 0;
}

void KvCache::retain(Sequence& s) {
  if (const auto before = find_retained(s)) release_retained(*before);
  const int64_t n = rollback(s, std::min(s.computed(), s.known()));
  if (n == 0) return release(s);
  const auto tokens = s.tokens().first(n);
  CacheLengths l = lengths(s);
  l.computed = l.known = n;
  RetainedConversation& kept = retained_.emplace_back(
      RetainedConversation{s.request().conversation, s.request().cache_salt, {tokens.begin(), tokens.end()}, {}});
  kept.tables = std::exchange(s.cache().tables_, {});
  for (size_t g = 0; g < policies_.size(); ++g) {
    policies_[g]->trim(kept.tables[g], l);
    policies_[g]->retire(kept.tables[g]);
  }
}

void KvCache::release_retained(size_t i) {
  for (size_t g = 0; g < policies_.size(); ++g) policies_[g]->release(retained_[i].tables[g]);
  retained_.erase(retained_.begin() + static_cast<std::ptrdiff_t>(i));
}

bool KvCache::evict_retained() {
  if (retained_.empty()) return false;
  release_retained(0);
  return true;
}

void KvCache::forget(uint64_t conversation) {
  for (size_t i = retained_.size(); i-- > 0;) {
    if (retained_[i].conversation == conversation) release_retained(i);
  }
}

}  // namespace infer
