// kv_store, and where the rows of a cache are.
#include "backends/cuda/attention.cuh"
#include "backends/cuda/launch.h"

namespace infer::cuda {

CacheShape cache_shape(const Launch& launch) {
  const CacheDesc& d = *launch.cache.desc;
  const StepLayout& layout = *launch.step_layout;
  const int32_t* const step = step_address(launch);
  CacheShape s = {};
  s.data =
      reinterpret_cast<uint8_t*>(static_cast<const CudaBuffer&>(*launch.cache.buffer).data() + launch.cache.offset);
  s.n_kv_head = d.n_kv_head;
  s.key_dim = d.key_dim;
  s.value_dim = d.value_dim;
  s.key_type = d.key_type;
  s.value_type = d.latent ? d.key_type : d.value_type;
  s.key_row = static_cast<int>(row_bytes(d.key_type, d.key_dim));
  s.value_row = static_cast<int>(row_bytes(s.value_type, d.stored_value_dim()));
  s.latent = d.latent;
  s.stride = d.stride;
  s.entries = d.entries_per_block();
  s.block_bytes = static_cast<int64_t>(s.n_kv_head) * s.entries * (s.key_row + s.value_row);
  s.positions = step + layout.positions_at;
  s.sequences = step + layout.sequences_at;
  s.lengths = step + layout.lengths_at;
  s.table = step + layout.tables_at(d.group);
  s.table_stride = layout.capacity.blocks_per_sequence;
  return s;
}

bool supports_cache(const OpDesc& op, const Device& device) {
  const CacheDesc& cache = *op.cache;
  return has_grid(op, device) && is_cache_type(cache.key_type) && (cache.latent || is_cache_type(cache.value_type));
}

namespace {

constexpr unsigned kThreads = 128;

struct RowScale {
  uint16_t half;
  float inverse;  // 0 for a scale of 0
};
__device__ inline RowScale row_scale(float d) {
  const uint16_t half = float_to_half(d > 65504.0f ? 65504.0f : d < -65504.0f ? -65504.0f : d);
  const float kept = half_to_float(half);
  return {half, kept != 0 ? 1.0f / kept : 0.0f};
}
// NaN becomes the lowest code.
__device__ inline int code_of(float x, float lowest, float highest) {
  x = x > lowest ? x : lowest;
  return __float2int_rn(x < highest ? x : highest);
}

// Scale and minimum of a block, and the factor for the values.
struct BlockScale {
  float d, m, inverse;
};
__device__ inline float clamp_to_half(float x) { return x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x; }
// The inverse is that of the scale before it is rounded, and 0 where the rounded one is.
__device__ inline BlockScale block_scale(float d, float m) {
  d = clamp_to_half(d);
  return {d, m, half_to_float(float_to_half(d)) != 0 ? 1.0f / d : 0.0f};
}
// NaN becomes 0.
__device__ inline int truncate(float x, int highest) {
  return x > 0 ? x < static_cast<float>(highest) ? static_cast<int>(x) : highest : 0;
}

// The number of midpoints between neighbouring values of the codebook that x is not below.
__device__ inline int nearest_iq4_nl(float x) {
  int code = 0;
  for (uint32_t i = 0; i < 15; ++i) {
    code += x - CachePacked::codebook_value(i) >= CachePacked::codebook_value(i + 1) - x;
  }
  return code;
}
// The scale with the least weighted error for these codes. The sums are in the order of the values.
__device__ inline float iq4_nl_scale(float value, int code, float first) {
  const float level = CachePacked::codebook_value(static_cast<uint32_t>(code));
  const float weighted = __fmul_rn(__fmul_rn(value, value), level);
  const float by_value = __fmul_rn(weighted, value), by_square = __fmul_rn(weighted, level);
  float value_sum = 0, square_sum = 0;
  for (int lane = 0; lane < static_cast<int>(kWarp); ++lane) {
    value_sum = __fadd_rn(value_sum, __shfl_sync(kAllLanes, by_value, lane));
    square_sum = __fadd_rn(square_sum, __shfl_sync(kAllLanes, by_square, lane));
  }
  const float best = value_sum / square_sum;
  return fabsf(best) <= 3.402823466e38f ? best : first;
}

// A warp stores a block of one of the types of CachePacked. `leader` is the first value of the largest magnitude.
__device__ void store_packed(DataType type, float value, float leader, uint16_t* row, int first) {
  const CachePacked format(type);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  auto* const block = row + first / kBlock32 * (format.nibbles_at() + 8);
  BlockScale scale;
  int code;
  if (format.codebook) {
    const float base = leader / -127.0f;
    scale = {0, 0, fabsf(leader) < 1e-15f ? 0.0f : 1.0f / base};
    code = nearest_iq4_nl(__fmul_rn(scale.inverse, value));
    const float best = iq4_nl_scale(value, code, base);
    scale.d = clamp_to_half(scale.inverse != 0 ? best : base);
  } else if (format.minimum) {
    const float high = warp_max(value == value ? value : -INFINITY);
    const float low = -warp_max(value == value ? -value : -INFINITY);
    const int highest = format.fifth_bits ? 31 : 15;
    const float m = low <= high ? clamp_to_half(low) : 0.0f;
    scale = block_scale(low <= high ? __fadd_rn(high, -m) / static_cast<float>(highest) : 0.0f, m);
    code = truncate(__fadd_rn(__fmul_rn(__fadd_rn(value, -m), scale.inverse), 0.5f), highest);
  } else {
    scale = block_scale(leader / -16.0f, 0);
    code = truncate(__fadd_rn(__fmul_rn(value, scale.inverse), 16.5f), 31);
  }
  const unsigned fifths = __ballot_sync(kAllLanes, code >> 4);
  // Lanes 0, 2, ..., 14 store two bytes each.
  const int both = (code & 15) | (__shfl_down_sync(kAllLanes, code, 16) & 15) << 4;
  const int next = __shfl_down_sync(kAllLanes, both, 1);
  if (lane < 16 && lane % 2 == 0) block[format.nibbles_at() + lane / 2] = static_cast<uint16_t>(both | next << 8);
  if (lane != 0) return;
  block[0] = float_to_half(scale.d);
  if (format.minimum) block[1] = float_to_half(scale.m);
  if (!format.fifth_bits) return;
  block[format.bits_at()] = static_cast<uint16_t>(fifths);
  block[format.bits_at() + 1] = static_cast<uint16_t>(fifths >> 16);
}

// A warp stores up to 32 values of a row, beginning at `first`, a multiple of 32.
__device__ void store_row(DataType type, const float* x, int first, int dim, uint8_t* row) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), i = first + lane;
  const float value = i < dim ? x[i] : 0.0f;
  if (type == DataType::kF32) {
    if (i < dim) reinterpret_cast<float*>(row)[i] = value;
  } else if (type == DataType::kF16) {
    if (i < dim) reinterpret_cast<uint16_t*>(row)[i] = float_to_half(value);
  } else if (type == DataType::kBF16) {
    if (i < dim) reinterpret_cast<uint16_t*>(row)[i] = float_to_bfloat(value);
  } else {
    // The first value of the largest magnitude; NaN is never the largest.
    float magnitude = fabsf(value) >= 0 ? fabsf(value) : 0.0f;
    const float largest = warp_max(magnitude);
    if (type == DataType::kQ8_0) {
      BlockQ8_0& b = reinterpret_cast<BlockQ8_0*>(row)[first / kBlock32];
      const RowScale scale = row_scale(largest / 127.0f);
      if (lane == 0) b.d = scale.half;
      b.qs[lane] = static_cast<int8_t>(code_of(value * scale.inverse, -127, 127));
    } else {
      const unsigned at_largest = __ballot_sync(kAllLanes, magnitude == largest && largest > 0);
      const float first_of_largest =
          __shfl_sync(kAllLanes, value, at_largest ? __ffs(static_cast<int>(at_largest)) - 1 : 0);
      const float leader = at_largest ? first_of_largest : 0.0f;
      if (CachePacked::is(type)) return store_packed(type, value, leader, reinterpret_cast<uint16_t*>(row), first);
      BlockQ4_0& b = reinterpret_cast<BlockQ4_0*>(row)[first / kBlock32];
      const RowScale scale = row_scale(leader / -8.0f);
      const int code = 8 + code_of(value * scale.inverse, -8, 7);
      const int high = __shfl_down_sync(kAllLanes, code, 16);
      if (lane == 0) b.d = scale.half;
      if (lane < 16) b.qs[lane] = static_cast<uint8_t>(code | high << 4);
    }
  }
}

