// The server's counters and measurements, and their text in Prometheus' exposition format. Any thread may update them;
// a snapshot is consistent per metric, not across metrics.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/engine/draft/draft_counts.h"

namespace infer {

// Counts values in buckets with inclusive upper bounds, plus one bucket for values above the last bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // ascending
  void observe(double value);

  struct Snapshot {
    std::vector<double> bounds;
    std::vector<uint64_t> counts;  // [bounds + 1], not cumulative
    double sum = 0;
  };
  Snapshot snapshot() const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// One counter per value of a label.
class LabelledCounter {
 public:
  void add(const std::string& label, uint64_t n = 1);
  std::map<std::string, uint64_t> snapshot() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> counts_;
};

// An operation that runs on the CPU because its device has no kernel, and how often it has run.
struct FallbackGauge {
  std::string text;
  int64_t runs = 0;
};

// The model's memory on a device, in bytes by purpose ("weights").
struct DeviceGauges {
  std::string device;
  int64_t layers = 0;
  std::vector<std::pair<std::string, uint64_t>> bytes;
};

// The blocks of a cache group, or of several together.
struct CacheGauges {
  int64_t total = 0, used = 0, cached = 0, free = 0;
  int64_t evictions = 0;  // since the start
};
struct CacheGroupGauges {
  std::string_view kind;  // see cache_kind_name()
  CacheGauges blocks;
};

// Speculative decoding since the start.
struct DraftGauges {
  DraftCounts counts;
  int64_t decode_tokens = 0, decode_rounds = 0;  // as in EngineStats
  std::vector<CacheGroupGauges> cache_groups;    // the draft model's
};

// The engine's state after a step.
struct EngineGauges {
  int64_t running = 0, waiting = 0;  // sequences
  int64_t preemptions = 0, prefix_hit_tokens = 0, admitted_tokens = 0, steps = 0;
  std::vector<CacheGroupGauges> cache_groups;
  CacheGauges cache() const;  // sum over all groups
  std::vector<FallbackGauge> fallbacks;
  std::optional<DraftGauges> drafts;  // with speculative decoding
};

class Metrics {
 public:
  Metrics();

  Histogram time_to_first_token, time_per_output_token, queue_time, request_time;  // seconds
  Histogram prompt_length, output_length;                                          // tokens
  Histogram batch_size;                                                            // sequences per step
  std::atomic<uint64_t> prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, cancelled = 0;
  LabelledCounter responses;  // by status
  LabelledCounter rejected;   // by reason
  LabelledCounter finished;   // choices, by finish reason

  void set_gauges(const EngineGauges& gauges);
  EngineGauges gauges() const;
  void set_devices(std::vector<DeviceGauges> devices);

  std::string text() const;

 private:
  mutable std::mutex mutex_;
  EngineGauges gauges_;
  std::vector<DeviceGauges> devices_;
};

}  // namespace infer
