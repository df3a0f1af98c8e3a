// Collects an importance matrix from the matmuls of a running model. One thread.
#pragma once

#include "ggml-like/plan.h"
#include "tools/imatrix/importance_sums.h"

namespace infer {

class ImportanceCollector {
 public:
  void add(const ProductInput& input);
  // Without datasets and chunk counts.
  const ImportanceSums& sums() const { return sums_; }

 private:
  ImportanceSums sums_;
};

}  // namespace infer
