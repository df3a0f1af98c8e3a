#include "src/model/classifier.h"

#include <algorithm>
#include <cmath>

#include "ggml-like/data_type.h"
#include "ggml-like/message.h"
#include "ggml-like/ref/ref_ops.h"

namespace infer {
namespace {

// factor * w x + bias.
std::vector<double> multiply(const Linear& w, std::span<const double> x) {
  const TensorDesc& desc = w.weight->desc;
  const TypeTraits& type = traits(desc.type);
  const size_t row_bytes = desc.bytes() / static_cast<size_t>(desc.shape[0]);
  std::vector<float> row(x.size());
  const double factor = w.weight->factor ? *reinterpret_cast<const float*>(w.weight->factor->host) : 1;
  std::vector<double> out;
  for (int64_t i = 0; i < desc.shape[0]; ++i) {
    type.to_float(w.weight->host + static_cast<size_t>(i) * row_bytes, row.data(), desc.shape[1]);
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += row[j] * x[j];
    out.push_back(factor * sum + (w.bias ? reinterpret_cast<const float*>(w.bias->host)[i] : 0));
  }
  return out;
}

void normalize_features(std::vector<double>& x, const Weight& weight, double eps) {
  const double n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double v : x) mean += v / n;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  const float* factors = reinterpret_cast<const float*>(weight.host);
  for (size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - mean) / std::sqrt(variance + eps) * factors[i];
}

void softmax(std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
}

}  // namespace

void read_classifier(ConfigReader& reader, ModelConfig& config, ClassifierConfig classifier) {
  classifier.labels = reader.texts("classifier.output_labels");
  config.classifier = std::move(classifier);
}

std::optional<Classifier> declare_classifier(WeightSet& weights, const ModelConfig& config) {
  const bool has_dense = weights.has(kOutputLayer, "cls.weight"),
             has_out = weights.has(kOutputLayer, "cls.output.weight");
  if (!config.classifier || !(has_dense || has_out)) return std::nullopt;
  Classifier classifier{.config = *config.classifier, .norm_eps = config.norm_eps};
  int64_t width = config.n_embd;
  const auto declare = [&](std::string_view name) {
    const int64_t rows = std::max<int64_t>(1, weights.rows(kOutputLayer, concat(name, ".weight")));
    const Linear linear = declare_linear(weights, kOutputLayer, WeightRole::kOutput, name, rows, width);
    width = rows;
    return linear;
  };
  if (has_dense) {
    classifier.dense = declare("cls");
    classifier.norm = weights.optional(kOutputLayer, WeightRole::kNorm, "cls.norm.weight", {width});
  }
  if (has_out) classifier.out = declare("cls.output");
  return classifier;
}

std::vector<float> classify(const Classifier& classifier, std::span<const float> pooled) {
  std::vector<double> x(pooled.begin(), pooled.end());
  if (classifier.dense.weight) {
    x = multiply(classifier.dense, x);
    for (double& v : x) v = ref::activate(classifier.config.activation, v);
    if (classifier.norm) normalize_features(x, *classifier.norm, classifier.norm_eps);
  }
  if (classifier.out.weight) x = multiply(classifier.out, x);
  if (classifier.config.softmax) softmax(x);
  return {x.begin(), x.end()};
}

}  // namespace infer
