// Which requests are admitted and which are refused.
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

TEST_CASE("admission: places") {
  Admission admission({2, 3, 1000, 0});
  std::vector<std::shared_ptr<Admission::Ticket>> tickets;
  for (int i = 0; i < 5; ++i) tickets.push_back(admission.enter(1, 1));
  CHECK(refusal(admission, 1, 1) == "queue_full");
  CHECK(admission.in_flight() == 5);
  tickets[0]->finished();
  tickets[0]->finished();
  CHECK(admission.in_flight() == 4);
  CHECK(refusal(admission, 1, 1) == "");
  tickets.clear();
  CHECK(admission.in_flight() == 0);
}

TEST_CASE("admission: a request for many answers leaves a place for others and releases its own as they end") {
  Admission admission({4, 0, 1000, 0});
  const auto many = admission.enter(256, 1000);
  CHECK(many->places() == 3);
  CHECK(admission.in_flight() == 3);
  CHECK(refusal(admission, 2, 0) == "queue_full");
  many->started(1000);
  CHECK(refusal(admission, 1, 1) == "");
  for (int i = 0; i < 253; ++i) many->finished();
  CHECK(admission.in_flight() == 3);
  many->finished();
  CHECK(admission.in_flight() == 2);
  many->finished();
  many->finished();
  CHECK(admission.in_flight() == 0);
  many->finished();
  CHECK(admission.in_flight() == 0);
  CHECK(Admission({1, 0, 1, 0}).places_of(5) == 1);
  CHECK(Admission({2, 0, 1, 0}).places_of(5) == 1);
}

TEST_CASE("admission: tokens wait until their prompt starts") {
  Admission admission({4, 4, 100, 0});
  const auto first = admission.enter(1, 80);
  CHECK(refusal(admission, 1, 30) == "queue_tokens_full");
  CHECK(refusal(admission, 1, 20) == "");
  first->started(50);
  CHECK(refusal(admission, 1, 71) == "queue_tokens_full");
  first->started(30);
  first->started(30);
  auto second = admission.enter(1, 30);
  CHECK(refusal(admission, 1, 71) == "queue_tokens_full");
  second.reset();
  CHECK(refusal(admission, 1, 71) == "");
  const auto large = admission.enter(1, 1000);  // a prompt of any length may wait alone
  CHECK(refusal(admission, 1, 1) == "queue_tokens_full");
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

TEST_CASE("admission: any order of entering and leaving ends in the initial state") {
  std::mt19937 random(3);
  Admission admission({4, 8, 200, 0});
  struct Request {
    std::shared_ptr<Admission::Ticket> ticket;
    int64_t answers, tokens;
  };
  std::vector<Request> inside;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 3 == 0) {
      const int64_t n = 1 + random() % 6, tokens = 1 + random() % 60;
      try {
        inside.push_back({admission.enter(n, tokens), n, tokens});
      } catch (const ApiError&) {
        CHECK(!inside.empty());
      }
    } else if (!inside.empty()) {
      Request& one = inside[random() % inside.size()];
      if (random() % 2 == 0) one.ticket->started(1 + random() % 30);
      if (random() % 2 == 0 && one.answers > 0) one.ticket->finished(), --one.answers;
      if (random() % 8 == 0) inside.erase(inside.begin() + (&one - inside.data()));
    }
    int64_t places = 0;
    for (const Request& one : inside) places += std::min<int64_t>(one.answers, 3);
    REQUIRE(admission.in_flight() == places);
    REQUIRE(places <= 12);
  }
  inside.clear();
  CHECK(admission.in_flight() == 0);
  // No token counts as waiting any more: the largest allowed prompt is admitted along with another.
  const auto small = admission.enter(1, 1);
  CHECK_NOTHROW(admission.enter(1, 199));
}

}  // namespace
}  // namespace infer
