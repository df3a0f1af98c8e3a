#include "tests/unit/vulkan/products.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "backends/vulkan/vulkan_device.h"
#include "ggml-like/plan.h"
#include "ggml-like/ref/ref_device.h"
#include "tests/support/plan_memory.h"
#include "tests/support/skip.h"

namespace infer::test {

std::string device_name(const std::string& test) {
  const std::vector<std::string> names = vulkan_device_names();
  if (!names.empty()) return names[0];
  const char* required = std::getenv("INFER_REQUIRE");
  if (required && std::string(required).find("vulkan") != std::string::npos) FAIL("no Vulkan device was found");
  else test::skip(test, "no Vulkan device");
  return "";
}

std::vector<float> multiply(Device& device, DataType type, int64_t n, int64_t k, const std::vector<std::byte>& weight,
                            const std::vector<float>& x, int tokens, BuildProduct build) {
  const std::unique_ptr<Device> host = create_ref_device();
  const std::unique_ptr<Stream> host_stream = host->create_stream(), stream = device.create_stream();
  const auto upload = [&](const void* data, size_t bytes) {
    std::unique_ptr<Buffer> buffer = device.allocate(bytes);
    stream->upload(*buffer, 0, data, bytes);
    return buffer;
  };
  const std::unique_ptr<Buffer> w = upload(weight.data(), weight.size()), in = upload(x.data(), x.size() * 4);
  const Weight matrix{"w", make_desc(type, {n, k}), weight.data()};
  const Weight input{"x", make_desc(DataType::kF32, {tokens, k}, RowKind::kTokens),
                     reinterpret_cast<const std::byte*>(x.data())};
  Graph graph(tokens, 0);
  const ValueId y = build(graph, input, matrix);
  graph.mark_output(y);
  PlanOptions options;
  options.devices = {host.get(), &device};
  options.layer_device = [](int) { return 1; };
  options.weight = [&](const Weight& asked, int) { return BufferPlace{&asked == &matrix ? w.get() : in.get(), 0}; };
  options.strict = true;
  Plan plan(std::move(graph), std::move(options));
  StepInputs step({tokens, 0, 1, 1, 1});
  const std::vector<int32_t> table{0};
  const std::span<const int32_t> tables[] = {table};
  step.add_sequence(tables, tokens);
  for (int t = 0; t < tokens; ++t) step.add_token(0, 0, t, false);
  Device* const devices[] = {host.get(), &device};
  Stream* const streams[] = {host_stream.get(), stream.get()};
  const PlanMemory memory(plan, devices, streams, step.layout());
  plan.run(step);
  return output_values(plan, y, step.view());
}

Problem problem(DataType type, int64_t n, int64_t k, int tokens) {
  Problem p{n, k, std::vector<std::byte>(row_bytes(type, k) * n), std::vector<float>(k * tokens)};
  std::vector<float> values(static_cast<size_t>(n * k));
  uint32_t state = 7;
  const auto next = [&] { return static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24f - 0.5f; };
  for (float& v : values) v = next();
  for (float& v : p.x) v = next();
  traits(type).from_float(values.data(), p.weight.data(), n * k);
  return p;
}

void check_rows_alone(Device& device, DataType type) {
  CAPTURE(traits(type).name);
  const Problem p = problem(type, 21, 512, 20);
  const std::vector<float> all = multiply(device, type, p.n, p.k, p.weight, p.x, 20);
  for (const int count : {1, 3, 6}) {
    CAPTURE(count);
    const std::vector<float> some =
        multiply(device, type, p.n, p.k, p.weight, {p.x.begin(), p.x.begin() + count * p.k}, count);
    CHECK(std::memcmp(some.data(), all.data(), some.size() * 4) == 0);
  }
}

}  // namespace infer::test
