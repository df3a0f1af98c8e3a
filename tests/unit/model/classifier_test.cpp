#include "src/model/classifier.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/unit/model/tiny_model.h"

using namespace infer;

namespace {

// The classifier of a file with these tensors.
struct Loaded {
  std::shared_ptr<const GgufFile> file;
  WeightSet weights;
  std::optional<Classifier> classifier;

  Loaded(const test::TinyModel& tiny, const ClassifierConfig& config) : file(tiny.file()), weights(file) {
    ModelConfig model;
    model.n_embd = 2;
    model.norm_eps = 0.5f;
    model.classifier = config;
    classifier = declare_classifier(weights, model);
  }
};

test::TinyModel with_tensors(const std::vector<test::TinyModel::Tensor>& tensors) {
  test::TinyModel tiny;
  tiny.tensors = tensors;
  return tiny;
}

const test::TinyModel::Tensor kDense{"cls.weight", {3, 2}, {1, 2, -1, 0.5f, 0, 1}};
const test::TinyModel::Tensor kDenseBias{"cls.bias", {3}, {0.1f, 0.2f, 0.3f}};
const test::TinyModel::Tensor kNorm{"cls.norm.weight", {3}, {2, 1, 0.5f}};
const test::TinyModel::Tensor kOut{"cls.output.weight", {2, 3}, {1, 1, 0, 0, -1, 2}};
const test::TinyModel::Tensor kOutBias{"cls.output.bias", {2}, {0.25f, -1}};
const std::vector<float> kPooled = {0.5f, -0.75f};

}  // namespace

TEST_CASE("scores follow from the dense layer, its activation and the output layer") {
  const Loaded l(with_tensors({kDense, kDenseBias, kOut, kOutBias}), {});
  REQUIRE(l.classifier);
  const double h[] = {std::tanh(0.5 - 1.5 + 0.1), std::tanh(-0.5 - 0.375 + 0.2), std::tanh(-0.75 + 0.3)};
  const std::vector<float> scores = classify(*l.classifier, kPooled);
  REQUIRE(scores.size() == 2);
  CHECK(scores[0] == doctest::Approx(h[0] + h[1] + 0.25));
  CHECK(scores[1] == doctest::Approx(-h[1] + 2 * h[2] - 1));
}

TEST_CASE("a norm of the hidden layer has the model's epsilon") {
  const Loaded l(with_tensors({kDense, kNorm, kOut}), {.activation = UnaryKind::kRelu});
  REQUIRE(l.classifier);
  const std::vector<float> scores = classify(*l.classifier, std::vector<float>{-1, 1});
  // dense: 1, 1.5, 1; mean 7 / 6, variance 1 / 18
  const double mean = 7.0 / 6, factor = 1 / std::sqrt(1.0 / 18 + 0.5);
  const double n[] = {(1 - mean) * factor * 2, (1.5 - mean) * factor, (1 - mean) * factor * 0.5};
  REQUIRE(scores.size() == 2);
  CHECK(scores[0] == doctest::Approx(n[0] + n[1]));
  CHECK(scores[1] == doctest::Approx(-n[1] + 2 * n[2]));
}

TEST_CASE("either layer alone is a classifier") {
  const Loaded dense(with_tensors({{"cls.weight", {2}, {1, 2}}, {"cls.bias", {1}, {0.5f}}}), {});
  REQUIRE(dense.classifier);
  const std::vector<float> one = classify(*dense.classifier, kPooled);
  REQUIRE(one.size() == 1);
  CHECK(one[0] == doctest::Approx(std::tanh(0.5 - 1.5 + 0.5)));

  const Loaded out(with_tensors({{"cls.output.weight", {2, 2}, {1, 0, 0, 2}}}), {.softmax = true});
  REQUIRE(out.classifier);
  const std::vector<float> both = classify(*out.classifier, kPooled);
  REQUIRE(both.size() == 2);
  CHECK(both[0] == doctest::Approx(1 / (1 + std::exp(-2.0))));
  CHECK(both[0] + both[1] == doctest::Approx(1));
}

TEST_CASE("files without its tensors, and architectures that have none, have no classifier") {
  CHECK_FALSE(Loaded(with_tensors({kNorm}), {}).classifier);
  const auto file = with_tensors({kDense}).file();
  WeightSet weights(file);
  ModelConfig model;
  model.n_embd = 2;
  CHECK_FALSE(declare_classifier(weights, model));
}
