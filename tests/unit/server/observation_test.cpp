// What the server reports about itself: metrics, logs, recent prompts.
#include <doctest/doctest.h>

#include <thread>

#include "src/server/metrics.h"
#include "src/server/recent_prompts.h"
#include "src/server/server_log.h"
#include "src/server/stats.h"

namespace infer {
namespace {

TEST_CASE("metrics: a histogram's bounds are inclusive") {
  Histogram h({1, 2, 5});
  for (const double value : {0.5, 1.0, 1.5, 2.0, 5.0, 5.1, 100.0}) h.observe(value);
  const Histogram::Snapshot s = h.snapshot();
  CHECK(s.counts == std::vector<uint64_t>{2, 2, 1, 2});
  CHECK(s.sum == doctest::Approx(115.1));
}

TEST_CASE("metrics: text") {
  Metrics metrics;
  metrics.generated_tokens += 5;
  metrics.batch_size.observe(3);
  metrics.responses.add("200", 2);
  metrics.responses.add("429");
  EngineGauges gauges;
  gauges.cache_groups = {{"full", {20, 5, 7, 8, 3}}, {"window", {6, 1, 2, 3, 4}}};
  metrics.set_gauges(gauges);
  const std::string text = metrics.text();
  for (const char* line :
       {"# TYPE infer_generated_tokens_total counter\ninfer_generated_tokens_total 5\n",
        "infer_responses_total{status=\"200\"} 2\ninfer_responses_total{status=\"429\"} 1\n",
        "# TYPE infer_kv_blocks_cached gauge\ninfer_kv_blocks_cached 9\n", "infer_kv_evictions_total 7\n",
        "infer_kv_group_blocks{group=\"0\",kind=\"full\",state=\"used\"} 5\n",
        "infer_kv_group_blocks{group=\"1\",kind=\"window\",state=\"free\"} 3\n",
        "# TYPE infer_kv_group_evictions_total counter\ninfer_kv_group_evictions_total{group=\"0\",kind=\"full\"} 3\n"
        "infer_kv_group_evictions_total{group=\"1\",kind=\"window\"} 4\n",
        "infer_step_batch_size_bucket{le=\"2\"} 0\n", "infer_step_batch_size_bucket{le=\"4\"} 1\n",
        "infer_step_batch_size_bucket{le=\"+Inf\"} 1\n",
        "infer_step_batch_size_sum 3\ninfer_step_batch_size_count 1\n"}) {
    CAPTURE(line);
    CHECK(text.find(line) != std::string::npos);
  }
}

TEST_CASE("metrics and stats: placement of the model, and operations that run elsewhere") {
  std::vector<DeviceUse> devices(2);
  devices[0].device = "cpu";
  devices[1].device = "gpu0";
  devices[1].n_layers = 3;
  devices[1].weights = 1000;
  devices[1].cache = 20;
  Placement placement = place_parts(4, 4, {1}, {1});
  EngineGauges gauges;
  gauges.fallbacks = {{"a of b", 5}, {"c of d", 2}};
  gauges.cache_groups = {{"state", {6, 1, 2, 3, 4}}};
  Metrics metrics;
  metrics.set_gauges(gauges);
  CHECK(metrics.text().find("infer_device_layers") == std::string::npos);
  metrics.set_devices(device_gauges(devices, {}));
  const std::string text = metrics.text();
  for (const char* line : {"infer_backend_fallbacks_total 7\n", "infer_device_layers{device=\"gpu0\"} 3\n",
                           "infer_device_memory_bytes{device=\"gpu0\",what=\"weights\"} 1000\n",
                           "infer_device_memory_bytes{device=\"cpu\",what=\"kv_cache\"} 0\n"}) {
    CAPTURE(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const Json stats = stats_json(placement, devices, {}, gauges);
  CHECK(stats["placement"].dump() ==
        R"({"embedding":"cpu","layers":[{"first":0,"last":0,"device":"cpu"},{"first":1,"last":3,"device":"gpu0"}],)"
        R"("output":"gpu0"})");
  CHECK(stats["devices"][1]["needed"] == 1020);
  CHECK(stats["kv_blocks"].dump() == R"({"total":6,"used":1,"cached":2,"free":3})");
  CHECK(stats["cache_groups"].dump() == R"([{"kind":"state","total":6,"used":1,"cached":2,"free":3,"evictions":4}])");
  CHECK(stats["fallbacks"].dump() == R"([{"operation":"a of b","runs":5},{"operation":"c of d","runs":2}])");
}

TEST_CASE("metrics and stats of speculative decoding") {
  EngineGauges gauges;
  Metrics metrics;
  std::vector<DeviceUse> devices(1);
  devices[0].device = "cpu";
  const Placement placement = place_parts(4, 0, {0}, {1});
  metrics.set_gauges(gauges);
  CHECK(metrics.text().find("draft") == std::string::npos);
  CHECK(!stats_json(placement, devices, {}, gauges).contains("speculation"));

  gauges.drafts = {{5, 20, 15}, 30, 12, {{"full", {6, 1, 2, 3, 4}}}};
  metrics.set_gauges(gauges);
  metrics.set_devices(device_gauges(devices, {77}));
  const std::string text = metrics.text();
  for (const char* line :
       {"infer_draft_tokens_total 20\n", "infer_draft_accepted_tokens_total 15\n",
        "infer_draft_verifications_total 5\n", "infer_decode_tokens_total 30\n", "infer_decode_rounds_total 12\n",
        "infer_draft_kv_group_blocks{group=\"0\",kind=\"full\",state=\"used\"} 1\n",
        "infer_device_memory_bytes{device=\"cpu\",what=\"draft\"} 77\n"}) {
    CAPTURE(line);
    CHECK(text.find(line) != std::string::npos);
  }
  const Json stats = stats_json(placement, devices, {77}, gauges);
  CHECK(stats["devices"][0]["draft"] == 77);
  CHECK(stats["speculation"].dump() ==
        R"({"drafted":20,"accepted":15,"acceptance":0.75,"mean_depth":4.0,"tokens_per_step":2.5,)"
        R"("draft_cache_groups":[{"kind":"full","total":6,"used":1,"cached":2,"free":3,"evictions":4}]})");
}

TEST_CASE("metrics: no count is lost between threads") {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        metrics.queue_time.observe(j);
        metrics.responses.add("200");
        ++metrics.cancelled;
        if (j % 100 == 0) CHECK(!metrics.text().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t n = 0;
  for (const uint64_t count : metrics.queue_time.snapshot().counts) n += count;
  CHECK(n == 4000);
  CHECK(metrics.responses.snapshot().at("200") == 4000);
  CHECK(metrics.cancelled == 4000);
}

TEST_CASE("log: text lines and JSON lines") {
  const Json fields = {{"id", "a"}, {"path", "/x y"}, {"n", 3}, {"text", "\x1b[31m\n\xFF"}, {"none", ""}};
  CHECK(log_line(LogLevel::kInfo, "request", fields, false, "T") ==
        "T info request id=a path=\"/x y\" n=3 text=\\x1B[31m\\n\\xFF none=\"\"");
  const std::string json = log_line(LogLevel::kError, "request", fields, true, "T");
  CHECK(json.find('\n') == std::string::npos);
  CHECK(json.find('\x1b') == std::string::npos);
  const Json parsed = Json::parse(json);
  CHECK(parsed["level"] == "error");
  CHECK(parsed["time"] == "T");
  CHECK(parsed["n"] == 3);
}

TEST_CASE("recent prompts: the first token that differs from the most similar prompt") {
  RecentPrompts prompts;
  using Tokens = std::vector<TokenId>;
  CHECK(!prompts.add(Tokens{1, 2, 3}, ""));
  CHECK(prompts.add(Tokens{1, 2, 4, 5}, "") == 2u);
  CHECK(prompts.add(Tokens{1, 2, 4, 6}, "") == 3u);
  CHECK(!prompts.add(Tokens{1, 2}, ""));
  CHECK(prompts.add(Tokens{9}, "") == 0u);
  CHECK(!prompts.add(Tokens{1, 2, 7}, "salt"));
  for (TokenId i = 0; i < 100; ++i) prompts.add(Tokens{50 + i}, "");
  CHECK(prompts.add(Tokens{1, 2, 3}, "") == 0u);
}

}  // namespace
}  // namespace infer
