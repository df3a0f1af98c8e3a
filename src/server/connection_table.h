// The open connections of a server: how many there may be, and which one is dropped when all places are taken. Only
// shuts sockets down; their owners close them. Any thread.
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
  // At most `limit` connections. When all places are taken, one address may hold at most half of them. As many dropped
  // ones may be ending; a further connection waits up to `patience` for one of their threads, which need no more than a
  // processor to end.
  explicit ConnectionTable(size_t limit, std::chrono::milliseconds patience = std::chrono::seconds(30))
      : limit_(limit), share_((limit + 1) / 2), patience_(patience) {}

  enum class Phase {
    kIdle,     // no byte of a request has arrived
    kHead,     // its head is arriving
    kRequest,  // the rest is being read, or it is being answered; never dropped
  };

  // Adds a connection from `address`, in phase kIdle; nullopt if there is no place. If all places are taken, drops the
  // connection that has waited longest for the head of a request: one from the same address if that holds its half,
  // else one from an address above its half, else any.
  std::optional<uint64_t> add(int socket, const std::string& address);
  // False if the connection must end: it was dropped, or it is in phase kIdle and the server is draining.
  bool set_phase(uint64_t id, Phase phase);
  // The table must not touch this socket again.
  void closing(uint64_t id) noexcept;
  void remove(uint64_t id) noexcept;

  // Ends idle connections, now and later.
  void drain();
  bool draining() const;
  void break_all();
  // False if connections are left after the timeout.
  bool wait_until_empty(std::chrono::milliseconds timeout);

 private:
  struct Open {
    int socket;  // -1: being closed
    std::string address;
    Phase phase = Phase::kIdle;
    uint64_t waits_since = 0;  // a counter of requests and connections
    bool gave_way = false;
  };
  bool make_room_locked(const std::string& address);

  const size_t limit_, share_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable removed_;
  // Guarded by mutex_.
  std::unordered_map<uint64_t, Open> open_;
  size_t n_gave_way_ = 0;
  uint64_t last_ = 0;
  bool draining_ = false;
};

}  // namespace infer
