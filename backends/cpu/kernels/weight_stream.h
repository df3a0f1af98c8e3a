// A thread reads weights as one stream: its part of a matrix in order, then its part of the next one. What is
// prefetched lies a fixed distance ahead in it, so that memory is busy across rows, pieces and operations. Included
// inside an anonymous namespace after a SIMD header.

constexpr int64_t kPrefetchDistance = 61440;  // bytes

// What lies in the stream of weights where p would be if it went on for ever.
INFER_SIMD const uint8_t* in_stream(const ProductArgs& a, const uint8_t* p) {
  return p < a.stream_end ? p : a.next + (p - a.stream_end);
}
INFER_SIMD void prefetch_ahead(const ProductArgs& a, const uint8_t* p, int64_t bytes) {
  const uint8_t* from = in_stream(a, p);
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
}
