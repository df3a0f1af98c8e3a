#include "tools/profile_table.h"

#include <algorithm>
#include <cstdio>

#include "ggml-like/error.h"
#include "src/engine/roofline.h"

namespace infer {

double least_seconds(const ProfileLine& line, const MachineLimits& limits) {
  const double peak = line.quantized ? limits.int8_operations : limits.float_operations;
  const double arithmetic = peak > 0 ? line.operations / peak : 0;
  const double memory = limits.read_bytes > 0 ? line.bytes / limits.read_bytes : 0;
  return std::max(arithmetic, memory);
}

std::string profile_table(const Profile& profile, const MachineLimits& limits) {
  const double all = profile.seconds();
  char row[160];
  std::snprintf(row, sizeof(row), "%-16s  %-6s  %15s  %8s  %9s  %10s  %7s  %8s\n", "operation", "type", "weight",
                "calls", "rows", "ms", "share", "of limit");
  std::string text = row;
  for (const ProfileLine& line : profile.lines()) {
    const std::string weight = line.n > 0 ? concat(line.n, " x ", line.k) : "";
    std::snprintf(row, sizeof(row), "%-16s  %-6s  %15s  %8lld  %9lld  %10.2f  %5.1f %%",
                  std::string(op_info(line.op).name).c_str(), std::string(traits(line.type).name).c_str(),
                  weight.c_str(), static_cast<long long>(line.calls), static_cast<long long>(line.rows),
                  1e3 * line.seconds, all > 0 ? 100 * line.seconds / all : 0);
    text += row;
    const double least = least_seconds(line, limits);
    if (least > 0 && line.seconds > 0) {
      std::snprintf(row, sizeof(row), "  %6.1f %%", 100 * least / line.seconds);
      text += row;
    }
    text += "\n";
  }
  std::snprintf(row, sizeof(row), "%-62s  %10.2f\n", "all operations", 1e3 * all);
  text += row;
  const ProfileCopies& copies = profile.copies();
  if (copies.calls > 0) {
    std::snprintf(row, sizeof(row), "%lld copies between devices: %.2f ms besides, %.2f MB\n",
                  static_cast<long long>(copies.calls), 1e3 * copies.seconds, static_cast<double>(copies.bytes) / 1e6);
    text += row;
  }
  return text;
}

void print_profile(Engine& engine) {
  if (!engine.profile()) return;
  std::fputs(profile_table(*engine.profile(), measure_limits(engine.runner().placed())).c_str(), stderr);
}

}  // namespace infer
