// Deliberate mistakes that the validation layer must report: scripts/vulkan_validation.sh runs them to check that it
// does. They are skipped otherwise, since nothing is reported without the layer.
#include <doctest/doctest.h>

#include "backends/vulkan/stream.h"

using namespace infer;

namespace {

constexpr uint32_t kBytes = 4096;

// The first dispatch reads `a` and writes `b`, the second reads `b` and writes `a`.
template <typename Spoil>
void dispatch_twice(const Spoil& spoil) {
  const std::vector<std::string> names = vulkan_device_names();
  REQUIRE(!names.empty());
  const std::unique_ptr<Device> device = create_vulkan_device(names[0]);
  const std::unique_ptr<Buffer> a = device->allocate(kBytes), b = device->allocate(kBytes);
  const std::unique_ptr<Stream> made = device->create_stream();
  vulkan::VulkanStream& stream = vulkan::vulkan(*made);
  stream.time([&] {
    for (const auto& [from, to] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
      std::vector operands = {stream.range(*from, 0, kBytes, false), stream.range(*to, 0, kBytes, true)};
      for (vulkan::Operand& operand : operands) spoil(operand);
      stream.dispatch("probe_read", {}, operands, kBytes / 16, {1});
    }
  });
}

}  // namespace

TEST_CASE("control: a race between two dispatches" * doctest::skip()) {
  dispatch_twice([](vulkan::Operand& operand) { operand.written = false; });  // no barrier
}

TEST_CASE("control: memory that is never freed" * doctest::skip()) {
  const std::vector<std::string> names = vulkan_device_names();
  REQUIRE(!names.empty());
  const std::unique_ptr<Device> device = create_vulkan_device(names[0]);
  device->allocate(2 << 20).release();
}

TEST_CASE("control: a binding that exceeds its buffer" * doctest::skip()) {
  dispatch_twice([](vulkan::Operand& operand) { operand.range += uint64_t{1} << 30; });
}
