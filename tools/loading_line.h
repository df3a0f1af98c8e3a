// A line on standard error that shows how far the weights are on their way to the devices, if that is a terminal. One
// thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace infer {

class LoadingLine {
 public:
  // Bytes copied so far, and of all weights. Removes the line when all are copied.
  void operator()(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();  // of this model; there may be a draft after it
  Clock::time_point shown_ = {};
};

}  // namespace infer
