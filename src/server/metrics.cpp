#include "src/server/metrics.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace infer {
namespace {

const std::vector<double> kSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                      1,     2.5,    5,     10,   25,    50,   100, 250,  500};
const std::vector<double> kLengths = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144};
const std::vector<double> kBatches = {1, 2, 4, 8, 16, 32, 64, 128, 256};

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

// Writes metrics one after another. Label values are the server's own words, so nothing needs escaping.
class Exposition {
 public:
  void counter(const std::string& name, const char* help, uint64_t value) {
    head(name, help, "counter");
    sample(name, "", std::to_string(value));
  }
  void counters(const std::string& name, const char* help, const char* label, const LabelledCounter& counter) {
    head(name, help, "counter");
    for (const auto& [value, n] : counter.snapshot()) {
      sample(name, std::string(label) + "=\"" + value + "\"", std::to_string(n));
    }
  }
  void gauge(const std::string& name, const char* help, int64_t value) {
    head(name, help, "gauge");
    sample(name, "", std::to_string(value));
  }
  // Writes one metric with a sample per set of labels; nothing if there are none.
  using Samples = std::vector<std::pair<std::string, uint64_t>>;
  void gauges(const std::string& name, const char* help, const Samples& values) {
    samples(name, help, "gauge", values);
  }
  void counters(const std::string& name, const char* help, const Samples& values) {
    samples(name, help, "counter", values);
  }
  void histogram(const std::string& name, const char* help, const Histogram& histogram) {
    head(name, help, "histogram");
    const Histogram::Snapshot s = histogram.snapshot();
    uint64_t total = 0;
    for (size_t i = 0; i < s.counts.size(); ++i) {
      total += s.counts[i];
      const std::string bound = i < s.bounds.size() ? number(s.bounds[i]) : "+Inf";
      sample(name + "_bucket", "le=\"" + bound + "\"", std::to_string(total));
    }
    sample(name + "_sum", "", number(s.sum));
    sample(name + "_count", "", std::to_string(total));
  }

  std::string text;

 private:
  void head(const std::string& name, const char* help, const char* type) {
    text += "# HELP infer_" + name + " " + help + "\n# TYPE infer_" + name + " " + type + "\n";
  }
  void samples(const std::string& name, const char* help, const char* type, const Samples& values) {
    if (values.empty()) return;
    head(name, help, type);
    for (const auto& [labels, value] : values) sample(name, labels, std::to_string(value));
  }
  void sample(const std::string& name, const std::string& labels, const std::string& value) {
    text += "infer_" + name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
};

uint64_t as_count(int64_t n) { return static_cast<uint64_t>(n); }

// `prefix`: of the metrics' names.
void write_cache_groups(const std::string& prefix, const std::vector<CacheGroupGauges>& groups, Exposition& out) {
  Exposition::Samples blocks, evictions;
  for (size_t i = 0; i < groups.size(); ++i) {
    const auto& [kind, group] = groups[i];
    const std::string labels = "group=\"" + std::to_string(i) + "\",kind=\"" + std::string(kind) + "\"";
    blocks.emplace_back(labels + ",state=\"used\"", as_count(group.used));
    blocks.emplace_back(labels + ",state=\"cached\"", as_count(group.cached));
    blocks.emplace_back(labels + ",state=\"free\"", as_count(group.free));
    evictions.emplace_back(labels, as_count(group.evictions));
  }
  out.gauges(prefix + "kv_group_blocks", "Blocks of a cache group, by state; state slots for kind state.", blocks);
  out.counters(prefix + "kv_group_evictions_total", "Evictions in a cache group.", evictions);
}

// The whole cache, then each group.
void write_cache(const EngineGauges& g, Exposition& out) {
  const CacheGauges all = g.cache();
  out.gauge("kv_blocks_total", "Blocks of the KV cache.", all.total);
  out.gauge("kv_blocks_used", "Blocks held by running sequences and retained conversations.", all.used);
  out.gauge("kv_blocks_cached", "Unused blocks that a later prompt can reuse.", all.cached);
  out.gauge("kv_blocks_free", "Blocks without content.", all.free);
  out.counter("kv_evictions_total", "Cached blocks evicted to make room.", as_count(all.evictions));
  write_cache_groups("", g.cache_groups, out);
}

void write_drafts(const DraftGauges& drafts, Exposition& out) {
  out.counter("draft_tokens_total", "Drafted tokens that the model verified.", as_count(drafts.counts.proposed));
  out.counter("draft_accepted_tokens_total", "Drafted tokens that the model accepted.",
              as_count(drafts.counts.accepted));
  out.counter("draft_verifications_total", "Number of times drafts of a sequence were verified.",
              as_count(drafts.counts.verifications));
  out.counter("decode_tokens_total", "Tokens generated in steps without prompt tokens.",
              as_count(drafts.decode_tokens));
  out.counter("decode_rounds_total", "Sequences summed over these steps; equals decode_tokens_total without drafts.",
              as_count(drafts.decode_rounds));
  write_cache_groups("draft_", drafts.cache_groups, out);
}

}  // namespace

