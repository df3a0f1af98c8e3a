#include "tools/bench_serve/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace infer {
namespace {

double of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, static_cast<double>(sorted.size()))) - 1];
}

}  // namespace

double percentile(std::vector<double> values, double percent) {
  std::sort(values.begin(), values.end());
  return of_sorted(values, percent);
}

Latency summarize(const std::vector<double>& seconds) {
  if (seconds.empty()) return {};
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const double sum = std::accumulate(sorted.begin(), sorted.end(), 0.0);
  return {sum / static_cast<double>(sorted.size()), of_sorted(sorted, 50), of_sorted(sorted, 95),
          of_sorted(sorted, 99)};
}

}  // namespace infer
