// Hyper-parameters that the llama model of the other tests does not have.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/model/arch/architecture.h"
#include "tests/unit/model/tiny_model.h"

using namespace infer;
using infer::test::TinyModel;

namespace {

TinyModel six_layers() {
  TinyModel tiny;
  tiny.set("llama.block_count", test::int64_value(6));
  return tiny;
}

// What read_windows returns for a file, with a window of 9 and a period of 3 as defaults.
ModelConfig read(const TinyModel& tiny) {
  const auto file = tiny.file();
  ConfigReader reader(*file);
  ModelConfig config = read_sizes(reader);
  config.rope = read_rope(reader, config);
  read_windows(reader, config, 9, 3);
  return config;
}

std::vector<int> windows(const TinyModel& tiny) {
  std::vector<int> result;
  for (const LayerConfig& layer : read(tiny).layers) result.push_back(layer.window);
  return result;
}

TinyModel with_experts() {
  TinyModel tiny = six_layers();
  tiny.set("llama.expert_count", test::int64_value(8));
  tiny.set("llama.expert_used_count", test::int64_value(2));
  tiny.set("llama.expert_feed_forward_length", test::int64_value(8));
  return tiny;
}

// The expert routing of a file whose architecture routes by sigmoids unless the file says otherwise.
ModelConfig routed(const TinyModel& tiny) {
  const auto file = tiny.file();
  ConfigReader reader(*file);
  ModelConfig config = read_sizes(reader);
  read_experts(reader, config);
  require_experts(config);
  read_routing(reader, config, Gating::kSigmoid);
  read_shared_expert(reader, config);
  drop_prediction_layers(reader, config);
  return config;
}

void check_refused(TinyModel tiny, const std::string& key, int64_t value, const std::string& message) {
  tiny.set(key, test::int64_value(value));
  CAPTURE(key);
  CHECK_THROWS_WITH_AS(routed(tiny), message.c_str(), Error);
}

}  // namespace

TEST_CASE("layers have windows by a period or one by one") {
  TinyModel tiny = six_layers();
  CHECK(windows(tiny) == std::vector<int>{9, 9, 0, 9, 9, 0});
  tiny.set("llama.attention.sliding_window", test::int64_value(5));
  tiny.set("llama.attention.sliding_window_pattern", test::int64_value(2));
  CHECK(windows(tiny) == std::vector<int>{5, 0, 5, 0, 5, 0});
  tiny.set("llama.attention.sliding_window_pattern", test::int64_value(0));
  CHECK(windows(tiny) == std::vector<int>{5, 5, 5, 5, 5, 5});
  tiny.set("llama.attention.sliding_window_pattern", GgufValue::of_ints(GgufType::kInt32, {0, 0, 1, 1, 0, 1}));
  CHECK(windows(tiny) == std::vector<int>{0, 0, 5, 5, 0, 5});
  tiny.set("llama.attention.sliding_window_pattern", GgufValue::of_ints(GgufType::kInt32, {0, 0, 1}));
  CHECK_THROWS_WITH_AS(windows(tiny),
                       "[model] key llama.attention.sliding_window_pattern: expected one flag for each of 6 layers, "
                       "found 3",
                       Error);
}

TEST_CASE("the first layer of a period may be the one without a window") {
  TinyModel tiny = six_layers();
  const auto file = tiny.file();
  ConfigReader reader(*file);
  ModelConfig config = read_sizes(reader);
  config.rope = read_rope(reader, config);
  read_windows_after_first(reader, config, 9, 3);
  std::vector<int> found;
  for (const LayerConfig& layer : config.layers) found.push_back(layer.window);
  CHECK(found == std::vector<int>{0, 9, 9, 0, 9, 9});
}

TEST_CASE("layers with a window may have their own rope base") {
  TinyModel tiny = six_layers();
  tiny.set("llama.rope.freq_base", GgufValue::of_float32(500));
  CHECK(read(tiny).rope_window.freq_base == 500);
  tiny.set("llama.rope.freq_base_swa", GgufValue::of_float32(100));
  CHECK(read(tiny).rope.freq_base == 500);
  CHECK(read(tiny).rope_window.freq_base == 100);
}

TEST_CASE("routing is as the file says, or else the architecture's default") {
  TinyModel tiny = with_experts();
  MoeRouteParams routing = routed(tiny).routing;
  CHECK(routing.n_used == 2);
  CHECK(routing.gating == Gating::kSigmoid);  // the fallback
  CHECK_FALSE(routing.normalize);
  CHECK(routing.scale == 1);
  CHECK(routing.n_groups == 1);
  tiny.set("llama.expert_gating_func", test::int64_value(3));
  tiny.set("llama.expert_weights_norm", GgufValue::of_bool(true));
  tiny.set("llama.expert_weights_scale", GgufValue::of_float32(2.5f));
  tiny.set("llama.expert_group_count", test::int64_value(4));
  tiny.set("llama.expert_group_used_count", test::int64_value(1));
  routing = routed(tiny).routing;
  CHECK(routing.gating == Gating::kSoftmaxOfSelected);
  CHECK(routing.normalize);
  CHECK(routing.scale == 2.5f);
  CHECK(routing.n_groups == 4);
  CHECK(routing.groups_used == 1);
  tiny.set("llama.expert_weights_scale", GgufValue::of_float32(0));  // none
  CHECK(routed(tiny).routing.scale == 1);
  check_refused(tiny, "llama.expert_gating_func", 5, "[model] key llama.expert_gating_func: expected 0 to 4, found 5");
  check_refused(tiny, "llama.expert_group_count", 3,
                "[model] key llama.expert_group_count: expected a divisor of the 8 experts, found 3");
  check_refused(tiny, "llama.expert_group_count", 8,
                "[model] key llama.expert_group_used_count: expected groups with at least 2 experts, found 1");
}

