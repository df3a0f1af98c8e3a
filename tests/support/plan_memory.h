// The memory of a plan that a test runs without an engine.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ggml-like/plan.h"

namespace infer::test {

// Arenas, step buffers and staging memory of one plan, which is bound to them. `streams` has one stream per device.
class PlanMemory {
 public:
  PlanMemory(Plan& plan, std::span<Device* const> devices, std::span<Stream* const> streams, const StepLayout& layout);
  Buffer& arena(int device) const { return *bindings_[static_cast<size_t>(device)].arena; }

 private:
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<PlanBinding> bindings_;
};

// The rows of an F32 output that hold data, after a run, without the gaps between the rows of a view.
std::vector<float> output_values(const Plan& plan, ValueId value, const StepView& step);

}  // namespace infer::test
