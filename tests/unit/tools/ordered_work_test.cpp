// Tasks on several threads with results in order.
#include "tools/quantize/ordered_work.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

using namespace infer;

TEST_CASE("ordered work: every result once, in order, with any number of threads") {
  for (const int n_threads : {1, 2, 7}) {
    for (const size_t n_tasks : {size_t{0}, size_t{1}, size_t{3}, size_t{500}}) {
      CAPTURE(n_threads);
      CAPTURE(n_tasks);
      std::atomic<int> at_once{0}, most{0};
      OrderedWork<size_t> work(n_threads, n_tasks, [&](size_t task, size_t& result) {
        most = std::max(most.load(), ++at_once);
        if (task % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // others overtake
        result = task * task;
        --at_once;
      });
      for (size_t i = 0; i < n_tasks; ++i) {
        const size_t* result = work.next();
        REQUIRE(result != nullptr);
        REQUIRE(*result == i * i);
      }
      CHECK(work.next() == nullptr);
      CHECK(most <= n_threads);
    }
  }
}

TEST_CASE("ordered work: a result is valid until the next is requested, and few exist at a time") {
  std::atomic<size_t> started{0};
  OrderedWork<std::string> work(2, 100, [&](size_t task, std::string& result) {
    ++started;
    result = std::to_string(task);
  });
  for (size_t i = 0; i < 100; ++i) {
    const std::string* result = work.next();
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // time to overwrite it
    CHECK(*result == std::to_string(i));
    CHECK(started <= i + 5);
  }
}

TEST_CASE("ordered work: the first failure in order is reported") {
  for (int repeat = 0; repeat < 20; ++repeat) {
    OrderedWork<int> work(4, 100, [&](size_t task, int&) {
      if (task == 7) std::this_thread::sleep_for(std::chrono::microseconds(500));  // later ones fail earlier
      if (task >= 7) throw std::runtime_error("task " + std::to_string(task));
    });
    for (int i = 0; i < 7; ++i) CHECK(work.next() != nullptr);
    CHECK_THROWS_WITH(work.next(), "task 7");
  }
}

TEST_CASE("ordered work: it can be abandoned at any point") {
  for (size_t n_taken = 0; n_taken < 10; ++n_taken) {
    std::atomic<size_t> started{0};
    {
      OrderedWork<int> work(3, 1000, [&](size_t, int&) { ++started; });
      for (size_t i = 0; i < n_taken; ++i) work.next();
    }
    CHECK(started <= n_taken + 7);
  }
}
