// The classifier of rerank models. It runs on the host, on the single pooled vector of a text.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "src/model/blocks/linear.h"
#include "src/model/config.h"

namespace infer {

// scores = out(norm(f(dense(pooled)))), followed by a softmax if config.softmax. Without a dense layer, f and the norm
// are left out.
struct Classifier {
  ClassifierConfig config;
  Linear dense = {};             // [n_hidden, n_embd]
  const Weight* norm = nullptr;  // [n_hidden], of a layer norm without bias
  Linear out = {};               // [n_scores, n_hidden]
  float norm_eps = 0;
};

// For architectures whose files may have a classifier of this kind.
void read_classifier(ConfigReader& reader, ModelConfig& config, ClassifierConfig classifier);

// Declares the tensors cls, cls.norm and cls.output; nullopt if the file has neither cls nor cls.output.
std::optional<Classifier> declare_classifier(WeightSet& weights, const ModelConfig& config);

// pooled [n_embd] -> [n_scores]. REQUIRES: the file's data is loaded.
std::vector<float> classify(const Classifier& classifier, std::span<const float> pooled);

}  // namespace infer
