// Properties of the block pool, each named by a test, and a random driver against a naive pool.
#include "src/engine/block_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ggml-like/error.h"

using namespace infer;

namespace {

PrefixKey key(uint64_t n) { return {n, ~n}; }

std::vector<BlockId> allocate(BlockPool& pool, int n) {
  std::vector<BlockId> blocks;
  for (int i = 0; i < n; ++i) blocks.push_back(pool.allocate().value());
  return blocks;
}

// The definition: a list of states, searched linearly for the least recently used block.
struct NaivePool {
  struct Block {
    int references = 0;
    std::optional<uint64_t> published;
    int64_t released_at = 0;
  };
  std::vector<Block> blocks;
  int64_t clock = 0;

  bool cached(const Block& b) const { return b.references == 0 && b.published; }
  bool free(const Block& b) const { return b.references == 0 && !b.published; }
  int count(bool (NaivePool::*is)(const Block&) const) const {
    return static_cast<int>(
        std::count_if(blocks.begin(), blocks.end(), [&](const Block& b) { return (this->*is)(b); }));
  }
  int find(uint64_t k) const {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].published == k) return static_cast<int>(i);
    }
    return -1;
  }
  int oldest_cached() const {
    int oldest = -1;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (cached(blocks[i]) && (oldest < 0 || blocks[i].released_at < blocks[oldest].released_at))
        oldest = static_cast<int>(i);
    }
    return oldest;
  }
  void release(int b) {
    if (--blocks[b].references == 0) blocks[b].released_at = ++clock;
  }
};

}  // namespace

TEST_CASE("allocation_fails_cleanly_when_all_is_in_use") {
  BlockPool pool(3);
  const auto blocks = allocate(pool, 3);
  CHECK(std::set(blocks.begin(), blocks.end()) == std::set<BlockId>{0, 1, 2});
  CHECK_FALSE(pool.allocate());
  CHECK(pool.available() == 0);
  pool.release(blocks[1]);
  CHECK(pool.allocate() == blocks[1]);
  CHECK_THROWS_WITH_AS(BlockPool(0), "[cache] expected at least 1 block, found 0", Error);
}

TEST_CASE("references_keep_a_block_in_use") {
  BlockPool pool(1);
  const BlockId block = pool.allocate().value();
  CHECK(pool.writable(block));
  pool.retain(block);
  CHECK_FALSE(pool.writable(block));
  pool.release(block);
  CHECK(pool.writable(block));
  CHECK(pool.stats().used == 1);
  pool.release(block);
  CHECK(pool.stats().free == 1);
}

TEST_CASE("prefix_cache_reuse_after_free") {
  BlockPool pool(4);
  const auto blocks = allocate(pool, 2);
  CHECK(pool.publish(blocks[0], key(1)) == blocks[0]);
  CHECK(pool.publish(blocks[1], key(2)) == blocks[1]);
  pool.release(blocks[1]);
  pool.release(blocks[0]);
  CHECK(pool.stats().cached == 2);
  const std::vector<PrefixKey> keys = {key(1), key(2), key(3)};
  CHECK(pool.find_prefix(keys) == blocks);
  pool.retain(blocks[0]);
  CHECK(pool.stats().used == 1);
  CHECK_FALSE(pool.writable(blocks[0]));  // published content must not be written
  CHECK(pool.find(key(1)) == blocks[0]);  // but is shared while in use
}

TEST_CASE("prefix_stops_at_the_first_missing_block") {
  BlockPool pool(4);
  const auto blocks = allocate(pool, 2);
  pool.publish(blocks[0], key(1));
  pool.publish(blocks[1], key(3));
  CHECK(pool.find_prefix(std::vector{key(1), key(2), key(3)}) == std::vector{blocks[0]});
  CHECK(pool.find_prefix(std::vector{key(2), key(3)}).empty());
}

TEST_CASE("eviction_on_reallocation") {
  BlockPool pool(2);
  const auto blocks = allocate(pool, 2);
  pool.publish(blocks[0], key(1));
  pool.publish(blocks[1], key(2));
  pool.release(blocks[1]);
  pool.release(blocks[0]);
  CHECK(pool.allocate() == blocks[1]);  // released first
  CHECK_FALSE(pool.find(key(2)));
  CHECK(pool.find(key(1)) == blocks[0]);
  CHECK(pool.writable(blocks[1]));
  CHECK(pool.stats().evictions == 1);
}

