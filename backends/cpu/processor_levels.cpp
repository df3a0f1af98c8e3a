#include "backends/cpu/processor_levels.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace infer::cpu {

std::vector<std::string> processor_levels() {
  std::vector<std::string> names = {"scalar"};
#if defined(__x86_64__)
  // __builtin_cpu_supports checks CPUID and, through XGETBV, that the operating system saves the registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c"))
    return names;
  names.emplace_back("avx2");
  // __builtin_cpu_supports does not know AVX-VNNI before GCC 13: CPUID leaf 7, sub-leaf 1, EAX bit 4.
  unsigned highest = 0, b = 0, c = 0, d = 0;
  __asm__("cpuid" : "=a"(highest), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
  if (highest >= 7) {
    unsigned a = 7;
    c = 1;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((a >> 4 & 1) != 0) names.emplace_back("avxvnni");
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return names;
  }
  names.emplace_back("avx512");
  if (__builtin_cpu_supports("avx512vnni")) names.emplace_back("avx512vnni");
#elif defined(__aarch64__)
  names.emplace_back("neon");
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) == 0) return names;
  names.emplace_back("dotprod");
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) names.emplace_back("i8mm");
#endif
  return names;
}

}  // namespace infer::cpu
