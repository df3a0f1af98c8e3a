// The interface of an architecture. CONTRIBUTING.md explains how to add one.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "src/model/config.h"
#include "src/model/model.h"
#include "src/model/weights.h"

namespace infer {

// The structure of one loaded model. The first two functions are called once, in this order; the others any number of
// times, from any thread.
class Architecture {
 public:
  virtual ~Architecture() = default;
  // Must read every key that changes the result; the caller then sets `config.n_vocab`.
  virtual ModelConfig read_config(ConfigReader& reader) = 0;
  virtual void declare_weights(WeightSet& weights, const ModelConfig& config) = 0;
  // By default: a full group for the layers without a window (latent if the cache holds compressed vectors), a group
  // for each window length, and one for the recurrent states. A layer with both a state and key and value heads is in
  // two groups; one with neither, or that reads another layer's keys and values, is in none.
  virtual std::vector<CacheGroup> cache_groups(const ModelConfig& config) const;
  virtual ModelOutputs build_graph(Graph& graph, const Model& model, CacheTypes cache) const = 0;
};

struct ArchitectureEntry {
  std::string_view name;    // general.architecture
  std::string_view models;  // the models that people know it by
  std::unique_ptr<Architecture> (*create)();
};

// All architectures, sorted by name.
std::span<const ArchitectureEntry> all_architectures();
// Throws Error(kUnsupported) with the similar names that exist.
std::unique_ptr<Architecture> create_architecture(std::string_view name);

}  // namespace infer
