// Hyper-parameters that the llama of the other tests does not have.
#include <doctest/doctest.h>

#include "ggml-like/error.h"
#include "src/model/arch/architecture.h"
#include "tests/unit/model/tiny_model.h"

using namespace infer;
using infer::test::TinyModel;

namespace {

GgufValue number(int64_t value) { return GgufValue::of_int(GgufType::kInt64, value); }

TinyModel six_layers() {
  TinyModel tiny;
  tiny.set("llama.block_count", number(6));
  return tiny;
}

// What read_windows makes of a file, with a window of 9 and a period of 3 where the file has none.
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

}  // namespace

TEST_CASE("layers have windows by a period or one by one") {
  TinyModel tiny = six_layers();
  CHECK(windows(tiny) == std::vector<int>{9, 9, 0, 9, 9, 0});
  tiny.set("llama.attention.sliding_window", number(5));
  tiny.set("llama.attention.sliding_window_pattern", number(2));
  CHECK(windows(tiny) == std::vector<int>{5, 0, 5, 0, 5, 0});
  tiny.set("llama.attention.sliding_window_pattern", number(0));
  CHECK(windows(tiny) == std::vector<int>{5, 5, 5, 5, 5, 5});
  tiny.set("llama.attention.sliding_window_pattern", GgufValue::of_ints(GgufType::kInt32, {0, 0, 1, 1, 0, 1}));
  CHECK(windows(tiny) == std::vector<int>{0, 0, 5, 5, 0, 5});
  tiny.set("llama.attention.sliding_window_pattern", GgufValue::of_ints(GgufType::kInt32, {0, 0, 1}));
  CHECK_THROWS_WITH_AS(windows(tiny),
                       "[model] key llama.attention.sliding_window_pattern: expected one flag for each of 6 layers, "
                       "found 3",
                       Error);
}

TEST_CASE("layers with a window may have a rotary base of their own") {
  TinyModel tiny = six_layers();
  tiny.set("llama.rope.freq_base", GgufValue::of_float32(500));
  CHECK(read(tiny).rope_window.freq_base == 500);
  tiny.set("llama.rope.freq_base_swa", GgufValue::of_float32(100));
  CHECK(read(tiny).rope.freq_base == 500);
  CHECK(read(tiny).rope_window.freq_base == 100);
}

TEST_CASE("there is a cache group for every length of window") {
  ModelConfig config;
  config.n_layer = 5;
  config.layers.resize(5);
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
