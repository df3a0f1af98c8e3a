// What Debian 12's libstdc++.a and libbsd.a take from glibc and glibc 2.31 does not have. scripts/package/sysroot.sh
// compiles it for portable programs.
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

// libstdc++ skips atomic operations while this is not 0. 0 is always correct.
char __libc_single_threaded = 0;

// For std::random_device. Requests of up to 256 bytes are served whole.
uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) abort();
  return value;
}
