#include "tests/support/plan_memory.h"

namespace infer::test {

PlanMemory::PlanMemory(Plan& plan, std::span<Device* const> devices, std::span<Stream* const> streams,
                       const StepLayout& layout) {
  const auto keep = [&](std::unique_ptr<Buffer> buffer) { return buffers_.emplace_back(std::move(buffer)).get(); };
  for (size_t d = 0; d < devices.size(); ++d) {
    const int index = static_cast<int>(d);
    PlanBinding& b =
        bindings_.emplace_back(PlanBinding{streams[d], keep(devices[d]->allocate(plan.arena_bytes(index)))});
    if (devices[d]->is_host()) continue;
    b.step = keep(devices[d]->allocate(layout.bytes()));
    b.staging = keep(devices[d]->allocate_staging(plan.staging_bytes(index)));
  }
  plan.bind(bindings_, layout);
}

std::vector<float> output_values(const Plan& plan, ValueId value, const StepView& step) {
  const TensorDesc& desc = plan.graph().value(value).desc;
  const auto* data = reinterpret_cast<const float*>(plan.output_rows(value));
  std::vector<float> values;
  for (int64_t r = 0; r < step.row_count(desc.rows, desc.shape[0]); ++r) {
    const float* row = data + r * desc.row_stride;
    values.insert(values.end(), row, row + desc.shape.row_elements());
  }
  return values;
}

}  // namespace infer::test
