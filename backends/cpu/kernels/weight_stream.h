// A thread reads weights as one stream: its part of a matrix in order, then its part of the next one. What is
// prefetched lies a fixed distance ahead in it, so that memory is busy across rows, pieces and operations. Included
// inside an anonymous namespace after a SIMD header.

constexpr int64_t kPrefetchDistance = 61440;  // bytes

// What lies in the stream of weights where p would be if it went on for ever.
INFER_SIMD const uint8_t* in_stream(const MatmulArgs& a, const uint8_t* p) {
  return p < a.stream_end ? p : a.next + (p - a.stream_end);
}

// Part I of N of the kBytes from p on, p already in the stream. Spread over the work on a block, prefetches leave room
// among a core's outstanding misses for the loads of that work; in one burst they do not.
template <int I, int N, int kBytes>
INFER_SIMD void prefetch_part(const uint8_t* p) {
  constexpr int kLines = (kBytes + 63) / 64;
#pragma GCC unroll 64
  for (int i = I * kLines / N; i < (I + 1) * kLines / N; ++i) __builtin_prefetch(p + 64 * i, 0, 2);
}
