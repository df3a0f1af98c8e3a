// Shared by the reference operations: one file per operation or family, which ends with its records.
#pragma once

#include "ggml-like/backend.h"

namespace infer::ref {

// The operations of each file; ref_device.cpp lists the files.
std::span<const OpRecord> attention_ops();
std::span<const OpRecord> columns_ops();
std::span<const OpRecord> elementwise_ops();
std::span<const OpRecord> matmul_ops();
std::span<const OpRecord> moe_ops();
std::span<const OpRecord> norm_ops();
std::span<const OpRecord> recurrent_ops();
std::span<const OpRecord> rope_ops();
std::span<const OpRecord> rows_ops();
std::span<const OpRecord> sparse_attention_ops();
std::span<const OpRecord> streams_ops();

bool supports_all(const OpDesc& op, const Device&);  // every type that has to_float
std::unique_ptr<Prepared> nothing_to_prepare(const OpDesc&, Device&);
template <void (*kKernel)(const Prepared&, const HostLaunch&, Stream&)>
constexpr OpRecord reference(Op op) {
  return {op, supports_all, nothing_to_prepare, launch_on_host<kKernel>};
}

// f(x) of a unary kind, in double.
double activate(UnaryKind kind, double x);

}  // namespace infer::ref
