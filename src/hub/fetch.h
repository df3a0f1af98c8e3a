// Requests with several attempts, for short documents; and the pauses between attempts, for all requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "src/hub/http_client.h"

namespace infer {

struct HubEvents {
  // All are called from several threads.
  std::function<bool()> cancelled;                    // polled about ten times a second
  std::function<void(const std::string& line)> note;  // what the user should know
  std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress;  // bytes
};

struct FetchOptions {
  HttpClientOptions http;
  int retries = 5;  // attempts after the first that bring no byte, before giving up
};

// Ends the client's requests once the user cancels. The client outlives it.
class CancelWatch {
 public:
  CancelWatch(HttpClient& client, const HubEvents& events);
  ~CancelWatch();
  CancelWatch(const CancelWatch&) = delete;
  CancelWatch& operator=(const CancelWatch&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

// The attempts of one request. One thread.
class Attempts {
 public:
  explicit Attempts(int retries) : retries_(retries) {}

  void progressed() { failed_ = 0; }
  // After a failed attempt: waits as long as the server asks for, or else longer each time, and returns true; false if
  // another attempt would not help. `stopped` ends the wait; the caller checks it.
  bool wait(const FetchResult& result, const std::function<bool()>& stopped,
            const std::function<void(const std::string& line)>& note);

 private:
  const int retries_;
  int failed_ = 0;
};

struct Document {
  ResponseHead head;
  std::string text;
};

// Throws Error(kIo) as request_error() says, Error(kInvalidFile) if the document is larger than `limit`, and
// Error(kCancelled).
Document fetch_document(HttpClient& client, const FetchRequest& request, size_t limit, const std::string& what,
                        const FetchOptions& options, const HubEvents& events);

// The first bytes of a document, at most `bytes`. Throws as fetch_document() does.
std::string fetch_start(HttpClient& client, FetchRequest request, size_t bytes, const std::string& what,
                        const FetchOptions& options, const HubEvents& events);

void throw_if_cancelled(const HubEvents& events);

}  // namespace infer
