// What a download shows on standard error: on a terminal one line that is updated, elsewhere a few lines. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "tools/status_line.h"

namespace infer {

class PullReport {
 public:
  PullReport();

  void note(const std::string& line);
  // `done` of the `total` bytes of a file are there, those of an earlier run included. One file after the other.
  void progress(const std::string& file, uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  struct Sample {
    Clock::time_point time;
    uint64_t done;
  };

  void start_file(const std::string& file, uint64_t done, uint64_t total);
  void update_line(uint64_t done, uint64_t total);

  const bool terminal_;
  std::mutex mutex_;
  std::string file_, last_note_;
  uint64_t first_ = 0;  // bytes that were there at the start
  Clock::time_point start_;
  std::deque<Sample> recent_;  // of the last seconds, for the rate
  int quarter_ = 0;            // the last one that was reported
  bool finished_ = false;
  StatusLine line_;
};

// "1:05", "2:03:04".
std::string duration_text(double seconds);

}  // namespace infer
