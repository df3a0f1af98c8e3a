// What the operations of the CPU backend share: device and stream as they see them, and their launch functions, one
// file per operation or family with the same name as in ggml-like/ref. cpu_device.cpp lists them.
#pragma once

#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/thread_pool.h"
#include "ggml-like/backend.h"

namespace infer::cpu {

class CpuDevice : public Device {
 public:
  virtual const KernelTable& kernels() const = 0;
  virtual int n_threads() const = 0;
  virtual MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) = 0;  // see KernelChoice::matmul()
};

class CpuStream : public HostStream {
 public:
  virtual ThreadPool& pool() = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual MatmulKernel matmul_kernel(DataType weight, int64_t n_tokens) = 0;  // see KernelChoice::matmul()
  // The weight of the next matmul of this run; null where that is not known.
  virtual const TensorRef* next_weight() const = 0;
};
inline CpuStream& cpu(Stream& stream) { return static_cast<CpuStream&>(stream); }

// Splits n items into pieces of at least `least` items and calls body(begin, end, thread).
template <typename Body>
void parallel_ranges(CpuStream& stream, int64_t n, int64_t least, const Body& body) {
  const int64_t pieces =
      std::max<int64_t>(1, std::min<int64_t>(n / std::max<int64_t>(1, least), stream.pool().size() * 4));
  stream.pool().run(pieces, [&](int64_t i, int thread) { body(n * i / pieces, n * (i + 1) / pieces, thread); });
}

bool supports_matmul(const OpDesc& op, const Device& device);
std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device);
void matmul(const Prepared&, const HostLaunch& launch, Stream&);
std::unique_ptr<Prepared> prepare_matmul_experts(const OpDesc& op, Device& device);
void matmul_experts(const Prepared&, const HostLaunch& launch, Stream&);
bool supports_attention(const OpDesc& op, const Device& device);
std::unique_ptr<Prepared> prepare_paged_attention(const OpDesc& op, Device& device);
void kv_store(const Prepared&, const HostLaunch& launch, Stream&);
void paged_attention(const Prepared&, const HostLaunch& launch, Stream&);
void rms_norm(const Prepared&, const HostLaunch& launch, Stream&);
void layer_norm(const Prepared&, const HostLaunch& launch, Stream&);
void add(const Prepared&, const HostLaunch& launch, Stream&);
void mul(const Prepared&, const HostLaunch& launch, Stream&);
void scale(const Prepared&, const HostLaunch& launch, Stream&);
void unary(const Prepared&, const HostLaunch& launch, Stream&);
void gated_activation(const Prepared&, const HostLaunch& launch, Stream&);
std::unique_ptr<Prepared> prepare_rope_table(const OpDesc& op, Device& device);
void rope_table(const Prepared&, const HostLaunch& launch, Stream&);
void rope(const Prepared&, const HostLaunch& launch, Stream&);
void embed(const Prepared&, const HostLaunch& launch, Stream&);
void select_rows(const Prepared&, const HostLaunch& launch, Stream&);
void top_k(const Prepared&, const HostLaunch& launch, Stream&);
void moe_route(const Prepared&, const HostLaunch& launch, Stream&);
void moe_combine(const Prepared&, const HostLaunch& launch, Stream&);

}  // namespace infer::cpu
