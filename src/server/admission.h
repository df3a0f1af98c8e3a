// Admission control: bounds the answers in flight, the tokens that wait, and the requests per key. Requests beyond the
// bounds are refused at once, with an estimate of when to retry. Any thread; tickets must not outlive their Admission.
//
// A request enters once, however many prompts and choices it has. It holds a place for each unfinished answer, but
// never all of the concurrent places: at least one is left to others, and its remaining answers follow as its places
// become free.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace infer {

struct AdmissionLimits {
  int64_t running = 1;               // answers computed concurrently
  int64_t waiting = 512;             // further places for answers that wait
  int64_t waiting_tokens = 1 << 20;  // prompt tokens of waiting requests; a single request may always wait
  int64_t per_key = 0;               // concurrent requests per key; 0: no limit
};

class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // The places of one request; the destructor returns those still held. Any thread.
  class Ticket {
   public:
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    // How many of its answers the request may have in flight at once.
    int64_t places() const { return places_at_most_; }
    // This many prompt tokens no longer wait.
    void started(int64_t prompt_tokens);
    // One of its answers is finished.
    void finished();

   private:
    friend class Admission;
    // Initially holds nothing.
    Ticket(Admission& admission, int64_t places);
    void set_answers_locked(int64_t answers);

    Admission& admission_;
    const int64_t places_at_most_;
    const std::chrono::steady_clock::time_point entered_;
    int64_t answers_ = 0, waiting_tokens_ = 0;  // unfinished; not started; guarded by the admission's mutex
  };

  // Admits a request with this many answers and prompt tokens in total. Throws ApiError (429) with a time to retry;
  // codes: queue_full, queue_tokens_full.
  std::shared_ptr<Ticket> enter(int64_t answers, int64_t prompt_tokens);
  // How many places a request with this many answers holds.
  int64_t places_of(int64_t answers) const;

  // Counts one request of a key during its lifetime.
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

  int64_t in_flight() const;  // places held

 private:
  int retry_after_locked() const;  // seconds

  const AdmissionLimits limits_;
  mutable std::mutex mutex_;
  int64_t in_flight_ = 0, waiting_tokens_ = 0;
  double mean_seconds_ = 1;  // moving average of how long a place is held
  std::map<std::string, int64_t> by_key_;
};

}  // namespace infer
