#include "backends/cpu/thread_pool.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using infer::cpu::ThreadPool;

TEST_CASE("thread pool: every piece runs exactly once, on a thread of the pool") {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const int64_t pieces : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> count(static_cast<size_t>(pieces));
      std::atomic<int> outside{0};
      pool.run(pieces, [&](int64_t piece, int thread) {
        ++count[static_cast<size_t>(piece)];
        if (thread < 0 || thread >= threads) ++outside;
      });
      CHECK(outside == 0);
      int wrong = 0;
      for (const auto& c : count) wrong += c != 1;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("thread pool: a negative number of pieces runs none") {
  ThreadPool pool(2);
  pool.run(-3, [](int64_t, int) { FAIL("called"); });
}

TEST_CASE("thread pool: no two pieces run with the same thread number at once") {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 200; ++round) {
    pool.run(16, [&](int64_t, int thread) {
      if (inside[static_cast<size_t>(thread)].fetch_add(1) != 0) ++clashes;
      inside[static_cast<size_t>(thread)].fetch_sub(1);
    });
  }
  CHECK(clashes == 0);
}

TEST_CASE("thread pool: writes of the pieces are visible when run returns") {
  ThreadPool pool(3);
  std::vector<int64_t> values(100);
  for (int64_t round = 1; round <= 300; ++round) {
    pool.run(100, [&](int64_t piece, int) { values[static_cast<size_t>(piece)] += piece * round; });
    int64_t sum = 0;
    for (const int64_t v : values) sum += v;
    REQUIRE(sum == 99 * 100 / 2 * (round * (round + 1) / 2));
  }
}

TEST_CASE("thread pool: many short loops, with pauses in which the workers fall asleep") {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  for (int round = 0; round < 3000; ++round) {
    pool.run(1 + round % 5, [&](int64_t, int) { ++total; });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  CHECK(total == 3000 / 5 * (1 + 2 + 3 + 4 + 5));
}

TEST_CASE("thread pool: run rethrows an exception, and the pool still works") {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const int64_t bad : {0, 5, 99}) {
      std::string message;
      try {
        pool.run(100, [&](int64_t piece, int) {
          if (piece == bad) throw std::runtime_error("piece " + std::to_string(piece));
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK(message == "piece " + std::to_string(bad));
      std::atomic<int> after{0};
      pool.run(50, [&](int64_t, int) { ++after; });
      CHECK(after == 50);
    }
  }
}

TEST_CASE("thread pool: when every piece throws, one exception is rethrown") {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    CHECK_THROWS_AS(pool.run(20, [](int64_t, int) { throw std::logic_error("each"); }), std::logic_error);
  }
  std::atomic<int> after{0};
  pool.run(7, [&](int64_t, int) { ++after; });
  CHECK(after == 7);
}

TEST_CASE("thread pool: pools end at once, whether used or not, awake or asleep") {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(1 + round % 4);
    if (round % 3 == 0) pool.run(3, [](int64_t, int) {});
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_CASE("thread pool: pools inside pieces of another pool") {
  ThreadPool outer(3);
  std::atomic<int> total{0};
  outer.run(6, [&](int64_t piece, int) {
    ThreadPool inner(1 + static_cast<int>(piece) % 3);
    inner.run(10 * (piece + 1), [&](int64_t, int) { ++total; });
  });
  CHECK(total == 10 * (1 + 2 + 3 + 4 + 5 + 6));
}

TEST_CASE("thread pool: loops use the current number of threads, whatever earlier loops used") {
  ThreadPool pool(4);
  for (int round = 0; round < 400; ++round) {
    const int threads = 1 + round * 7 % 4;
    pool.use_threads(threads);
    std::atomic<int> outside{0}, done{0};
    pool.run(24, [&](int64_t, int thread) {
      ++done;
      if (thread >= threads) ++outside;
    });
    REQUIRE(done == 24);
    REQUIRE(outside == 0);
  }
}

TEST_CASE("thread pool: threads are pinned as requested") {
  const int here = sched_getcpu();
  ThreadPool pool(3, {here});
  std::atomic<int> elsewhere{0};
  for (int round = 0; round < 20; ++round) {
    pool.run(64, [&](int64_t, int thread) {
      if (thread > 0 && sched_getcpu() != here) ++elsewhere;
    });
  }
  CHECK(elsewhere == 0);
}

TEST_CASE("thread pool: a thread takes its own pieces in order, and those of others from the end") {
  ThreadPool pool(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<int64_t>> taken(3);
    pool.run(48, [&](int64_t piece, int thread) { taken[static_cast<size_t>(thread)].push_back(piece); });
    for (int thread = 0; thread < 3; ++thread) {
      std::vector<int64_t> last = {48, 48, 48};  // taken from each part
      int64_t next = pool.first_piece(48, thread);
      CHECK(next == 16 * thread);
      for (const int64_t piece : taken[static_cast<size_t>(thread)]) {
        const auto part = static_cast<size_t>(piece / 16);
        if (part == static_cast<size_t>(thread)) {
          REQUIRE(piece == next++);
        } else {
          REQUIRE(piece < last[part]);
          last[part] = piece;
        }
      }
    }
  }
}

// The thread that begins first is held up until the other has done the rest, however the system schedules them.
TEST_CASE("thread pool: a thread that is held up keeps only the piece it has") {
  ThreadPool pool(2);
  std::atomic<int> done{0}, held{-1};
  std::array<std::atomic<int>, 2> taken{};
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(5);  // if the pool never steals
  pool.run(32, [&](int64_t, int thread) {
    ++taken[static_cast<size_t>(thread)];
    int nobody = -1;
    const bool first = held.compare_exchange_strong(nobody, thread);
    while (first && done < 31 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    ++done;
  });
  CHECK(done == 32);
  CHECK(taken[static_cast<size_t>(held.load())] == 1);
}
