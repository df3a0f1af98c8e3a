// Shared by plan.cpp, which makes a plan, and plan_run.cpp, which runs it.
#pragma once

#include <memory>
#include <vector>

#include "ggml-like/plan.h"

namespace infer {

// A root value and the nodes during which it is on a device, `first` to `last` inclusive.
struct Plan::Place {
  ValueId root;
  int device;
  int first, last;
  size_t bytes;
  size_t offset;
};

struct Plan::NodeState {
  std::unique_ptr<Prepared> prepared;
  std::vector<const TensorDesc*> input_descs, output_descs;
  std::vector<TensorRef> inputs, outputs;
};

// From the start of the first row to the end of the last one; the rows of a view may have other values between them.
inline size_t bytes_of_rows(const TensorDesc& desc, int64_t rows) {
  if (rows == 0) return 0;
  const TypeTraits& t = traits(desc.type);
  const int64_t elements = (rows - 1) * desc.row_stride + desc.shape.row_elements();
  return static_cast<size_t>(elements) / t.block_size * t.type_size;
}

}  // namespace infer
