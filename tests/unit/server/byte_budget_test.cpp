// Bytes that requests may hold together.
#include "src/server/byte_budget.h"

#include <doctest/doctest.h>

#include <thread>

namespace infer {
namespace {

using std::chrono::milliseconds;

TEST_CASE("byte budget: shares are taken and given back") {
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

TEST_CASE("byte budget: whoever is alone may have more than there is") {
  ByteBudget budget(100);
  ByteBudget::Share a(budget), b(budget);
  CHECK(a.try_grow(500));
  CHECK(a.try_grow(500));
  CHECK(!b.try_grow(1));
  a.release();
  CHECK(b.try_grow(1));
  CHECK(!a.try_grow(500));
}

TEST_CASE("byte budget: who waits gets what others give back") {
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