CacheGauges EngineGauges::cache() const {
  CacheGauges sum;
  for (const auto& [kind, group] : cache_groups) {
    sum.total += group.total;
    sum.used += group.used;
    sum.cached += group.cached;
    sum.free += group.free;
    sum.evictions += group.evictions;
  }
  return sum;
}

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  const std::lock_guard lock(mutex_);
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += value;
}

Histogram::Snapshot Histogram::snapshot() const {
  const std::lock_guard lock(mutex_);
  return {bounds_, counts_, sum_};
}

void LabelledCounter::add(const std::string& label, uint64_t n) {
  const std::lock_guard lock(mutex_);
  counts_[label] += n;
}

std::map<std::string, uint64_t> LabelledCounter::snapshot() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Metrics::Metrics()
    : time_to_first_token(kSeconds),
      time_per_output_token(kSeconds),
      queue_time(kSeconds),
      request_time(kSeconds),
      prompt_length(kLengths),
      output_length(kLengths),
      batch_size(kBatches) {}

void Metrics::set_gauges(const EngineGauges& gauges) {
  const std::lock_guard lock(mutex_);
  gauges_ = gauges;
}

void Metrics::set_devices(std::vector<DeviceGauges> devices) {
  const std::lock_guard lock(mutex_);
  devices_ = std::move(devices);
}

EngineGauges Metrics::gauges() const {
  const std::lock_guard lock(mutex_);
  return gauges_;
}

std::string Metrics::text() const {
  const EngineGauges g = gauges();
  Exposition out;
  out.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.", time_to_first_token);
  out.histogram("time_per_output_token_seconds", "Mean time between the tokens of an answer.", time_per_output_token);
  out.histogram("queue_time_seconds", "From a request's arrival to its first step.", queue_time);
  out.histogram("request_duration_seconds", "From a request's arrival to the end of its answer.", request_time);
  out.histogram("prompt_length_tokens", "Tokens of prompts.", prompt_length);
  out.histogram("output_length_tokens", "Tokens of answers.", output_length);
  out.histogram("step_batch_size", "Sequences computed together in a step.", batch_size);
  out.gauge("requests_running", "Sequences being computed.", g.running);
  out.gauge("requests_waiting", "Sequences in the queue.", g.waiting);
  write_cache(g, out);
  if (g.drafts) write_drafts(*g.drafts, out);
  out.counter("prompt_tokens_total", "Prompt tokens, including cached ones.", prompt_tokens);
  out.counter("cached_prompt_tokens_total", "Prompt tokens served from the cache.", cached_tokens);
  out.counter("generated_tokens_total", "Tokens generated.", generated_tokens);
  out.counter("steps_total", "Steps of the engine.", as_count(g.steps));
  out.counter("preemptions_total", "Preempted sequences: they released their blocks and are recomputed.",
              as_count(g.preemptions));
  out.counter("prefix_hit_tokens_total", "Tokens found in the cache when a sequence was admitted.",
              as_count(g.prefix_hit_tokens));
  out.counter("prefix_looked_up_tokens_total", "Tokens of sequences when they were admitted.",
              as_count(g.admitted_tokens));
  out.counters("responses_total", "Responses, by HTTP status.", "status", responses);
  out.counters("rejected_requests_total", "Refused requests, by reason.", "reason", rejected);
  out.counters("finished_total", "Answers, by the reason they ended.", "reason", finished);
  out.counter("cancelled_requests_total", "Requests that ended early: the client disconnected, or the time was up.",
              cancelled);
  int64_t fallbacks = 0;
  for (const FallbackGauge& f : g.fallbacks) fallbacks += f.runs;
  out.counter("backend_fallbacks_total", "Operations that ran on the CPU because the device has no kernel.",
              as_count(fallbacks));
  std::vector<std::pair<std::string, uint64_t>> layers, bytes;
  {
    const std::lock_guard lock(mutex_);
    for (const DeviceGauges& device : devices_) {
      const std::string label = "device=\"" + device.device + "\"";
      layers.emplace_back(label, as_count(device.layers));
      for (const auto& [what, n] : device.bytes) bytes.emplace_back(label + ",what=\"" + what + "\"", n);
    }
  }
  out.gauges("device_layers", "Layers of the model on a device.", layers);
  out.gauges("device_memory_bytes", "Memory the model uses on a device, by purpose.", bytes);
  return out.text;
}

}  // namespace infer
