// The threads of one download: workers that fetch segments, and one that hashes the bytes in order behind them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/hub/download.h"
#include "src/hub/part_file.h"
#include "src/hub/probe.h"

namespace infer {

// How a transfer ended if it did not fail.
enum class TransferEnd {
  kComplete,
  kChanged,        // the server has another file now: probe again and start over
  kRangesIgnored,  // the server sends the whole file whatever is asked for: fetch it in one piece
};

class Transfer {
 public:
  // `part` and `state` outlive it; `state` is updated.
  Transfer(const RemoteFile& file, const FileProbe& probe, PartFile& part, PartState& state,
           const DownloadOptions& options, const HubEvents& events);
  ~Transfer();

  // Returns once every byte is there and hashed, or as `TransferEnd` says. Throws Error; `state` is saved in any case.
  TransferEnd run();
  // After kComplete.
  const std::string& sha256() const { return sha256_; }

 private:
  enum class Step { kDone, kAgain, kStop };  // of one request for a segment

  void work(HttpClient& client);
  void fetch_segment(HttpClient& client, size_t index);
  Step request_segment(HttpClient& client, size_t index, Attempts& attempts);
  bool accepts(const ResponseHead& head, uint64_t from, uint64_t last);
  void hash_in_order();
  void watch();
  void save_state();
  bool stopped() const { return stop_; }
  void stop_with(TransferEnd end);
  void fail(std::exception_ptr error);
  Url url();

  const RemoteFile& file_;
  FileProbe probe_;
  PartFile& part_;
  const DownloadOptions& options_;
  const HubEvents& events_;

  std::mutex mutex_;
  std::condition_variable changed_;  // state_, running_, stop_
  PartState& state_;
  std::vector<size_t> waiting_;  // segments nobody fetches, the first one last
  Url url_;                      // where segments come from now
  int running_ = 0;              // threads
  std::exception_ptr error_;
  TransferEnd end_ = TransferEnd::kComplete;
  std::atomic<bool> stop_ = false;

  std::string sha256_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
  std::vector<std::thread> threads_;
};

}  // namespace infer
