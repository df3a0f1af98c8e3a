#include "src/hub/transfer.h"

#include <algorithm>
#include <chrono>

#include "ggml-like/message.h"
#include "src/hub/hub_error.h"
#include "src/hub/sha256.h"

namespace infer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kTransferBufferBytes = size_t{1} << 20;
constexpr std::chrono::milliseconds kWatchPause{100};
constexpr std::chrono::seconds kSavePause{1};

}  // namespace

Transfer::Transfer(const RemoteFile& file, const FileProbe& probe, PartFile& part, PartState& state,
                   const DownloadOptions& options, const HubEvents& events)
    : file_(file), probe_(probe), part_(part), options_(options), events_(events), state_(state), url_(probe.url) {
  for (size_t i = state.done.size(); i-- > 0;) {
    if (state.done[i] < state.bytes(i)) waiting_.push_back(i);
  }
}

Transfer::~Transfer() = default;

void Transfer::stop_with(TransferEnd end) {
  const std::lock_guard lock(mutex_);
  if (!stop_) end_ = end;
  stop_ = true;
  changed_.notify_all();
}

void Transfer::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_ && !stop_) error_ = std::move(error);
  stop_ = true;
  changed_.notify_all();
}

Url Transfer::url() {
  const std::lock_guard lock(mutex_);
  return url_;
}

// Whether the response has the bytes from `from` to `last`. Otherwise, if the file has changed, the transfer stops.
bool Transfer::accepts(const ResponseHead& head, uint64_t from, uint64_t last) {
  ContentRange range;
  if (head.status == 206) {
    const bool same = parse_content_range(head.get("content-range"), range) && range.total == state_.size;
    const std::string etag = strong_etag(head);
    if (!same || (!probe_.etag.empty() && !etag.empty() && etag != probe_.etag)) {
      stop_with(TransferEnd::kChanged);
      return false;
    }
    if (range.first == from && range.last <= last) return true;
    stop_with(TransferEnd::kRangesIgnored);
    return false;
  }
  if (head.status == 200) {
    const std::string length = head.get("content-length");
    const bool same = (length.empty() || length == std::to_string(state_.size)) && strong_etag(head) == probe_.etag;
    if (!same) {
      stop_with(TransferEnd::kChanged);
      return false;
    }
    if (from == 0 && last + 1 == state_.size) return true;
    stop_with(TransferEnd::kRangesIgnored);
    return false;
  }
  if (head.status == 416) stop_with(TransferEnd::kChanged);
  return head.status != 416;  // the body of an error is read and dropped
}

Transfer::Step Transfer::request_segment(HttpClient& client, size_t index, Attempts& attempts) {
  const uint64_t end = state_.begin(index) + state_.bytes(index);
  uint64_t at = state_.begin(index) + state_.done[index];
  const bool whole = at == 0 && end == state_.size && !probe_.has_ranges;
  FetchRequest request{url(), {}, ""};
  const bool original = request.url.text() == file_.url.text();
  if (request.url.same_origin(file_.url)) request.token = file_.token;
  if (!whole) {
    request.headers.emplace_back("Range", concat("bytes=", at, "-", end - 1));
    if (!probe_.etag.empty()) request.headers.emplace_back("If-Range", probe_.etag);
  }
  const auto store = [&](const char* data, size_t bytes) {
    part_.write(at, data, bytes);
    at += bytes;
    attempts.progressed();
    const std::lock_guard lock(mutex_);
    state_.done[index] += bytes;
    changed_.notify_all();
  };
  int status = 0;
  const FetchResult result = client.get(
      request,
      [&](const ResponseHead& head) {
        status = head.status;
        return accepts(head, at, end - 1);
      },
      [&](const char* data, size_t bytes) {
        if (status / 100 != 2) return !stop_;
        // More than was asked for is dropped.
        const uint64_t room = end - at;
        store(data, static_cast<size_t>(std::min<uint64_t>(bytes, room)));
        return !stop_ && bytes <= room;
      });
  if (status / 100 == 2) {
    const std::lock_guard lock(mutex_);
    url_ = result.head.url;
  }
  if (at == end) return Step::kDone;
  if (stop_) return Step::kStop;
  if (!original && status / 100 == 4 && status != 429) {
    // The address that a redirect gave has expired.
    const std::lock_guard lock(mutex_);
    url_ = file_.url;
    return Step::kAgain;
  }
  FetchResult shortened = result;
  if (status / 100 == 2 && shortened.failure.empty()) shortened.failure = "the response ended early";
  shortened.end = FetchResult::End::kFailed;
  if (!attempts.wait(
          shortened, [this] { return stopped(); }, events_.note)) {
    throw request_error(shortened, file_.path, !file_.token.empty());
  }
  return Step::kAgain;
}

