// Who may enter: bounds the sequences in flight, the tokens that wait, and the requests of one key. What does not fit
// is refused at once, with a guess at when to come again. Any thread; tickets must not outlive their Admission.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace infer {

struct AdmissionLimits {
  int64_t running = 1;               // sequences computed side by side
  int64_t waiting = 64;              // sequences beyond those
  int64_t waiting_tokens = 1 << 20;  // prompt tokens of what waits; a single request may always wait
  int64_t per_key = 0;               // requests of one key at a time; 0: any number
};

class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // A place for the sequences of one prompt; gives it back when it is destroyed.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { release(); }
    // The prompt no longer waits. Once is enough; more does no harm.
    void started();
    void release();

   private:
    friend class Admission;
    Admission* admission_ = nullptr;
    int64_t sequences_ = 0, waiting_tokens_ = 0;
    std::chrono::steady_clock::time_point entered_;
  };

  // Throws ApiError (429) with a time to come again; codes: queue_full, queue_tokens_full.
  Ticket enter(int64_t sequences, int64_t prompt_tokens);

  // One request of a key, as long as it lives.
  class KeySlot {
   public:
    KeySlot() = default;
    KeySlot(KeySlot&& other) noexcept { *this = std::move(other); }
    KeySlot& operator=(KeySlot&& other) noexcept;
    ~KeySlot() { release(); }
    void release();

   private:
    friend class Admission;
    Admission* admission_ = nullptr;
    std::string key_;
  };
  // Throws ApiError (429), code too_many_requests.
  KeySlot enter_key(const std::string& key);

  int64_t in_flight() const;  // sequences

 private:
  int retry_after_locked() const;  // seconds

  const AdmissionLimits limits_;
  mutable std::mutex mutex_;
  int64_t in_flight_ = 0, waiting_tokens_ = 0;
  double mean_seconds_ = 1;  // that a place is held, of late
  std::map<std::string, int64_t> by_key_;
};

}  // namespace infer
