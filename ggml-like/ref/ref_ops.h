// The launch functions of the reference operations, one file per operation or family; ref_device.cpp lists them.
#pragma once

#include "ggml-like/backend.h"

namespace infer::ref {

void embed(const Prepared&, const HostLaunch& launch, Stream&);
void select_rows(const Prepared&, const HostLaunch& launch, Stream&);
void matmul(const Prepared&, const HostLaunch& launch, Stream&);
void matmul_experts(const Prepared&, const HostLaunch& launch, Stream&);
void rms_norm(const Prepared&, const HostLaunch& launch, Stream&);
void layer_norm(const Prepared&, const HostLaunch& launch, Stream&);
void add(const Prepared&, const HostLaunch& launch, Stream&);
void mul(const Prepared&, const HostLaunch& launch, Stream&);
void scale(const Prepared&, const HostLaunch& launch, Stream&);
void unary(const Prepared&, const HostLaunch& launch, Stream&);
void gated_activation(const Prepared&, const HostLaunch& launch, Stream&);
void rope_table(const Prepared&, const HostLaunch& launch, Stream&);
void rope(const Prepared&, const HostLaunch& launch, Stream&);
void kv_store(const Prepared&, const HostLaunch& launch, Stream&);
void paged_attention(const Prepared&, const HostLaunch& launch, Stream&);
void moe_route(const Prepared&, const HostLaunch& launch, Stream&);
void moe_combine(const Prepared&, const HostLaunch& launch, Stream&);
void top_k(const Prepared&, const HostLaunch& launch, Stream&);

// f(x) of a unary kind, in double.
double activate(UnaryKind kind, double x);

}  // namespace infer::ref
