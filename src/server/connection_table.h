// The open connections of a server: how many there may be, and which one gives way when all places are taken. It only
// ever shuts sockets down; closing them is their owners' business. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace infer {

class ConnectionTable {
 public:
  // At most `limit` connections; one address has at most half of them once there are no more places.
  explicit ConnectionTable(size_t limit) : limit_(limit), share_((limit + 1) / 2) {}

  enum class Phase {
    kIdle,     // no byte of a request has arrived
    kHead,     // its head is arriving
    kRequest,  // it is being read further or answered: such connections never give way
  };

  // A place for a connection from `address`, in phase kIdle; nullopt when there is none. With all places taken, the
  // connection that has waited longest for the head of a request gives way: one of the same address where that has its
  // half, else one of an address beyond its half, else any.
  std::optional<uint64_t> add(int socket, const std::string& address);
  // False when the connection is to end: it gave way, or, in phase kIdle, the server drains.
  bool set_phase(uint64_t id, Phase phase);
  // The socket is not touched from now on.
  void closing(uint64_t id) noexcept;
  void remove(uint64_t id) noexcept;

  // Ends what is idle, now and later.
  void drain();
  bool draining() const;
  void break_all();
  // False when connections are left after that time.
  bool wait_until_empty(std::chrono::milliseconds timeout);

 private:
  struct Open {
    int socket;  // -1: being closed
    std::string address;
    Phase phase = Phase::kIdle;
    uint64_t waits_since = 0;  // counts requests and connections
    bool gave_way = false;
  };
  bool make_room_locked(const std::string& address);

  const size_t limit_, share_;
  mutable std::mutex mutex_;
  std::condition_variable removed_;
  // Guarded by mutex_.
  std::unordered_map<uint64_t, Open> open_;
  size_t n_gave_way_ = 0;
  uint64_t last_ = 0;
  bool draining_ = false;
};

}  // namespace infer
