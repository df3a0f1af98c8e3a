// Statistics of measured times. Plain functions.
#pragma once

#include <vector>

namespace infer {

// The smallest value that at least `percent` percent of the values do not exceed (nearest rank); 0 if there are none.
double percentile(std::vector<double> values, double percent);

// Seconds.
struct Latency {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0;
};
Latency summarize(const std::vector<double>& seconds);

}  // namespace infer
