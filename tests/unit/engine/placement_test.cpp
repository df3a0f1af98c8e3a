// The placement of a model's parts: counting only, without devices.
#include "src/engine/placement.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "ggml-like/error.h"
#include "src/engine/device_set.h"
#include "src/engine/load_runner.h"

using namespace infer;

namespace {

std::string text(const Placement& p) {
  std::string t(1, static_cast<char>('0' + p.input));
  t += ' ';
  for (const int device : p.layers) t += static_cast<char>('0' + device);
  return t + ' ' + static_cast<char>('0' + p.output);
}

ModelWeight weight(const std::string& name, WeightRole role, std::initializer_list<int64_t> shape) {
  return {{name, make_desc(DataType::kF32, Shape(shape))}, role};
}

}  // namespace

TEST_CASE("the last parts move first: the output, the layers from the last, the embedding") {
  const auto with = [](int parts) { return text(place_parts(3, parts, {1}, {1})); };
  CHECK(with(0) == "0 000 0");
  CHECK(with(1) == "0 000 1");
  CHECK(with(2) == "0 001 1");
  CHECK(with(4) == "0 111 1");
  CHECK(with(5) == "1 111 1");
}

TEST_CASE("several devices take consecutive layers in proportion to their shares") {
  const auto with = [](int parts, std::vector<double> shares) { return text(place_parts(7, parts, {1, 2}, shares)); };
  CHECK(with(9, {3, 1}) == "1 1111112 2");
  CHECK(with(9, {1, 1}) == "1 1111222 2");
  CHECK(with(9, {1, 0}) == "1 1111111 1");
  CHECK(with(9, {0, 1}) == "2 2222222 2");
  CHECK(with(4, {3, 1}) == "0 0000111 2");
  CHECK(with(4, {1e-9, 1e9}) == "0 0000222 2");
  CHECK(with(1, {3, 1}) == "0 0000000 1");
  CHECK(text(place_parts(7, 9, {2, 0, 1}, {1, 2, 1})) == "2 2200001 1");
}

TEST_CASE("any number of parts and any shares: ascending, complete, no device out of range") {
  for (int n_layer : {1, 2, 5, 24}) {
    for (int parts = 0; parts <= placeable_parts(n_layer); ++parts) {
      for (int seed = 0; seed < 20; ++seed) {
        const std::vector<double> shares = {seed % 4 / 3.0, seed % 5 / 2.0, 0.25, seed % 3 * 1e6};
        const Placement p = place_parts(n_layer, parts, {1, 2, 3, 4}, shares);
        CAPTURE(text(p));
        std::vector<int> order = p.layers;
        order.push_back(p.output);
        CHECK(std::is_sorted(order.begin(), order.end()));
        CHECK(std::count_if(order.begin(), order.end(), [](int d) { return d > 0; }) == std::min(parts, n_layer + 1));
        CHECK((p.input != 0) == (parts == placeable_parts(n_layer)));
        for (const int d : order) CHECK((d == 0 || shares[static_cast<size_t>(d) - 1] > 0));
        int covered = 0;
        for (const LayerRange& range : p.ranges()) covered += range.last - range.first + 1;
        CHECK(covered == n_layer);
      }
    }
  }
}

TEST_CASE("a rule takes precedence over the flag for experts, and that over the layer; vectors follow their layer") {
  const Placement placement = place_parts(4, 6, {1}, {1});
  PlacementOptions options;
  options.n_cpu_moe = 2;
  options.tensor_rules = {{"a", [](const std::string& n) { return n == "blk.0.ffn_up_exps.weight"; }, "second"},
                          {"b", [](const std::string& n) { return n.starts_with("blk.3."); }, "cpu"},
                          {"c", [](const std::string&) { return true; }, "never"}};
  options.tensor_rules.pop_back();
  const auto device = [&](const ModelWeight& weight, int layer) {
    return place_weight(weight, layer, placement, options,
                        [](const std::string& name) { return name == "second" ? 2 : 0; });
  };
  CHECK(device(weight("blk.0.ffn_up_exps.weight", WeightRole::kExpert, {4, 8, 8}), 0) == 2);
  CHECK(device(weight("blk.0.ffn_down_exps.weight", WeightRole::kExpert, {4, 8, 8}), 0) == 0);
  CHECK(device(weight("blk.1.ffn_down_exps.weight", WeightRole::kExpert, {4, 8, 8}), 1) == 0);
  CHECK(device(weight("blk.2.ffn_down_exps.weight", WeightRole::kExpert, {4, 8, 8}), 2) == 1);
  CHECK(device(weight("blk.1.ffn_down_exps.bias", WeightRole::kExpert, {4, 8}), 1) == 0);
  CHECK(device(weight("blk.1.ffn_down.weight", WeightRole::kFeedForward, {8, 8}), 1) == 1);
  CHECK(device(weight("blk.1.ffn_gate_inp.weight", WeightRole::kRouter, {4, 8}), 1) == 1);
  CHECK(device(weight("blk.1.ffn_down_shexp.weight", WeightRole::kSharedExpert, {8, 8}), 1) == 1);
  CHECK(device(weight("blk.1.attn_k_b.weight", WeightRole::kAttention, {4, 8, 8}), 1) == 1);
  CHECK(device(weight("blk.3.attn_q.weight", WeightRole::kAttention, {8, 8}), 3) == 0);
  CHECK(device(weight("blk.3.attn_norm.weight", WeightRole::kNorm, {8}), 3) == 1);
  CHECK(device(weight("token_embd.weight", WeightRole::kEmbedding, {8, 8}), kInputLayer) == 1);
}

TEST_CASE("devices are opened once and looked up by name") {
  const auto set = open_devices({"ref", "cpu"}, {.n_threads = 1});
  CHECK(set->names() == "cpu, ref");
  CHECK(set->of_layers == std::vector<int>{1, 0});
  CHECK(set->find("ref") == 1);
  CHECK(set->find("nonsense") == -1);
  CHECK(open_devices({"cpu"}, {.n_threads = 1})->of_layers == std::vector<int>{0});
  for (const auto& names : std::vector<std::vector<std::string>>{{}, {"ref", "ref"}, {"cpu", "cpu"}, {"ref", "no"}}) {
    CHECK_THROWS_AS(open_devices(names, {.n_threads = 1}), Error);
  }
}

TEST_CASE("the default device is the GPU, or the CPU alone if no GPU can be opened") {
  std::string note;
  const auto keep = [&](const std::string& line) { note += line; };
  CHECK(open_default_devices("", {.n_threads = 1}, keep)->names() == "cpu");
  const auto set = open_default_devices("ref", {.n_threads = 1}, keep);
  CHECK(set->names() == "cpu, ref");
  CHECK(set->of_layers == std::vector<int>{1});
  CHECK(note.empty());
  CHECK(open_default_devices("vulkan99", {.n_threads = 1}, keep)->names() == "cpu");
  CHECK(note.starts_with("[offload] all on the CPU, since vulkan99 cannot be used: [device] expected one of cpu, ref"));
  CHECK(open_default_devices("vulkan99", {.n_threads = 1}, nullptr)->names() == "cpu");
}

TEST_CASE("a margin stays free") {
  CHECK(usable_memory(0, 0) == 0);
  CHECK(usable_memory(1000, 0) == 900);
  CHECK(usable_memory(1000, 300) == 600);
  CHECK(usable_memory(1000, 900) == 0);
  CHECK(usable_memory(1000, UINT64_MAX) == 0);
  CHECK(usable_memory(uint64_t{80} << 30, 0) == (uint64_t{80} << 30) - (uint64_t{512} << 20));
}
