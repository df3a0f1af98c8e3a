// Importance matrices: what is summed, and the contents of the file.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "src/engine/engine.h"
#include "tools/imatrix/collector.h"

using namespace infer;

namespace {

std::vector<float> floats(const GgufTensor& tensor) {
  std::vector<float> values(tensor.n_bytes / sizeof(float));
  std::memcpy(values.data(), tensor.data, tensor.n_bytes);
  return values;
}

}  // namespace

TEST_CASE("squares are summed by column, and by expert") {
  Weight plain, experts;
  plain.name = "plain.weight", experts.name = "experts.weight";
  plain.desc.shape = {4, 2};
  experts.desc.shape = {3, 4, 2};
  ImportanceCollector collector;
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  collector.add({plain, 2, rows, {}, 0});
  collector.add({plain, 2, std::span(rows).first(2), {}, 0});
  CHECK(collector.sums().entries.at("plain.weight").sums == std::vector<double>{1 + 9 + 25 + 1, 4 + 16 + 36 + 4});
  CHECK(collector.sums().entries.at("plain.weight").counts == std::vector<double>{4});

  const std::vector<int32_t> ids = {2, 0, 2, 1, 0, 2};  // two experts for each of three tokens
  collector.add({experts, 2, rows, ids, 2});
  CHECK(collector.sums().entries.at("experts.weight").counts == std::vector<double>{2, 1, 3});
  CHECK(collector.sums().entries.at("experts.weight").sums ==
        std::vector<double>{1 + 25, 4 + 36, 9, 16, 1 + 9 + 25, 4 + 16 + 36});

  ImportanceCollector own_rows;  // as before the second matmul of an expert
  const std::vector<float> six = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
  own_rows.add({experts, 2, six, ids, 2});
  CHECK(own_rows.sums().entries.at("experts.weight").sums == std::vector<double>{4 + 25, 0, 16, 0, 1 + 9 + 36, 0});

  const auto path = std::filesystem::temp_directory_path() / ("infer_imatrix_test_" + std::to_string(getpid()));
  ImportanceSums sums = collector.sums();
  sums.datasets = {"some text"}, sums.n_chunks = 7, sums.chunk_size = 512;
  sums.write(path);
  {
    const auto file = GgufFile::open(path);
    CHECK(file->get_string("general.type") == "imatrix");
    CHECK(file->get_string_array("imatrix.datasets") == std::vector<std::string>{"some text"});
    CHECK(file->get_int("imatrix.chunk_count") == 7);
    CHECK(file->get_int("imatrix.chunk_size") == 512);
    CHECK(floats(*file->find_tensor("plain.weight.in_sum2")) == std::vector<float>{36, 60});
    CHECK(floats(*file->find_tensor("plain.weight.counts")) == std::vector<float>{4});
    CHECK(floats(*file->find_tensor("experts.weight.counts")) == std::vector<float>{2, 1, 3});
    CHECK(file->find_tensor("experts.weight.in_sum2")->shape == std::vector<int64_t>{3, 2});
  }
  const ImportanceSums again = ImportanceSums::read(path);
  CHECK(again.entries.at("experts.weight").sums == sums.entries.at("experts.weight").sums);
  CHECK(again.entries.at("experts.weight").counts == sums.entries.at("experts.weight").counts);
  CHECK((again.datasets == sums.datasets && again.n_chunks == 7 && again.chunk_size == 512));
  std::filesystem::remove(path);
}

TEST_CASE("importance of several runs is summed") {
  ImportanceSums total, first, second;
  first.entries["a"] = {{1, 2}, {3}};
  first.entries["experts"] = {{1, 2, 3, 4}, {5, 6}};
  first.datasets = {"x"}, first.n_chunks = 4, first.chunk_size = 512;
  second.entries["a"] = {{10, 20}, {30}};
  second.entries["b"] = {{7}, {8}};
  second.entries["experts"] = {{10, 20, 30, 40}, {50}};  // of experts that are not kept separate
  second.datasets = {"y", "x"}, second.n_chunks = 3, second.chunk_size = 256;
  total.add(first, "first");
  total.add(second, "second");
  CHECK(total.entries.size() == 3);
  CHECK(total.entries.at("a").sums == std::vector<double>{11, 22});
  CHECK(total.entries.at("a").counts == std::vector<double>{33});
  CHECK(total.entries.at("b").counts == std::vector<double>{8});
  CHECK(total.entries.at("experts").sums == std::vector<double>{11, 22, 33, 44});
  CHECK(total.entries.at("experts").counts == std::vector<double>{55, 56});
  CHECK(total.datasets == std::vector<std::string>{"x", "y"});
  CHECK((total.n_chunks == 4 + 2 && total.chunk_size == 512));  // 768 tokens are two chunks
  ImportanceSums other_way;
  other_way.add(second, "second");
  other_way.add(first, "first");
  CHECK(other_way.entries.at("experts").counts == std::vector<double>{55, 56});

  ImportanceSums longer, more_experts;
  longer.entries["a"] = {{1, 2, 3}, {1}};
  more_experts.entries["experts"] = {{1, 2, 3, 4}, {1, 2, 3, 4}};
  CHECK_THROWS_WITH_AS(total.add(longer, "F"), doctest::Contains("F: tensor a: expected 2 sums of 1 matrices"), Error);
  CHECK_THROWS_WITH_AS(total.add(more_experts, "F"), doctest::Contains("4 sums of 2 matrices"), Error);
}

TEST_CASE("the matmuls of an engine are those of the model's graph") {
  EngineOptions options;
  options.context = 64;
  options.all_logits = true;
  ImportanceCollector collector;
  options.product_observer = [&](const ProductInput& input) { collector.add(input); };
  std::vector<double> normed(64, 0.0);
  options.observers.push_back(
      {"blk.1.attn_norm", [&](const TensorDesc& desc, const float* data, int64_t rows, const StepView&) {
         for (int64_t i = 0; i < rows * desc.shape.last(); ++i) {
           normed[static_cast<size_t>(i % desc.shape.last())] += static_cast<double>(data[i]) * data[i];
         }
       }});
  Engine engine(load_model(GgufFile::open(INFER_SOURCE_DIR "/tests/data/spm.gguf")), options);
  Request request;
  request.id = 1;
  for (TokenId t = 3; t < 43; ++t) request.prompt.push_back(t);
  request.max_new_tokens = 0;
  request.logits_from = 0;
  REQUIRE(engine.submit(request));
  while (!engine.idle()) engine.step();
  CHECK(collector.sums().entries.size() == 2 * 7 + 1);
  for (const auto& [name, entry] : collector.sums().entries) {
    CAPTURE(name);
    CHECK(entry.counts == std::vector<double>{40});
  }
  CHECK(collector.sums().entries.at("blk.1.attn_q.weight").sums == normed);
  CHECK(collector.sums().entries.at("blk.1.attn_v.weight").sums == normed);
  CHECK(collector.sums().entries.at("blk.1.ffn_down.weight").sums.size() == 128);
  CHECK(collector.sums().entries.contains("output.weight"));
}
