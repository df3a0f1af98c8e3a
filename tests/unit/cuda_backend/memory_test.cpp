// Memory and copies of the CUDA backend, on the stand-in.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/gpus.h"
#include "backends/cuda/host_copy.h"
#include "ggml-like/error.h"

using namespace infer;

namespace {

std::vector<std::byte> bytes_from(size_t n, unsigned first) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(first + i + i / 251);
  return bytes;
}

struct OneDevice {
  std::unique_ptr<Device> device = create_cuda_device("cuda0");
  std::unique_ptr<Stream> stream = device->create_stream();

  std::vector<std::byte> download(const Buffer& buffer) {
    std::vector<std::byte> found(buffer.size());
    stream->download(found.data(), buffer, 0, found.size());
    stream->synchronize();
    return found;
  }
};

}  // namespace

TEST_CASE("which compute capabilities code runs on") {
  using cuda::runs_on;
  CHECK(runs_on("80", 8, 0));
  CHECK(runs_on("80", 8, 9));
  CHECK(runs_on("80", 12, 0));  // its PTX
  CHECK(!runs_on("80", 7, 5));
  CHECK(runs_on("80-real", 8, 6));
  CHECK(!runs_on("80-real", 9, 0));
  CHECK(!runs_on("86-real", 8, 0));
  CHECK(runs_on("75-virtual", 9, 0));
  CHECK(runs_on("90a", 9, 0));
  CHECK(!runs_on("90a", 10, 0));
  CHECK(runs_on("100f", 10, 3));
  CHECK(!runs_on("100f", 12, 0));
  CHECK(runs_on("native", 7, 5));
  for (const char* package : {"75-real,80-real,90-real,120-real,120-virtual"}) {
    CHECK(runs_on(package, 7, 5));
    CHECK(runs_on(package, 8, 7));
    CHECK(runs_on(package, 12, 1));
    CHECK(runs_on(package, 13, 0));
    CHECK(!runs_on(package, 7, 0));
    CHECK(!runs_on(package, 10, 0));
  }
}

TEST_CASE("several threads copy every byte once") {
  for (const int threads : {1, 2, 5}) {
    cuda::HostCopy copier(threads);
    for (const size_t n : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{20481}, size_t{1} << 20}) {
      const std::vector<std::byte> from = bytes_from(n, static_cast<unsigned>(threads));
      std::vector<std::byte> to(n + 2, std::byte{0x5a});
      copier.copy(to.data() + 1, from.data(), n);
      CHECK(std::equal(from.begin(), from.end(), to.begin() + 1));
      CHECK((to.front() == std::byte{0x5a} && to.back() == std::byte{0x5a}));
    }
  }
}

TEST_CASE("an upload larger than all staging memory arrives, and its source may change at once") {
  OneDevice world;
  constexpr size_t kBytes = (size_t{40} << 20) + 12345;
  const auto buffer = world.device->allocate(kBytes);
  const std::vector<std::byte> expected = bytes_from(kBytes, 7);
  std::vector<std::byte> source = expected;
  world.stream->upload(*buffer, 0, source.data(), kBytes);
  std::fill(source.begin(), source.end(), std::byte{0});
  CHECK(std::memcmp(world.download(*buffer).data(), expected.data(), kBytes) == 0);
}

TEST_CASE("a buffer may go away while queued work uses it, and its memory comes back") {
  OneDevice world;
  const uint64_t free = world.device->memory().free;
  const auto target = world.device->allocate(1 << 16);
  const std::vector<std::byte> expected = bytes_from(1 << 16, 3);
  {
    const auto source = world.device->allocate(1 << 16);
    world.stream->upload(*source, 0, expected.data(), expected.size());
    world.stream->synchronize();
    const CopyRange range = {target.get(), 0, source.get(), 0, expected.size()};
    world.stream->copy({&range, 1});
  }
  const auto other = world.device->allocate(1 << 16);  // may be the same memory
  const std::vector<std::byte> zeros(1 << 16);
  world.stream->upload(*other, 0, zeros.data(), zeros.size());
  CHECK(world.download(*target) == expected);
  CHECK(world.device->memory().free == free - 2 * (1 << 16));
}

TEST_CASE("allocating more than a device has is an error that says how much was missing") {
  OneDevice world;
  const uint64_t free = world.device->memory().free;
  try {
    world.device->allocate(free + 1);
    FAIL("allocated more than there is");
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK(text.find("[cuda0] 8.00 GiB could not be allocated") != std::string::npos);
    CHECK(text.find("Lower -ngl or -c") != std::string::npos);
  }
  CHECK(world.device->allocate(1 << 20)->size() == 1 << 20);  // the device works as before
}

TEST_CASE("the device measures its limits") {
  OneDevice world;
  const MachineLimits limits = world.device->measure_limits();
  CHECK(limits.read_bytes > 0);
  CHECK(limits.int8_operations > 0);
  CHECK(limits.float_operations == limits.int8_operations);
  const uint64_t free = world.device->memory().free;
  CHECK(world.device->allocate(free)->size() == free);  // nothing is kept
  const auto most = world.device->allocate(free - (1 << 20));
  CHECK(world.device->read_bandwidth() == 0);  // a model has left too little
}