TEST_CASE("reuse_makes_a_block_the_most_recently_used") {
  BlockPool pool(2);
  const auto blocks = allocate(pool, 2);
  for (int i = 0; i < 2; ++i) pool.publish(blocks[i], key(i));
  for (int i = 0; i < 2; ++i) pool.release(blocks[i]);
  pool.retain(blocks[0]);
  pool.release(blocks[0]);
  CHECK(pool.allocate() == blocks[1]);
}

TEST_CASE("free_blocks_go_before_cached_ones") {
  BlockPool pool(2);
  const auto blocks = allocate(pool, 2);
  pool.publish(blocks[0], key(1));
  pool.release(blocks[0]);
  pool.release(blocks[1]);
  CHECK(pool.allocate() == blocks[1]);
  CHECK(pool.stats().evictions == 0);
}

TEST_CASE("content_published_twice_becomes_one_block") {
  BlockPool pool(3);
  const auto blocks = allocate(pool, 2);
  CHECK(pool.publish(blocks[0], key(1)) == blocks[0]);
  CHECK(pool.publish(blocks[1], key(1)) == blocks[0]);
  CHECK(pool.references(blocks[0]) == 2);
  CHECK(pool.references(blocks[1]) == 0);
  CHECK(pool.stats().free == 2);
}

TEST_CASE("make_writable_withdraws_the_content") {
  BlockPool pool(1);
  const BlockId block = pool.allocate().value();
  pool.publish(block, key(1));
  pool.make_writable(block);
  CHECK(pool.writable(block));
  CHECK_FALSE(pool.find(key(1)));
  pool.make_writable(block);
  pool.release(block);
  CHECK(pool.stats().free == 1);
}

namespace {

// Performs the same random actions on a pool and a naive pool, and compares them.
struct RandomDriver {
  static constexpr int n = 12;
  std::mt19937 random{1};
  BlockPool pool{n};
  NaivePool naive{std::vector<NaivePool::Block>(n), 0};
  int allocations_failed = 0, duplicates = 0;

  // A random block that qualifies, or -1.
  template <typename Accept>
  int pick(Accept accept) {
    std::vector<int> all;
    for (int i = 0; i < n; ++i) {
      if (accept(naive.blocks[i])) all.push_back(i);
    }
    return all.empty() ? -1 : all[random() % all.size()];
  }

  void allocate() {
    const int n_free = naive.count(&NaivePool::free), oldest = naive.oldest_cached();
    const auto block = pool.allocate();
    REQUIRE(block.has_value() == (n_free > 0 || oldest >= 0));
    if (!block) {
      ++allocations_failed;
      return;
    }
    if (n_free > 0) REQUIRE(naive.free(naive.blocks[*block]));
    else REQUIRE(*block == oldest);
    naive.blocks[*block] = {1, std::nullopt, 0};
  }

  void retain() {
    const int block = pick([](auto& b) { return b.references > 0 || b.published; });
    if (block < 0) return;
    pool.retain(block);
    ++naive.blocks[block].references;
  }

  void release() {
    const int block = pick([](auto& b) { return b.references > 0; });
    if (block < 0) return;
    pool.release(block);
    naive.release(block);
  }

  void publish() {
    const int block = pick([](auto& b) { return b.references > 0 && !b.published; });
    if (block < 0) return;
    const uint64_t k = random() % 16;
    const int present = naive.find(k);
    const BlockId held = pool.publish(block, key(k));
    if (present < 0) {
      REQUIRE(held == block);
      naive.blocks[block].published = k;
    } else {
      ++duplicates;
      REQUIRE(held == present);
      ++naive.blocks[present].references;
      naive.release(block);
    }
  }

  void compare() {
    const auto stats = pool.stats();
    REQUIRE(stats.cached == naive.count(&NaivePool::cached));
    REQUIRE(stats.free == naive.count(&NaivePool::free));
    REQUIRE(stats.used + stats.cached + stats.free == n);
    const uint64_t k = random() % 16;
    REQUIRE(pool.find(key(k)).value_or(-1) == naive.find(k));
    const int b = static_cast<int>(random() % n);
    REQUIRE(pool.references(b) == naive.blocks[b].references);
    REQUIRE(pool.writable(b) == (naive.blocks[b].references == 1 && !naive.blocks[b].published));
  }
};

}  // namespace

TEST_CASE("random_driver_against_a_naive_pool") {
  RandomDriver driver;
  for (int step = 0; step < 100000; ++step) {
    const uint32_t action = driver.random() % 8;
    if (action < 3) driver.allocate();
    else if (action == 3) driver.retain();
    else if (action < 7) driver.release();
    else driver.publish();
    driver.compare();
  }
  CHECK(driver.allocations_failed > 100);
  CHECK(driver.duplicates > 100);
  CHECK(driver.pool.stats().evictions > 100);
}
