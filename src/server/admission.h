// Who may enter: bounds the answers in flight, the tokens that wait, and the requests of one key. What does not fit is
// refused at once, with a guess at when to come again. Any thread; tickets must not outlive their Admission.
//
// A request enters once, however many prompts and choices it has. It holds a place for each answer it still lacks, but
// always leaves one of the places that are computed side by side to others; its further answers follow as its places
// come free.
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
  int64_t running = 1;               // answers computed side by side
  int64_t waiting = 512;             // places held beyond those
  int64_t waiting_tokens = 1 << 20;  // prompt tokens of what waits; a single request may always wait
  int64_t per_key = 0;               // requests of one key at a time; 0: any number
};

class Admission {
 public:
  explicit Admission(const AdmissionLimits& limits) : limits_(limits) {}

  // The places of one request; what is left of them is given back when it is destroyed. Any thread.
  class Ticket {
   public:
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    // How many of its answers the request may have under way at once.
    int64_t places() const { return places_at_most_; }
    // So many tokens of its prompts no longer wait.
    void started(int64_t prompt_tokens);
    // One of its answers has ended.
    void finished();

   private:
    friend class Admission;
    // Holds nothing yet.
    Ticket(Admission& admission, int64_t places);
    void set_answers_locked(int64_t answers);

    Admission& admission_;
    const int64_t places_at_most_;
    const std::chrono::steady_clock::time_point entered_;
    int64_t answers_ = 0, waiting_tokens_ = 0;  // not yet ended, not yet started; guarded by the admission's mutex
  };

  // A place for a request of so many answers to prompts of so many tokens together. Throws ApiError (429) with a time
  // to come again; codes: queue_full, queue_tokens_full.
  std::shared_ptr<Ticket> enter(int64_t answers, int64_t prompt_tokens);
  // Places that a request of so many answers holds.
  int64_t places_of(int64_t answers) const;

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

  int64_t in_flight() const;  // places held

 private:
  int retry_after_locked() const;  // seconds

  const AdmissionLimits limits_;
  mutable std::mutex mutex_;
  int64_t in_flight_ = 0, waiting_tokens_ = 0;
  double mean_seconds_ = 1;  // that a place was held, mean of recent requests
  std::map<std::string, int64_t> by_key_;
};

}  // namespace infer
