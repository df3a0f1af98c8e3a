// Runs many concurrent clients against one server and summarizes their results.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench_serve/latency.h"
#include "tools/bench_serve/load_client.h"
#include "tools/bench_serve/workload.h"

namespace infer {

struct ErrorCount {
  int count = 0;
  std::string message;  // of the first one
};

// One level of concurrency. Latencies cover the requests that were answered completely.
struct LevelResult {
  int concurrency = 0, requests = 0, answered = 0;
  double seconds = 0;  // from the first request sent to the last answer
  long long prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  long long drafted_tokens = 0, accepted_tokens = 0;
  std::optional<int> max_drafts;  // the workload's
  Latency first_token, per_output_token, gap, total;
  std::map<std::string, ErrorCount> errors;  // by kind

  int failed() const { return requests - answered; }
  double per_second(double n) const { return seconds > 0 ? n / seconds : 0; }
};

LevelResult summarize_level(int concurrency, double seconds, const std::vector<Outcome>& outcomes);

// Sends `n_requests` requests of the workload, starting at index `first`, from `concurrency` clients: each sends its
// next request when its last one is answered. Sends fewer if `stop` returns true.
LevelResult run_level(const ServerAddress& server, const Workload& workload, int concurrency, int n_requests,
                      uint64_t first, const std::function<bool()>& stop);

}  // namespace infer
