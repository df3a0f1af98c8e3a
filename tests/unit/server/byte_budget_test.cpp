// The limit on bytes that all requests hold together.
#include "src/server/byte_budget.h"

#include <doctest/doctest.h>

#include <thread>

namespace infer {
namespace {

using std::chrono::milliseconds;

TEST_CASE("byte budget: shares are acquired and released") {
  ByteBudget budget(100);
  ByteBudget::Share a(budget), b(budget);
  CHECK(a.try_grow(60));
  CHECK(b.try_grow(30));
  CHECK(!b.try_grow(20));
  CHECK(b.try_grow(10));
  CHECK(!a.grow(1, milliseconds(1)));
  b.release();
  CHECK(a.try_grow(40));
  {
    const ByteBudget::Share moved = std::move(a);
    CHECK(!b.try_grow(1));
  }
  CHECK(b.try_grow(100));
}

TEST_CASE("byte budget: a single holder may exceed the budget") {
  ByteBudget budget(100);
  ByteBudget::Share a(budget), b(budget);
  CHECK(a.try_grow(500));
  CHECK(a.try_grow(500));
  CHECK(!b.try_grow(1));
  a.release();
  CHECK(b.try_grow(1));
  CHECK(!a.try_grow(500));
}

TEST_CASE("byte budget: a waiter gets what others release") {
  ByteBudget budget(100);
  ByteBudget::Share a(budget);
  CHECK(a.try_grow(100));
  std::thread waiting([&] {
    ByteBudget::Share b(budget);
    while (!b.grow(50, milliseconds(10))) {
    }
  });
  a.release();
  waiting.join();
  CHECK(a.try_grow(100));
}

}  // namespace
}  // namespace infer
