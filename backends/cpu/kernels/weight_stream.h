// A thread reads weights as one stream: its part of a matrix in order, then its part of the next one. It prefetches a
// fixed distance ahead in that stream, which keeps memory busy across rows, pieces and operations. Included
// inside an anonymous namespace after a SIMD header.

constexpr int64_t kPrefetchDistance = 61440;  // bytes

// The address to prefetch for p: p itself, or past the end of this thread's part, the place in its next part.
INFER_SIMD const uint8_t* in_stream(const MatmulArgs& a, const uint8_t* p) {
  return p < a.stream_end ? p : a.next + (p - a.stream_end);
}

// Prefetches part I of N of the kBytes from p on, an address from in_stream(). Spread over the work on a block,
// prefetches leave room among a core's outstanding misses for the loads of that work; a burst would not.
template <int I, int N, int kBytes>
INFER_SIMD void prefetch_part(const uint8_t* p) {
  constexpr int kLines = (kBytes + 63) / 64;
#pragma GCC unroll 64
  for (int i = I * kLines / N; i < (I + 1) * kLines / N; ++i) __builtin_prefetch(p + 64 * i, 0, 2);
}