TEST_CASE("the shared expert is as wide as the file says, or as the experts that it counts for") {
  TinyModel tiny = with_experts();
  CHECK(routed(tiny).n_ff_shared_expert == 0);
  tiny.set("llama.expert_shared_count", test::int64_value(3));
  CHECK(routed(tiny).n_ff_shared_expert == 3 * 8);
  tiny.set("llama.expert_shared_feed_forward_length", test::int64_value(20));
  CHECK(routed(tiny).n_ff_shared_expert == 20);
}

TEST_CASE("prediction layers do not count as layers of the model") {
  TinyModel tiny = with_experts();
  CHECK(routed(tiny).n_layer == 6);
  tiny.set("llama.nextn_predict_layers", test::int64_value(2));
  const ModelConfig config = routed(tiny);
  CHECK(config.n_layer == 4);
  CHECK(config.layers.size() == 4);
  CHECK(config.n_prediction_layers == 2);
  check_refused(tiny, "llama.nextn_predict_layers", 6,
                "[model] key llama.nextn_predict_layers: expected 0 to 5, found 6");
}

TEST_CASE("limits are one number, or one for each layer") {
  TinyModel tiny = six_layers();
  const auto limits = [&] {
    const auto file = tiny.file();
    return ConfigReader(*file).numbers("swiglu_clamp_exp", 6, 0, 100);
  };
  CHECK(limits() == std::vector<float>(6, 0.0f));
  tiny.set("llama.swiglu_clamp_exp", GgufValue::of_float32(7));
  CHECK(limits() == std::vector<float>(6, 7.0f));
  tiny.set("llama.swiglu_clamp_exp", GgufValue::of_floats({0, 1, 2, 3, 4, 5}));
  CHECK(limits() == std::vector<float>{0, 1, 2, 3, 4, 5});
  tiny.set("llama.swiglu_clamp_exp", GgufValue::of_floats({0, 1, 2, 3, 4, -5}));
  CHECK_THROWS_WITH_AS(limits(), "[model] key llama.swiglu_clamp_exp: expected 0 to 100, found -5", Error);
  tiny.set("llama.swiglu_clamp_exp", GgufValue::of_floats({0, 1}));
  CHECK_THROWS_WITH_AS(
      limits(), "[model] key llama.swiglu_clamp_exp: expected one number, or one for each of 6 layers, found 2", Error);
}

TEST_CASE("the last layers may read the keys and values of earlier ones") {
  TinyModel tiny = six_layers();
  const auto read_by = [&](int fallback) {
    const auto file = tiny.file();
    ConfigReader reader(*file);
    ModelConfig config = read(tiny);
    read_shared_caches(reader, config, fallback);
    std::vector<int> from;
    for (const LayerConfig& layer : config.layers) from.push_back(layer.cache_layer);
    return from;
  };
  // Layers 2 and 5 have no window.
  CHECK(read_by(0) == std::vector<int>{-1, -1, -1, -1, -1, -1});
  CHECK(read_by(3) == std::vector<int>{-1, -1, -1, 1, 1, 2});
  tiny.set("llama.attention.shared_kv_layers", test::int64_value(3));
  CHECK(read_by(0) == std::vector<int>{-1, -1, -1, 1, 1, 2});
  for (const int n : {1, 2, 4, 6}) {
    tiny.set("llama.attention.shared_kv_layers", test::int64_value(n));
    CAPTURE(n);
    CHECK_THROWS_AS(read_by(0), Error);  // a layer with another window, or none
  }
  tiny.set("llama.attention.shared_kv_layers", test::int64_value(7));
  CHECK_THROWS_WITH_AS(read_by(0), "[model] key llama.attention.shared_kv_layers: expected 0 to 6, found 7", Error);
}

TEST_CASE("there is a cache group for every window length") {
  ModelConfig config;
  config.n_layer = 6;
  config.layers.resize(6);
  for (LayerConfig& layer : config.layers) layer.n_kv_head = 1;
  config.layers[5].cache_layer = 2;  // in no group of its own
  config.layers[0].window = config.layers[3].window = 8;
  config.layers[4].window = 6;
  const std::vector<CacheGroup> groups = create_architecture("llama")->cache_groups(config);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].kind == CacheKind::kWindow);
  CHECK(groups[0].window == 8);
  CHECK(groups[0].layers == std::vector<int32_t>{0, 3});
  CHECK(groups[1].kind == CacheKind::kFull);
  CHECK(groups[1].layers == std::vector<int32_t>{1, 2});
  CHECK(groups[2].window == 6);
  CHECK(groups[2].layers == std::vector<int32_t>{4});
}
