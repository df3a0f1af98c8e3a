// Plots latency against concurrency as an SVG image. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/bench_serve/load.h"

namespace infer {

// Two panels, time to first token and time per output token, with lines for p50, p95 and p99 over the levels. `title`
// may be any text. REQUIRES: at least one level.
std::string latency_plot(const std::string& title, const std::vector<LevelResult>& levels);

// A round number (1, 2 or 5 times a power of ten) of which at most five steps reach `largest`.
double axis_step(double largest);

}  // namespace infer
