#include "tools/loading_line.h"

#include <unistd.h>

#include <cstdio>

#include "ggml-like/bytes_text.h"

namespace infer {

void LoadingLine::operator()(uint64_t done, uint64_t total) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) return;
  const Clock::time_point now = Clock::now();
  if (done < total && now - shown_ >= std::chrono::milliseconds(100)) {
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r\033[Kloading weights: %3.0f %% of %s, %.1f GB/s",
                 100.0 * static_cast<double>(done) / static_cast<double>(total), bytes_text(total).c_str(),
                 seconds > 0 ? static_cast<double>(done) / 1e9 / seconds : 0.0);
  }
  if (done < total) return;
  if (shown_ != Clock::time_point{}) std::fputs("\r\033[K", stderr);
  *this = {};
}

}  // namespace infer
