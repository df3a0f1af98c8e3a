#include "src/hub/fetch.h"

#include <algorithm>
#include <chrono>

#include "ggml-like/bytes_text.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/hub/hub_error.h"

namespace infer {
namespace {

constexpr std::chrono::milliseconds kPoll{50};

}  // namespace

void throw_if_cancelled(const HubEvents& events) {
  if (events.cancelled && events.cancelled()) throw Error(ErrorCode::kCancelled, "Stopped.");
}

CancelWatch::CancelWatch(HttpClient& client, const HubEvents& events) {
  if (!events.cancelled) return;
  thread_ = std::thread([this, &client, cancelled = events.cancelled] {
    while (!done_) {
      if (cancelled()) client.cancel();
      std::this_thread::sleep_for(kPoll);
    }
  });
}

CancelWatch::~CancelWatch() {
  done_ = true;
  if (thread_.joinable()) thread_.join();
}

bool Attempts::wait(const FetchResult& result, const std::function<bool()>& stopped,
                    const std::function<void(const std::string& line)>& note) {
  if (!may_pass(result) || failed_ >= retries_) return false;
  const int asked = retry_after(result.head);
  const int64_t own = std::min<int64_t>(500 << std::min(failed_, 6), 30000);
  const std::chrono::milliseconds pause{asked >= 0 ? int64_t{asked} * 1000 : own};
  ++failed_;
  if (note && pause >= std::chrono::seconds(1)) {
    const std::string reason = result.head.status / 100 != 2 && result.head.status != 0
                                   ? concat(result.head.url.host, " answered with HTTP ", result.head.status)
                                   : result.failure;
    note(concat(printable(reason), "; trying again in ", (pause.count() + 999) / 1000, " s"));
  }
  const auto end = std::chrono::steady_clock::now() + pause;
  while (std::chrono::steady_clock::now() < end && !stopped()) std::this_thread::sleep_for(kPoll);
  return true;
}

Document fetch_document(HttpClient& client, const FetchRequest& request, size_t limit, const std::string& what,
                        const FetchOptions& options, const HubEvents& events) {
  const CancelWatch watch(client, events);
  Attempts attempts(options.retries);
  const auto stopped = [&] { return events.cancelled && events.cancelled(); };
  for (;;) {
    Document document;
    bool too_large = false;
    const FetchResult result = client.get(
        request, [](const ResponseHead&) { return true; },
        [&](const char* data, size_t bytes) {
          too_large = document.text.size() + bytes > limit;
          if (!too_large) document.text.append(data, bytes);
          return !too_large;
        });
    throw_if_cancelled(events);
    if (too_large) {
      throw Error(ErrorCode::kInvalidFile,
                  expected_found(result.head.url.host, printable(what, 300), "at most " + bytes_text(limit), "more"));
    }
    document.head = result.head;
    if (result.end == FetchResult::End::kComplete && result.head.status == 200) return document;
    if (!attempts.wait(result, stopped, events.note)) throw request_error(result, what, !request.token.empty());
    throw_if_cancelled(events);
  }
}

std::string fetch_start(HttpClient& client, FetchRequest request, size_t bytes, const std::string& what,
                        const FetchOptions& options, const HubEvents& events) {
  request.headers.emplace_back("Range", concat("bytes=0-", bytes - 1));
  const CancelWatch watch(client, events);
  Attempts attempts(options.retries);
  const auto stopped = [&] { return events.cancelled && events.cancelled(); };
  for (;;) {
    std::string text;
    const FetchResult result = client.get(
        request, [](const ResponseHead& head) { return head.status == 200 || head.status == 206; },
        [&](const char* data, size_t n) {
          text.append(data, std::min(n, bytes - text.size()));
          return text.size() < bytes;
        });
    throw_if_cancelled(events);
    const bool whole = result.end == FetchResult::End::kComplete || text.size() == bytes;
    if (result.head.status / 100 == 2 && whole) return text;
    if (!attempts.wait(result, stopped, events.note)) throw request_error(result, what, !request.token.empty());
    throw_if_cancelled(events);
  }
}

}  // namespace infer
