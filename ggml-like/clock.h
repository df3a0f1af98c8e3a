// A clock for durations, which is never set back. Any thread.
#pragma once

#include <chrono>

namespace infer {

// Since some point in the past.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace infer
