// Which connection is closed when all places are taken.
#include "src/server/connection_table.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace infer {
namespace {

using Phase = ConnectionTable::Phase;

// Connections are ends of socket pairs; the other end shows whether one was shut down.
class Table {
 public:
  explicit Table(size_t limit) : table(limit, std::chrono::milliseconds(20)) {}
  ~Table() {
    for (const auto& pair : pairs_) {
      close(pair[0]);
      close(pair[1]);
    }
  }
  // 0: no place.
  uint64_t add(const std::string& address) {
    std::array<int, 2> pair;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
    pairs_.push_back(pair);
    const uint64_t id = table.add(pair[0], address).value_or(0);
    ids_.push_back(id);
    return id;
  }
  bool gave_way(uint64_t id) const {
    char c;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == id) return recv(pairs_[i][1], &c, 1, 0) == 0;
    }
    return false;
  }

  ConnectionTable table;

 private:
  std::vector<std::array<int, 2>> pairs_;
  std::vector<uint64_t> ids_;
};

TEST_CASE("connections: the one that has waited longest is closed") {
  Table t(3);
  const uint64_t a = t.add("x"), b = t.add("x"), c = t.add("x");
  // a has just been answered, and the threads of the others begin in another order than they connected.
  for (const Phase phase : {Phase::kIdle, Phase::kHead, Phase::kRequest, Phase::kIdle}) t.table.set_phase(a, phase);
  t.table.set_phase(c, Phase::kIdle);
  t.table.set_phase(b, Phase::kIdle);
  t.table.set_phase(b, Phase::kHead);
  const uint64_t d = t.add("x");
  CHECK(d != 0);
  CHECK(t.gave_way(b));
  CHECK(!t.table.set_phase(b, Phase::kRequest));  // its head came too late
  CHECK(t.table.set_phase(c, Phase::kRequest));
  CHECK(t.table.set_phase(d, Phase::kRequest));
  CHECK(t.add("x") != 0);
  CHECK(t.gave_way(a));
  CHECK(!t.gave_way(c));
  CHECK(!t.gave_way(d));
}

TEST_CASE("connections: requests in progress are never closed") {
  Table t(2);
  const uint64_t a = t.add("x"), b = t.add("y");
  t.table.set_phase(a, Phase::kRequest);
  t.table.set_phase(b, Phase::kRequest);
  CHECK(t.add("z") == 0);
  t.table.remove(a);
  CHECK(t.add("z") != 0);
}

TEST_CASE("connections: one address may use all places, but once it has half of them it takes none from others") {
  Table t(4);
  const uint64_t other = t.add("other");
  std::vector<uint64_t> flood;
  for (int i = 0; i < 20; ++i) {
    flood.push_back(t.add("flood"));
    CHECK(flood.back() != 0);
    if (i >= 3) t.table.remove(flood[static_cast<size_t>(i) - 3]);
  }
  CHECK(!t.gave_way(other));
  CHECK(t.gave_way(flood[16]));
  CHECK(!t.gave_way(flood[17]));
  // Another address first takes places from the one that has more than half.
  CHECK(t.add("third") != 0);
  CHECK(!t.gave_way(other));
  CHECK(t.gave_way(flood[17]));
  // An address with half of the places whose requests are all in progress gets no further place.
  for (const int i : {18, 19}) t.table.set_phase(flood[static_cast<size_t>(i)], Phase::kRequest);
  CHECK(t.add("flood") == 0);
  CHECK(!t.gave_way(other));
}

TEST_CASE("connections: threads that are ending are limited too") {
  Table t(2);
  int n = 0;
  while (t.add("x") != 0) ++n;
  CHECK(n == 4);
}

TEST_CASE("connections: the end") {
  Table t(4);
  const uint64_t idle = t.add("x"), head = t.add("x"), request = t.add("x");
  t.table.set_phase(head, Phase::kHead);
  t.table.set_phase(request, Phase::kRequest);
  t.table.drain();
  CHECK(t.table.set_phase(head, Phase::kRequest));
  CHECK(!t.table.set_phase(request, Phase::kIdle));
  t.table.closing(head);
  t.table.break_all();
  CHECK(t.gave_way(request));
  CHECK(!t.gave_way(head));
  CHECK(!t.table.wait_until_empty(std::chrono::milliseconds(1)));
  for (const uint64_t id : {idle, head, request}) t.table.remove(id);
  CHECK(t.table.wait_until_empty(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace infer
