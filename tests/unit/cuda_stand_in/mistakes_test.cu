// Kernels with mistakes that on a GPU would go unnoticed or give wrong results: the stand-in finds each of them, and
// nothing in the same kernel without the mistake.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/kernel.h"
#include "tests/cuda_stand_in/failure.h"
#include "tests/support/skip.h"

using infer::cuda::shared_memory;

namespace {

constexpr unsigned kThreads = 64;
struct Values {
  int at[kThreads];
};

// The stand-in's verdict on a kernel that gets an array of `n` integers; "" if nothing was found.
template <typename Kernel>
std::string verdict(Kernel kernel, unsigned blocks, int n, bool mistaken) {
  void* data = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaMalloc(&data, static_cast<size_t>(n) * sizeof(int)) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(data, 0, static_cast<size_t>(n) * sizeof(int), stream) == cudaSuccess);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  REQUIRE(cudaLaunchKernelEx(&config, kernel, static_cast<int*>(data), mistaken) == cudaSuccess);
  const cudaError_t error = cudaStreamSynchronize(stream);
  const std::string found = cuda_stand_in::take_failure();
  CHECK((error == cudaSuccess) == found.empty());
  cudaStreamDestroy(stream);
  cudaFree(data);
  return found;
}

// Runs the kernel in two launches, which run in different orders, without its mistake and with it.
template <typename Kernel>
void check_finds(const char* expected, Kernel kernel, unsigned blocks = 1, int n = kThreads) {
  for (int run = 0; run < 2; ++run) {
    CHECK(verdict(kernel, blocks, n, false) == "");
    const std::string found = verdict(kernel, blocks, n, true);
    CHECK_MESSAGE(found.find(expected) != std::string::npos,
                  "expected \"" << std::string(expected) << "\", found \"" << found << "\"");
  }
}

__global__ void write_one_too_many(int* data, bool mistaken) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  data[mistaken ? i + 1 : i] = 1;
}

__global__ void read_before_the_array(int* data, bool mistaken) {
  const int i = static_cast<int>(threadIdx.x);
  const int read = data[mistaken ? i - 1 : i];
  __syncthreads();
  data[i] = read;
}

__global__ void write_across_two_words(int* data, bool mistaken) {
  char* const place = reinterpret_cast<char*>(data) + (mistaken ? 2 : 0);
  if (threadIdx.x == 0) *reinterpret_cast<int*>(place) = 1;
}

// Loads four words from an address that is aligned for one.
__global__ void copy_a_vector_from_a_word(int* data, bool mistaken) {
  if (threadIdx.x > 0) return;
  *reinterpret_cast<int4*>(data + 8) = *reinterpret_cast<const int4*>(data + (mistaken ? 1 : 0));
}

// REQUIRES that `data` points to memory of two devices, the first element on device 0.
__global__ void use_memory_of_another_device(int* data, bool mistaken) {
  int* const others = *reinterpret_cast<int* const*>(data);
  if (threadIdx.x == 0) data[4] = mistaken ? *others : 1;
}

