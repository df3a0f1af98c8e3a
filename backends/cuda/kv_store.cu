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
      BlockQ4_0& b = reinterpret_cast<BlockQ4_0*>(row)[first / kBlock32];
      const unsigned at_largest = __ballot_sync(kAllLanes, magnitude == largest && largest > 0);
      const float leader = __shfl_sync(kAllLanes, value, at_largest ? __ffs(static_cast<int>(at_largest)) - 1 : 0);
      const RowScale scale = row_scale(at_largest ? leader / -8.0f : 0.0f);
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
