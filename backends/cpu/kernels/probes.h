// Measures the peak throughput of this level, against which benchmarks report their results. Included inside an
// anonymous namespace after a SIMD header.

// Reads n bytes (a multiple of 256): four loads of 64 bytes per iteration, each line prefetched 4 KiB ahead.
int32_t probe_read(const uint8_t* p, int64_t n) {
  I sum[4] = {i_zero(), i_zero(), i_zero(), i_zero()};
  for (int64_t at = 0; at + 256 <= n; at += 256) {
    for (int j = 0; j < 4; ++j) {
      __builtin_prefetch(p + at + 64 * j + 4096, 0, 3);
      sum[j] = i_or(sum[j], i_load(p + at + 64 * j));
    }
  }
  return i_reduce_add(i_or(i_or(sum[0], sum[1]), i_or(sum[2], sum[3])));
}

// kProbeChains independent chains of dot products in registers, one of unsigned by signed bytes into int32 per
// iteration and chain: 128 operations each (a multiplication and an addition per byte).
int64_t probe_dot(int64_t turns) {
  I sum[kProbeChains];
#pragma GCC unroll 12
  for (int j = 0; j < kProbeChains; ++j) sum[j] = i_zero(), keep_in_register(sum[j]);
  I w = i_set1(0x03030303), x = i_set1(0x05050505);
  for (int64_t i = 0; i < turns; ++i) {
    keep_in_register(w);  // otherwise the compiler would compute the product only once
    keep_in_register(x);
#pragma GCC unroll 12
    for (int j = 0; j < kProbeChains; ++j) sum[j] = i_dot_u8(sum[j], w, x);
  }
  I all = i_zero();
#pragma GCC unroll 12
  for (int j = 0; j < kProbeChains; ++j) all = i_add(all, sum[j]);
  volatile int32_t sink = i_reduce_add(all);
  static_cast<void>(sink);
  return turns * kProbeChains * 128;
}

// The same with fused multiply-adds of F32, 32 operations each.
int64_t probe_fma(int64_t turns) {
  F sum[kProbeChains];
#pragma GCC unroll 12
  for (int j = 0; j < kProbeChains; ++j) sum[j] = f_zero(), keep_in_register(sum[j]);
  F w = f_set1(0.5f), x = f_set1(0.25f);
  for (int64_t i = 0; i < turns; ++i) {
    keep_in_register(w);
    keep_in_register(x);
#pragma GCC unroll 12
    for (int j = 0; j < kProbeChains; ++j) sum[j] = f_fma(w, x, sum[j]);
  }
  F all = f_zero();
#pragma GCC unroll 12
  for (int j = 0; j < kProbeChains; ++j) all = f_add(all, sum[j]);
  volatile float sink = f_reduce_add(all);
  static_cast<void>(sink);
  return turns * kProbeChains * 32;
}
