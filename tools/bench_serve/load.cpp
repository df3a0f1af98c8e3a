#include "tools/bench_serve/load.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

namespace infer {

LevelResult summarize_level(int concurrency, double seconds, const std::vector<Outcome>& outcomes) {
  LevelResult level;
  level.concurrency = concurrency;
  level.requests = static_cast<int>(outcomes.size());
  level.seconds = seconds;
  std::vector<double> first, per_token, gaps, total;
  for (const Outcome& o : outcomes) {
    if (!o.error.empty()) {
      ErrorCount& error = level.errors[o.error];
      if (error.count++ == 0) error.message = o.message;
      continue;
    }
    ++level.answered;
    level.prompt_tokens += o.prompt_tokens;
    level.cached_tokens += o.cached_tokens;
    level.output_tokens += o.output_tokens;
    level.drafted_tokens += o.drafted_tokens;
    level.accepted_tokens += o.accepted_tokens;
    first.push_back(o.first_token);
    total.push_back(o.total);
    if (o.output_tokens > 1) per_token.push_back(o.per_output_token);
    gaps.insert(gaps.end(), o.gaps.begin(), o.gaps.end());
  }
  level.first_token = summarize(first);
  level.per_output_token = summarize(per_token);
  level.gap = summarize(gaps);
  level.total = summarize(total);
  return level;
}

LevelResult run_level(const ServerAddress& server, const Workload& workload, int concurrency, int n_requests,
                      uint64_t first, const std::function<bool()>& stop) {
  std::vector<Outcome> outcomes;
  std::exception_ptr failure;
  std::mutex mutex;  // guards the two above
  std::atomic<int> next = 0;
  const auto client = [&] {
    try {
      LoadClient connection(server);
      for (int i = next++; i < n_requests && !stop(); i = next++) {
        Outcome outcome = connection.run(workload.path(), workload.body(first + static_cast<uint64_t>(i)), stop);
        if (stop()) return;
        const std::lock_guard lock(mutex);
        outcomes.push_back(std::move(outcome));
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < concurrency; ++i) clients.emplace_back(client);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (failure) std::rethrow_exception(failure);
  LevelResult level = summarize_level(concurrency, seconds, outcomes);
  level.max_drafts = workload.max_drafts;
  return level;
}

}  // namespace infer