void Transfer::fetch_segment(HttpClient& client, size_t index) {
  Attempts attempts(options_.fetch.retries);
  while (!stop_ && request_segment(client, index, attempts) == Step::kAgain) {
  }
}

void Transfer::work(HttpClient& client) {
  for (;;) {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || waiting_.empty()) return;
      index = waiting_.back();
      waiting_.pop_back();
    }
    fetch_segment(client, index);
  }
}

// Reads from the page cache what the workers have just written.
void Transfer::hash_in_order() {
  Sha256 hash;
  std::vector<char> buffer(kTransferBufferBytes);
  for (size_t index = 0; index < state_.done.size(); ++index) {
    for (uint64_t at = 0; at < state_.bytes(index);) {
      uint64_t done = 0;
      {
        std::unique_lock lock(mutex_);
        const uint64_t wanted = std::min<uint64_t>(at + buffer.size(), state_.bytes(index));
        changed_.wait(lock, [&] { return stop_ || state_.done[index] >= wanted; });
        if (stop_) return;
        done = state_.done[index];
      }
      const size_t n = static_cast<size_t>(std::min<uint64_t>(done - at, buffer.size()));
      part_.read(state_.begin(index) + at, buffer.data(), n);
      hash.add(buffer.data(), n);
      at += n;
    }
  }
  sha256_ = hash.finish();
}

void Transfer::save_state() {
  PartState copy;
  {
    const std::lock_guard lock(mutex_);
    copy = state_;
  }
  part_.save(copy);
}

// Until all threads have ended: progress, the state on the disk, the user's wish to stop.
void Transfer::watch() {
  Clock::time_point saved = Clock::now();
  for (bool cancelled = false;;) {
    uint64_t done = 0;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kWatchPause, [&] { return running_ == 0; });
      if (running_ == 0) break;
      done = state_.total_done();
      stopping = stop_;
    }
    if (events_.progress) events_.progress(file_.path, done, state_.size);
    if (!cancelled && events_.cancelled && events_.cancelled()) {
      cancelled = stopping = true;
      fail(std::make_exception_ptr(Error(ErrorCode::kCancelled, "Stopped.")));
    }
    if (stopping) {
      for (const auto& client : clients_) client->cancel();
    }
    if (Clock::now() - saved >= kSavePause) {
      save_state();
      saved = Clock::now();
    }
  }
}

TransferEnd Transfer::run() {
  const auto start = [this](auto body) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    threads_.emplace_back([this, body] {
      try {
        body();
      } catch (...) {
        fail(std::current_exception());
      }
      const std::lock_guard lock(mutex_);
      --running_;
      changed_.notify_all();
    });
  };
  part_.save(state_);
  if (events_.progress) events_.progress(file_.path, state_.total_done(), state_.size);
  const size_t n = std::min(static_cast<size_t>(std::max(options_.connections, 1)), waiting_.size());
  for (size_t i = 0; i < n; ++i) clients_.push_back(std::make_unique<HttpClient>(options_.fetch.http));
  for (const auto& client : clients_) {
    start([this, &client = *client] { work(client); });
  }
  start([this] { hash_in_order(); });
  try {
    watch();
  } catch (...) {
    fail(std::current_exception());
    for (const auto& client : clients_) client->cancel();
  }
  for (std::thread& thread : threads_) thread.join();
  if (error_) {
    try {
      save_state();
    } catch (const Error&) {  // such as a full disk, which the first error has told already
    }
    std::rethrow_exception(error_);
  }
  save_state();
  if (events_.progress) events_.progress(file_.path, state_.total_done(), state_.size);
  return end_;
}

}  // namespace infer