__global__ void skip_the_barrier(int* data, bool mistaken) {
  Values& values = shared_memory<Values>();
  values.at[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (!mistaken) __syncthreads();
  data[threadIdx.x] = values.at[kThreads - 1 - threadIdx.x];
}

__global__ void write_what_is_still_read(int* data, bool mistaken) {
  Values& values = shared_memory<Values>();
  values.at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  const int read = values.at[(threadIdx.x + 1) % kThreads];
  if (!mistaken) __syncthreads();
  values.at[threadIdx.x] = read;
  data[threadIdx.x] = read;
}

// A barrier of the warp does not order it with another warp.
__global__ void order_one_warp_only(int* data, bool mistaken) {
  Values& values = shared_memory<Values>();
  values.at[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  data[threadIdx.x] = values.at[mistaken ? (threadIdx.x + 32) % kThreads : threadIdx.x ^ 1];
}

__global__ void forget_to_order_a_warp(int* data, bool mistaken) {
  Values& values = shared_memory<Values>();
  values.at[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (!mistaken) __syncwarp();
  data[threadIdx.x] = values.at[threadIdx.x ^ 1];
}

__global__ void half_of_a_block_waits(int* data, bool mistaken) {
  if (mistaken && threadIdx.x >= kThreads / 2) return;
  __syncthreads();
  data[threadIdx.x] = 1;
}

__global__ void wait_at_two_barriers(int* data, bool mistaken) {
  if (mistaken && threadIdx.x % 2 == 1) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  data[threadIdx.x] = 1;
}

__global__ void shuffle_without_itself(int* data, bool mistaken) {
  const unsigned mask = mistaken ? 0x0000ffffu : 0xffffffffu;
  data[threadIdx.x] = __shfl_xor_sync(mask, static_cast<int>(threadIdx.x), 1);
}

__global__ void shuffle_with_an_ended_lane(int* data, bool mistaken) {
  if (mistaken && threadIdx.x % 32 == 7) return;
  data[threadIdx.x] = __shfl_xor_sync(~0u, static_cast<int>(threadIdx.x), 1);
}

__global__ void two_blocks_write_one_place(int* data, bool mistaken) {
  data[mistaken ? threadIdx.x : blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void add_without_an_atomic(int* data, bool mistaken) {
  if (mistaken) data[0] += 1;
  else atomicAdd(data, 1);
}

__global__ void too_much_shared_memory(int* data, bool mistaken) {
  struct Most {
    char bytes[40 << 10];
  };
  struct More {
    char bytes[20 << 10];
  };
  data[threadIdx.x] = 1;
  if (threadIdx.x > 0) return;
  shared_memory<Most>().bytes[0] = 1;
  if (mistaken) shared_memory<More>().bytes[0] = 1;
}

int memory_of_the_host = 0;
__global__ void use_memory_of_the_host(int* data, bool mistaken) {
  if (threadIdx.x == 0) *(mistaken ? &memory_of_the_host : data) = 1;
}

// A value in shared memory that nobody has written is a NaN.
__global__ void read_what_nobody_wrote(int* data, bool mistaken) {
  struct Float {
    float value;
  };
  Float& shared = shared_memory<Float>();
  if (threadIdx.x == 0 && !mistaken) shared.value = 1;
  __syncthreads();
  data[threadIdx.x] = shared.value == 1;
}

struct Vectors {
  uint4 at[kThreads];
};

__global__ void read_before_the_copy_is_awaited(int* data, bool mistaken) {
  Vectors& vectors = shared_memory<Vectors>();
  infer::cuda::copy_async(&vectors.at[threadIdx.x], data, true);
  infer::cuda::commit_copies();
  if (!mistaken) infer::cuda::wait_copies<0>();
  __syncthreads();
  const unsigned read = vectors.at[(threadIdx.x + 1) % kThreads].z;
  __syncthreads();
  data[threadIdx.x] = read == 0;
}

__global__ void await_too_few_groups(int* data, bool mistaken) {
  Vectors& vectors = shared_memory<Vectors>();
  infer::cuda::copy_async(&vectors.at[threadIdx.x], data, false);
  infer::cuda::commit_copies();
  if (mistaken) infer::cuda::wait_copies<1>();
  else infer::cuda::wait_copies<0>();
  __syncthreads();
  data[threadIdx.x] = vectors.at[(threadIdx.x + 1) % kThreads].z == 0;
}

__global__ void copy_to_what_is_still_read(int* data, bool mistaken) {
  Vectors& vectors = shared_memory<Vectors>();
  vectors.at[threadIdx.x] = make_uint4(1, 1, 1, 1);
  __syncthreads();
  const unsigned read = vectors.at[(threadIdx.x + 1) % kThreads].x;
  if (!mistaken) __syncthreads();
  infer::cuda::copy_async(&vectors.at[threadIdx.x], data, true);
  infer::cuda::commit_copies();
  infer::cuda::wait_copies<0>();
  __syncthreads();
  data[threadIdx.x] = static_cast<int>(read + vectors.at[threadIdx.x].y);
}

__global__ void load_a_vector_between_vectors(int* data, bool mistaken) {
  const uint4 v = infer::cuda::load_vector(data + (mistaken ? 1 : 0));
  __syncthreads();
  data[threadIdx.x] = static_cast<int>(v.x);
}

// Lane 4 * g + t holds (g, 2t) and (g, 2t + 1) of each matrix; transposed, (2t, g) and (2t + 1, g).
__global__ void load_matrices_of_a_warp(int* data, bool transposed) {
  struct alignas(16) Matrices {
    uint16_t at[4][8][8];
  };
  Matrices& m = shared_memory<Matrices>();
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  if (threadIdx.x < 32) {
    for (unsigned c = 0; c < 8; ++c) m.at[lane / 8][lane % 8][c] = static_cast<uint16_t>(8 * lane + c);
  }
  __syncthreads();
  uint32_t words[4];
  if (transposed) infer::cuda::load_transposed(words, m.at[lane / 8][lane % 8]);
  else infer::cuda::load_matrices(words, m.at[lane / 8][lane % 8]);
  bool right = true;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned low = 64 * i + (transposed ? 16 * t + g : 8 * g + 2 * t), high = low + (transposed ? 8 : 1);
    right = right && words[i] == (low | high << 16);
  }
  data[threadIdx.x] = right;
}

// What a kernel leaves in the first of kThreads integers that were zero.
template <typename Kernel>
int first_result(Kernel kernel, bool mistaken) {
  cudaStream_t stream = nullptr;
  void *data = nullptr, *host = nullptr;
  const size_t bytes = kThreads * sizeof(int);
  REQUIRE(cudaMalloc(&data, bytes) == cudaSuccess);
  REQUIRE(cudaHostAlloc(&host, bytes, cudaHostAllocDefault) == cudaSuccess);
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  cudaMemsetAsync(data, 0, bytes, stream);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  cudaLaunchKernelEx(&config, kernel, static_cast<int*>(data), mistaken);
  cudaMemcpyAsync(host, data, bytes, cudaMemcpyDeviceToHost, stream);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  const int result = static_cast<int*>(host)[5];
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
  cudaFree(data);
  return result;
}

}  // namespace

// False with the address sanitizer, which checks accesses itself and ends the program.
static bool accesses_are_checked() {
#ifdef __SANITIZE_ADDRESS__
  infer::test::skip("mistakes with memory in kernels", "the address sanitizer replaces the stand-in's checks");
  return false;
#else
  return true;
#endif
}

TEST_CASE("accesses outside an allocation are found") {
  if (!accesses_are_checked()) return;
  check_finds("outside every allocation", write_one_too_many);
  check_finds("outside every allocation", read_before_the_array);
  check_finds("memory of the host", use_memory_of_the_host);
}

TEST_CASE("an access to memory of another device is found") {
  if (!accesses_are_checked()) return;
  for (const bool mistaken : {false, true}) {
    cudaStream_t stream = nullptr;
    void *mine = nullptr, *other = nullptr, *pinned = nullptr;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    REQUIRE(cudaMalloc(&other, sizeof(int)) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    REQUIRE(cudaMalloc(&mine, 64) == cudaSuccess);
    REQUIRE(cudaHostAlloc(&pinned, sizeof other, cudaHostAllocDefault) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    std::memcpy(pinned, &other, sizeof other);
    REQUIRE(cudaMemcpyAsync(mine, pinned, sizeof other, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(kThreads);
    config.stream = stream;
    REQUIRE(cudaLaunchKernelEx(&config, use_memory_of_another_device, static_cast<int*>(mine), mistaken) ==
            cudaSuccess);
    cudaStreamSynchronize(stream);
    const std::string found = cuda_stand_in::take_failure();
    CHECK((found.find("of another device") != std::string::npos) == mistaken);
    cudaStreamDestroy(stream);
    cudaFreeHost(pinned);
    cudaFree(mine);
    cudaFree(other);
  }
}

TEST_CASE("accesses that are not aligned are found") {
  if (!accesses_are_checked()) return;
  check_finds("not aligned", write_across_two_words);
  check_finds("not aligned", copy_a_vector_from_a_word);
}

TEST_CASE("accesses without a barrier between them are found") {
  if (!accesses_are_checked()) return;
  check_finds("shared memory that thread", skip_the_barrier);
  check_finds("shared memory that thread", write_what_is_still_read);
  check_finds("shared memory that thread", order_one_warp_only);
  check_finds("shared memory that thread", forget_to_order_a_warp);
  check_finds("another block writes", two_blocks_write_one_place, 3, 3 * kThreads);
  check_finds("device memory that thread", add_without_an_atomic);
}

TEST_CASE("barriers that not all threads reach are found") {
  check_finds("have ended", half_of_a_block_waits);
  check_finds("wait elsewhere", wait_at_two_barriers);
}

TEST_CASE("wrong masks of shuffles are found") {
  check_finds("is not in the mask 0x0000ffff", shuffle_without_itself);
  check_finds("have ended", shuffle_with_an_ended_lane);
}

TEST_CASE("too much shared memory is found") { check_finds("exceeds", too_much_shared_memory); }

TEST_CASE("copies to memory that is still read, and misaligned vectors, are found") {
  if (!accesses_are_checked()) return;
  check_finds("shared memory that thread", copy_to_what_is_still_read);
  check_finds("not aligned", load_a_vector_between_vectors);
}

TEST_CASE("the targets of copies are NaN until their group is awaited") {
  CHECK(first_result(read_before_the_copy_is_awaited, false) == 1);
  CHECK(first_result(read_before_the_copy_is_awaited, true) == 0);
  CHECK(first_result(await_too_few_groups, false) == 1);
  CHECK(first_result(await_too_few_groups, true) == 0);
}

TEST_CASE("lanes get their parts of matrices") {
  CHECK(first_result(load_matrices_of_a_warp, false) == 1);
  CHECK(first_result(load_matrices_of_a_warp, true) == 1);
}

TEST_CASE("shared memory starts out as NaN") {
  CHECK(first_result(read_what_nobody_wrote, false) == 1);
  CHECK(first_result(read_what_nobody_wrote, true) == 0);
}
