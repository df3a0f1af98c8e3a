#include "backends/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "backends/cpu/processor_levels.h"
#include "ggml-like/error.h"

namespace infer::cpu {

// CMake defines INFER_LEVELS: INFER_LEVEL(MATMULS, FLOATS) for each level of this build, best last.
#define INFER_LEVEL(matmuls, floats)            \
  extern const MatmulTable k##matmuls##Matmuls; \
  extern const FloatTable k##floats##Floats;
INFER_LEVELS
#undef INFER_LEVEL

namespace {

std::vector<Level> find_levels() {
#define INFER_LEVEL(matmuls, floats) {k##matmuls##Matmuls, k##floats##Floats},
  static const KernelTable tables[] = {INFER_LEVELS};
#undef INFER_LEVEL
  const std::vector<std::string> here = processor_levels();
  std::vector<Level> levels;
  for (const KernelTable& table : tables) {
    levels.push_back({&table, std::find(here.begin(), here.end(), table.level) != here.end()});
  }
  return levels;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += concat(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

const std::vector<Level>& levels() {
  static const std::vector<Level> all = find_levels();
  return all;
}

const KernelTable& choose_kernels(const std::string& name) {
  const KernelTable* best = nullptr;
  std::vector<std::string> built, usable;
  for (const Level& level : levels()) {
    built.emplace_back(level.kernels->level);
    if (!level.runs_here) continue;
    usable.emplace_back(level.kernels->level);
    if (name.empty() || name == level.kernels->level) best = level.kernels;
  }
  if (best) return *best;
  if (usable.empty()) {
    throw Error(ErrorCode::kUnsupported,
                concat("[cpu] this program was built for processors with ", joined(built), " only, and this one has ",
                       joined(processor_levels()), ": build it on this machine, or with -DINFER_NATIVE=OFF"));
  }
  throw Error(ErrorCode::kInvalidArgument,
              concat("[cpu] INFER_CPU: expected one of ", joined(usable),
                     " (the levels that this program has and this machine runs), found ", name));
}

const KernelTable& choose_kernels() {
  const char* forced = std::getenv("INFER_CPU");
  return choose_kernels(forced ? forced : "");
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name") || line.starts_with("Model")) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace infer::cpu
