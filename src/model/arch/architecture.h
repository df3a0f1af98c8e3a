// What an architecture provides. CONTRIBUTING.md says how to add one.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "src/model/config.h"
#include "src/model/model.h"
#include "src/model/weights.h"

namespace infer {

// One loaded model's structure. The first two are called once, in this order; the others any number of times, by any
// thread.
class Architecture {
 public:
  virtual ~Architecture() = default;
  // All keys that change the result are read; `config.n_vocab` is filled in by the caller afterwards.
  virtual ModelConfig read_config(ConfigReader& reader) = 0;
  virtual void declare_weights(WeightSet& weights, const ModelConfig& config) = 0;
  virtual std::vector<CacheGroup> cache_groups(const ModelConfig& config) const;  // one full group unless overridden
  virtual ModelOutputs build_graph(Graph& graph, const Model& model, CacheTypes cache) const = 0;
};

struct ArchitectureEntry {
  std::string_view name;  // general.architecture
  std::unique_ptr<Architecture> (*create)();
};

// All architectures, by name.
std::span<const ArchitectureEntry> all_architectures();
// Throws Error(kUnsupported) with the list of known ones.
std::unique_ptr<Architecture> create_architecture(std::string_view name);

}  // namespace infer