// A warp per 32 values of a head's key or value.
__global__ void kv_store_kernel(CacheShape s, RowCount count, const float* k, int64_t k_stride, const float* v,
                                int64_t v_stride) {
  const int64_t token = blockIdx.y;
  if (token >= count.rows()) return;
  const int key_parts = (s.key_dim + 31) / 32, parts = key_parts + (s.latent ? 0 : (s.value_dim + 31) / 32);
  const int i = static_cast<int>(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp), head = i / parts,
            part = i % parts;
  if (head >= s.n_kv_head) return;
  const int position = s.positions[token];
  if ((position + 1) % s.stride != 0) return;  // an entry is stored by the last of its positions
  uint8_t* const block = s.block_of(s.sequences[token], position);
  const int slot = position / s.stride % s.entries;
  if (part < key_parts) {
    store_row(s.key_type, k + token * k_stride + head * s.key_dim, 32 * part, s.key_dim, s.key(block, head, slot));
  } else {
    store_row(s.value_type, v + token * v_stride + head * s.value_dim, 32 * (part - key_parts), s.value_dim,
              s.value(block, head, slot));
  }
}

void kv_store(const Prepared&, const Launch& launch, Stream& stream) {
  const CacheShape s = cache_shape(launch);
  const TensorRef &k = launch.inputs[0], &v = launch.inputs[1];
  const int parts = (s.key_dim + 31) / 32 + (s.latent ? 0 : (s.value_dim + 31) / 32);
  const dim3 grid(blocks_for(int64_t{s.n_kv_head} * parts, kThreads / kWarp), static_cast<unsigned>(rows_of(k)));
  launch_kernel(cuda_stream(stream), {grid, kThreads}, kv_store_kernel, s, row_count(launch, *k.desc),
                address<const float>(k), k.desc->row_stride, address<const float>(v), v ? v.desc->row_stride : 0);
}

}  // namespace

std::span<const OpRecord> kv_store_ops() {
  static constexpr OpRecord kRecords[] = {{Op::kKvStore, supports_cache, nothing_to_prepare, kv_store}};
  return kRecords;
}

}  // namespace infer::cuda
