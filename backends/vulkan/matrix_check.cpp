// Some drivers compute cooperative matrices incorrectly, so a device checks them before it uses them. It multiplies
// small integers, for which fp16 products with F32 sums are exact. They are scaled by powers of two that make fp16
// values denormal or exceed their range, as the smallest and largest scales of weights do.
#include <cmath>

#include "backends/vulkan/vulkan_ops.h"
#include "ggml-like/quant/blocks.h"

namespace infer::vulkan {
namespace {

// More than one tile of 64 in each direction, the last one partial.
constexpr int64_t kRows = 83, kTokens = 70, kColumns = 96;

int code_at(int64_t row, int64_t i) { return static_cast<int>((row * 5 + i * 3 + row * i) % 15) - 7; }
int activation_at(int64_t token, int64_t i) { return static_cast<int>((token * 7 + i * 11 + token * i) % 9) - 4; }

// The power of two of a block of 32 weights: the same for all blocks of a row, but alternating in every fourth row.
int power_at(int64_t row, int64_t block) {
  constexpr int kPowers[] = {0, -24, 15};
  return row % 4 < 3 ? kPowers[row % 4] : block % 2 == 0 ? 0 : 10;
}
uint16_t half_of(int power) { return static_cast<uint16_t>(power < -14 ? 1 << (power + 24) : (power + 15) << 10); }

}  // namespace

bool matrices_are_right(VulkanDevice& device) {
  std::vector<BlockQ8_0> weight;  // [kRows, kColumns]
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t i = 0; i < kColumns; ++i) {
      if (i % 32 == 0) weight.push_back({half_of(power_at(row, i / 32)), {}});
      weight.back().qs[i % 32] = static_cast<int8_t>(code_at(row, i));
    }
  }
  std::vector<float> x, expected, found(kTokens * kRows);
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t i = 0; i < kColumns; ++i) x.push_back(static_cast<float>(activation_at(token, i)));
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int64_t i = 0; i < kColumns; ++i) {
        sum += std::ldexp(code_at(row, i) * activation_at(token, i), power_at(row, i / 32));
      }
      expected.push_back(static_cast<float>(sum));
    }
  }

  const TensorDesc x_desc = make_desc(DataType::kF32, {kTokens, kColumns}),
                   w_desc = make_desc(DataType::kQ8_0, {kRows, kColumns}),
                   y_desc = make_desc(DataType::kF32, {kTokens, kRows});
  const TensorDesc *const inputs[] = {&x_desc, &w_desc, nullptr}, *const outputs[] = {&y_desc};
  const OpParams params;
  const OpDesc op = {Op::kMatMul, &params, inputs, outputs, nullptr};
  const OpRecord& record = *device.find(Op::kMatMul);
  const std::unique_ptr<Prepared> prepared = record.prepare(op, device);
  const std::unique_ptr<Buffer> x_buffer = device.allocate(x_desc.bytes()), w_buffer = device.allocate(w_desc.bytes()),
                                y_buffer = device.allocate(y_desc.bytes()),
                                scratch = device.allocate(prepared->scratch_bytes), step = device.allocate(64);
  const std::unique_ptr<Stream> stream = device.create_stream();
  stream->upload(*x_buffer, 0, x.data(), x_desc.bytes());
  stream->upload(*w_buffer, 0, weight.data(), w_desc.bytes());
  stream->upload(*y_buffer, 0, found.data(), y_desc.bytes());
  const TensorRef in[] = {{&x_desc, x_buffer.get(), 0}, {&w_desc, w_buffer.get(), 0}, {}},
                  out[] = {{&y_desc, y_buffer.get(), 0}};
  const Launch launch = {op, in, out, {}, {nullptr, scratch.get(), 0}, nullptr, step.get()};
  vulkan(*stream).time([&] { record.launch(*prepared, launch, *stream); });
  stream->download(found.data(), *y_buffer, 0, y_desc.bytes());
  stream->synchronize();
  if (device.context().options.fail_matrices) found.back() += 1;
  return found == expected;
}

}  // namespace infer::vulkan
