// Who enters and who is sent away.
#include "src/server/admission.h"

#include <doctest/doctest.h>

#include <optional>
#include <random>
#include <vector>

#include "src/server/api_error.h"

namespace infer {
namespace {

std::string refusal(Admission& admission, int64_t sequences, int64_t tokens) {
  try {
    admission.enter(sequences, tokens);
  } catch (const ApiError& error) {
    CHECK(error.status() == 429);
    CHECK(error.retry_after >= 1);
    CHECK(error.retry_after <= 60);
    return error.code();
  }
  return "";
}

TEST_CASE("admission: sequences") {
  Admission admission({2, 3, 1000, 0});
  std::vector<Admission::Ticket> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(admission.enter(1, 1));
  CHECK(refusal(admission, 1, 1) == "queue_full");
  CHECK(admission.in_flight() == 5);
  tickets[0].release();
  tickets[0].release();
  CHECK(admission.in_flight() == 4);
  CHECK(refusal(admission, 2, 1) == "queue_full");
  CHECK(refusal(admission, 1, 1) == "");
  tickets.clear();
  CHECK(admission.in_flight() == 0);
}

TEST_CASE("admission: a request that is larger than everything enters alone") {
  Admission admission({2, 3, 10, 0});
  Admission::Ticket large = admission.enter(8, 1000);
  CHECK(refusal(admission, 1, 1) == "queue_full");
}

TEST_CASE("admission: tokens wait until their prompt starts") {
  Admission admission({4, 4, 100, 0});
  Admission::Ticket first = admission.enter(1, 80);
  CHECK(refusal(admission, 1, 30) == "queue_tokens_full");
  CHECK(refusal(admission, 1, 20) == "");
  first.started();
  first.started();
  Admission::Ticket second = admission.enter(1, 30);
  CHECK(refusal(admission, 1, 71) == "queue_tokens_full");
  Admission::Ticket moved = std::move(second);
  moved.release();
  CHECK(refusal(admission, 1, 71) == "");
}

TEST_CASE("admission: requests of a key") {
  Admission admission({4, 4, 100, 2});
  Admission::KeySlot one = admission.enter_key("a");
  std::optional<Admission::KeySlot> two = admission.enter_key("a");
  CHECK_THROWS_AS(admission.enter_key("a"), ApiError);
  Admission::KeySlot other = admission.enter_key("b");
  two.reset();
  CHECK_NOTHROW(admission.enter_key("a"));
  Admission unlimited({4, 4, 100, 0});
  std::vector<Admission::KeySlot> many;
  for (int i = 0; i < 100; ++i) many.push_back(unlimited.enter_key("a"));
}

TEST_CASE("admission: any order of coming and going ends where it began") {
  std::mt19937 random(3);
  Admission admission({4, 8, 200, 0});
  std::vector<Admission::Ticket> inside;
  int64_t sequences = 0;
  std::vector<int64_t> sizes;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 2 == 0) {
      const int64_t n = 1 + random() % 3, tokens = 1 + random() % 60;
      try {
        inside.push_back(admission.enter(n, tokens));
        sizes.push_back(n);
        sequences += n;
      } catch (const ApiError&) {
        CHECK(!inside.empty());
      }
    } else if (!inside.empty()) {
      const size_t which = random() % inside.size();
      if (random() % 2 == 0) inside[which].started();
      sequences -= sizes[which];
      inside.erase(inside.begin() + static_cast<std::ptrdiff_t>(which));
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(which));
    }
    REQUIRE(admission.in_flight() == sequences);
    REQUIRE(sequences <= 12);
  }
  inside.clear();
  CHECK(admission.in_flight() == 0);
  // No token is left waiting: the largest allowed prompt enters beside another.
  const Admission::Ticket small = admission.enter(1, 1);
  CHECK_NOTHROW(admission.enter(1, 199));
}

}  // namespace
}  // namespace infer
