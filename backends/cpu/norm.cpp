// rms_norm, layer_norm, rms, softmax and sparsify over the last dimension.
#include "backends/cpu/cpu_ops.h"

namespace infer::cpu {
namespace {

// Calls f(vector of x, its result, length) for each vector.
template <typename F>
void for_each_vector(const HostLaunch& launch, Stream& stream, const F& f) {
  const TensorRef &x = launch.inputs[0], &out = launch.outputs[0];
  const int64_t d = x.desc->shape.last(), per_row = x.desc->shape.row_elements() / d, n_out = out.desc->shape.last();
  parallel_ranges(
      cpu(stream), launch.rows(x) * per_row, std::max<int64_t>(1, 8192 / d), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          f(x.data<float>() + i / per_row * x.desc->row_stride + i % per_row * d, out.data<float>() + i * n_out, d);
        }
      });
}

const float* optional(const TensorRef& t) { return t ? t.data<float>() : nullptr; }

void rms_norm(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const float* weight = optional(launch.inputs[1]);
  const float eps = launch.param<NormParams>().eps;
  const KernelTable& kernels = cpu(stream).kernels();
  for_each_vector(launch, stream, [&](const float* x, float* y, int64_t d) { kernels.rms_norm(x, weight, eps, y, d); });
}

void layer_norm(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const float *weight = optional(launch.inputs[1]), *bias = optional(launch.inputs[2]);
  const float eps = launch.param<NormParams>().eps;
  const KernelTable& kernels = cpu(stream).kernels();
  for_each_vector(launch, stream,
                  [&](const float* x, float* y, int64_t d) { kernels.layer_norm(x, weight, bias, eps, y, d); });
}

void rms(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const KernelTable& kernels = cpu(stream).kernels();
  for_each_vector(launch, stream, [&](const float* x, float* y, int64_t d) { *y = kernels.rms(x, d); });
}

void softmax(const Prepared&, const HostLaunch& launch, Stream& stream) {
  for_each_vector(launch, stream, cpu(stream).kernels().softmax);
}

void sparsify(const Prepared&, const HostLaunch& launch, Stream& stream) {
  const float factor = launch.param<SparsifyParams>().factor;
  const KernelTable& kernels = cpu(stream).kernels();
  for_each_vector(launch, stream, [&](const float* x, float* y, int64_t d) { kernels.sparsify(x, factor, y, d); });
}

}  // namespace

std::span<const OpRecord> norm_ops() {
  static constexpr OpRecord kRecords[] = {
      {Op::kRmsNorm, supports_any, nothing_to_prepare, launch_on_host<rms_norm>},
      {Op::kLayerNorm, supports_any, nothing_to_prepare, launch_on_host<layer_norm>},
      {Op::kRms, supports_any, nothing_to_prepare, launch_on_host<rms>},
      {Op::kSoftmax, supports_any, nothing_to_prepare, launch_on_host<softmax>},
      {Op::kSparsify, supports_any, nothing_to_prepare, launch_on_host<sparsify>},
  };
  return kRecords;
}

}  // namespace infer::cpu
