// Shared by the operations of this backend. Only matmul is computed here; the wrapped device computes the others.
#pragma once

#include "backends/blas/blas_device.h"
#include "backends/blas/openblas.h"

namespace infer::blas {

class BlasDevice : public Device {
 public:
  virtual Device& wrapped() const = 0;
  virtual const OpenBlas& library() const = 0;
  virtual const BlasOptions& options() const = 0;
};

// A node as the wrapped device prepared it.
struct WrappedNode : Prepared {
  const OpRecord* record = nullptr;
  std::unique_ptr<Prepared> prepared;
};
// REQUIRES that the wrapped device supports the operation.
void prepare_wrapped(const OpDesc& op, const BlasDevice& device, WrappedNode& node);
void launch_wrapped(const Prepared& node, const HostLaunch& launch, Stream& stream);

std::unique_ptr<Prepared> prepare_matmul(const OpDesc& op, Device& device);
void matmul(const Prepared& prepared, const HostLaunch& launch, Stream& stream);

}  // namespace infer::blas
