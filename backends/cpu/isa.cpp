#include "backends/cpu/isa.h"

#include <cstdlib>
#include <fstream>
#include <string_view>

#include "ggml-like/error.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace infer::cpu {

extern const MatmulTable kScalarMatmuls;
extern const FloatTable kScalarFloats;

#if defined(__x86_64__)
extern const MatmulTable kAvx2Matmuls, kAvxVnniMatmuls, kAvx512Matmuls, kAvx512VnniMatmuls;
extern const FloatTable kAvx2Floats, kAvx512Floats;

namespace {

// __builtin_cpu_supports checks CPUID and, through XGETBV, that the operating system saves the registers.
std::vector<Level> find_levels() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  // __builtin_cpu_supports does not know AVX-VNNI before GCC 13: CPUID leaf 7, sub-leaf 1, EAX bit 4.
  unsigned a = 7, b = 0, c = 1, d = 0;
  unsigned highest = 0;
  __asm__("cpuid" : "=a"(highest), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
  bool vnni256 = false;
  if (highest >= 7) {
    a = 7, c = 1;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    vnni256 = avx2 && (a >> 4 & 1) != 0;
  }
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const KernelTable tables[] = {{kScalarMatmuls, kScalarFloats},
                                       {kAvx2Matmuls, kAvx2Floats},
                                       {kAvxVnniMatmuls, kAvx2Floats},
                                       {kAvx512Matmuls, kAvx512Floats},
                                       {kAvx512VnniMatmuls, kAvx512Floats}};
  return {{&tables[0], true},
          {&tables[1], avx2},
          {&tables[2], vnni256},
          {&tables[3], avx512},
          {&tables[4], avx512 && __builtin_cpu_supports("avx512vnni")}};
}

}  // namespace

#elif defined(__aarch64__)
extern const MatmulTable kNeonMatmuls, kDotprodMatmuls, kI8mmMatmuls;
extern const FloatTable kNeonFloats;

namespace {

std::vector<Level> find_levels() {
  const bool dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  static const KernelTable tables[] = {{kScalarMatmuls, kScalarFloats},
                                       {kNeonMatmuls, kNeonFloats},
                                       {kDotprodMatmuls, kNeonFloats},
                                       {kI8mmMatmuls, kNeonFloats}};
  return {{&tables[0], true},
          {&tables[1], true},
          {&tables[2], dotprod},
          {&tables[3], dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0}};
}

}  // namespace

#else
namespace {

std::vector<Level> find_levels() {
  static const KernelTable table = {kScalarMatmuls, kScalarFloats};
  return {{&table, true}};
}

}  // namespace
#endif

const std::vector<Level>& levels() {
  static const std::vector<Level> all = find_levels();
  return all;
}

const KernelTable& choose_kernels(const std::string& name) {
  const KernelTable* best = nullptr;
  std::string usable;
  for (const Level& level : levels()) {
    if (!level.runs_here) continue;
    usable += concat(usable.empty() ? "" : ", ", level.kernels->level);
    if (name.empty() || name == level.kernels->level) best = level.kernels;
  }
  if (!best) {
    throw Error(ErrorCode::kInvalidArgument, concat("[cpu] INFER_CPU: expected one of ", usable,
                                                    " (the levels that run on this machine), found ", name));
  }
  return *best;
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
