#include "backends/vulkan/spirv.h"

#include <algorithm>

namespace infer::vulkan {
namespace {

constexpr size_t kHeaderWords = 5;
constexpr uint32_t kOpCapability = 17, kOpDecorate = 71, kDecorationBinding = 33;

// Calls visit(opcode, words) for each instruction.
template <typename Visit>
void for_each_instruction(std::span<const uint32_t> code, const Visit& visit) {
  for (size_t at = kHeaderWords; at < code.size();) {
    const size_t words = std::clamp<size_t>(code[at] >> 16, 1, code.size() - at);
    visit(code[at] & 0xffff, code.subspan(at, words));
    at += words;
  }
}

}  // namespace

bool has_capability(std::span<const uint32_t> code, uint32_t capability) {
  bool found = false;
  for_each_instruction(code, [&](uint32_t opcode, std::span<const uint32_t> words) {
    found |= opcode == kOpCapability && words[1] == capability;
  });
  return found;
}

std::vector<uint32_t> without_inf_nan_preserve(std::span<const uint32_t> code) {
  constexpr uint32_t kOpExecutionMode = 16, kCapability = 4466, kMode = 4461;
  std::vector<uint32_t> kept(code.begin(), code.begin() + kHeaderWords);
  for_each_instruction(code, [&](uint32_t opcode, std::span<const uint32_t> words) {
    if (opcode == kOpCapability && words[1] == kCapability) return;
    if (opcode == kOpExecutionMode && words[2] == kMode) return;
    kept.insert(kept.end(), words.begin(), words.end());
  });
  return kept;
}

int count_bindings(std::span<const uint32_t> code) {
  int count = 0;
  for_each_instruction(code, [&](uint32_t opcode, std::span<const uint32_t> words) {
    if (opcode == kOpDecorate && words[2] == kDecorationBinding)
      count = std::max(count, static_cast<int>(words[3]) + 1);
  });
  return count;
}

}  // namespace infer::vulkan
