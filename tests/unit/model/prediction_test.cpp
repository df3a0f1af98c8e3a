// Prediction layers on the ref device, against what llama.cpp computed for them.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ggml-like/error.h"
#include "ggml-like/ref/ref_device.h"
#include "tests/unit/model/run_model.h"

using namespace infer;
using infer::test::run_model;
using infer::test::RunResult;

namespace {

const std::filesystem::path kData = std::filesystem::path(INFER_SOURCE_DIR) / "tests" / "data";

std::shared_ptr<const GgufFile> open_own(const std::string& name) {
  const std::filesystem::path of_reference = kData / "arch" / (name + ".gguf");
  return GgufFile::open(exists(of_reference) ? of_reference : kData / "prediction" / (name + ".gguf"));
}

// Largest |log p - log p of the reference| over the listed tokens.
double largest_difference(std::span<const float> logits, const nlohmann::json& expected) {
  const std::vector<double> found = test::log_softmax(logits);
  double largest = 0;
  REQUIRE(!expected.empty());
  for (const auto& [token, log_p] : expected.get<std::vector<std::pair<size_t, double>>>()) {
    const double difference = std::abs(found.at(token) - log_p);
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace

TEST_CASE("prediction layers guess what llama.cpp guesses with them") {
  const auto device = create_ref_device();
  for (const std::string name :
       {"bailingmoe3-nextn", "cohere2moe-nextn", "deepseek2-nextn", "deepseek32-nextn", "glm-dsa-nextn",
        "glm4moe-nextn", "hy_v3-nextn", "mimo2-nextn", "qwen35-nextn", "step35-nextn"}) {
    CAPTURE(name);
    const auto expected = nlohmann::json::parse(std::ifstream(kData / "prediction" / (name + ".json")));
    const auto file = open_own(name);
    const auto trunk = load_model(file), layer = load_model(file, ModelPart::kPrediction);
    CHECK(layer->n_layer() == 1);
    CHECK(layer->config().first_layer == trunk->n_layer());
    const auto n_vocab = static_cast<size_t>(trunk->n_vocab());
    const auto width = static_cast<size_t>(trunk->n_embd());

    auto tokens = expected["tokens"].get<std::vector<int32_t>>();
    const size_t n = tokens.size();
    std::vector<float> hidden = run_model(*trunk, tokens, {.devices = {device.get()}}).states;
    // Each token except the first is paired with the state of the previous one.
    tokens.push_back(tokens.front());
    tokens.erase(tokens.begin());
    hidden.resize((n - 1) * width);
    const RunResult first =
        run_model(*layer, std::span(tokens).first(n - 1), {.devices = {device.get()}, .hidden = hidden});
    double largest = 0;
    for (size_t i = 0; i + 1 < n; ++i) {
      const std::span<const float> row(first.logits.data() + i * n_vocab, n_vocab);
      largest = std::max(largest, largest_difference(row, expected["positions"][i]));
    }
    CHECK(largest < 1e-3);

    hidden.insert(hidden.end(), first.states.end() - static_cast<std::ptrdiff_t>(width), first.states.end());
    for (const std::vector<int>& chunks :
         {std::vector<int>{static_cast<int>(n)}, std::vector<int>{5, static_cast<int>(n) - 5}}) {
      const RunResult all = run_model(*layer, tokens, {.devices = {device.get()}, .hidden = hidden}, chunks);
      const std::span<const float> row(all.logits.data() + (n - 1) * n_vocab, n_vocab);
      CHECK(largest_difference(row, expected["own"]) < 1e-3);
    }
  }
}

TEST_CASE("a file may count prediction layers that it leaves out") {
  std::ifstream in(kData / "prediction" / "step35-nextn.gguf", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::string name = "nextn.eh_proj";
  bytes.replace(bytes.find(name), name.size(), "nextn.missing");
  const auto path = std::filesystem::temp_directory_path() / ("left_out_" + std::to_string(getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  const auto file = GgufFile::open(path);
  std::filesystem::remove(path);
  CHECK(load_model(file)->n_layer() == 2);
  CHECK_THROWS_WITH_AS(load_model(file, ModelPart::kPrediction), doctest::Contains("has no prediction layer"), Error);
}

TEST_CASE("models without a prediction layer have no such part") {
  for (const std::string name : {"qwen3moe", "jamba"}) {
    CHECK_THROWS_WITH_AS(load_model(open_own(name), ModelPart::kPrediction), doctest::Contains("prediction layer"),
                         Error);
  }
}
