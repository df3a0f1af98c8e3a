#include "src/server/connection_table.h"

#include <sys/socket.h>

#include <map>
#include <string_view>

namespace infer {

std::optional<uint64_t> ConnectionTable::add(int socket, const std::string& address) {
  std::unique_lock lock(mutex_);
  if (!removed_.wait_for(lock, patience_, [&] { return open_.size() < 2 * limit_; })) return std::nullopt;
  if (open_.size() - n_gave_way_ >= limit_ && !make_room_locked(address)) return std::nullopt;
  const uint64_t id = ++last_;
  open_.emplace(id, Open{socket, address, Phase::kIdle, id, false});
  return id;
}

bool ConnectionTable::make_room_locked(const std::string& address) {
  std::map<std::string_view, size_t> by_address;
  for (const auto& [id, open] : open_) by_address[open.address] += open.gave_way ? 0 : 1;
  const bool own_only = by_address[address] >= share_;
  Open* chosen = nullptr;
  bool chosen_beyond = false;
  for (auto& [id, open] : open_) {
    if (open.gave_way || open.phase == Phase::kRequest || open.socket < 0) continue;
    if (own_only && open.address != address) continue;
    const bool beyond = by_address[open.address] > share_;
    if (!chosen || beyond > chosen_beyond || (beyond == chosen_beyond && open.waits_since < chosen->waits_since)) {
      chosen = &open;
      chosen_beyond = beyond;
    }
  }
  if (!chosen) return false;
  chosen->gave_way = true;
  ++n_gave_way_;
  shutdown(chosen->socket, SHUT_RDWR);
  return true;
}

bool ConnectionTable::set_phase(uint64_t id, Phase phase) {
  const std::lock_guard lock(mutex_);
  Open& open = open_.at(id);
  // Threads of new connections begin in any order; those connections wait since they were added.
  if (phase == Phase::kIdle && open.phase != Phase::kIdle) open.waits_since = ++last_;
  open.phase = phase;
  return !open.gave_way && !(phase == Phase::kIdle && draining_);
}

void ConnectionTable::closing(uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto found = open_.find(id); found != open_.end()) found->second.socket = -1;
}

void ConnectionTable::remove(uint64_t id) noexcept {
  // Notify under the lock: the waiting thread may destroy the table next.
  const std::lock_guard lock(mutex_);
  if (const auto found = open_.find(id); found != open_.end()) {
    if (found->second.gave_way) --n_gave_way_;
    open_.erase(found);
  }
  removed_.notify_all();
}

void ConnectionTable::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
  for (const auto& [id, open] : open_) {
    if (open.phase == Phase::kIdle && open.socket >= 0) shutdown(open.socket, SHUT_RD);
  }
}

bool ConnectionTable::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void ConnectionTable::break_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, open] : open_) {
    if (open.socket >= 0) shutdown(open.socket, SHUT_RDWR);
  }
}

bool ConnectionTable::wait_until_empty(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return removed_.wait_for(lock, timeout, [&] { return open_.empty(); });
}

}  // namespace infer
