#include "tools/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

bool on_terminal() {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  return terminal;
}

// The text that fits into a row. A longer one would wrap, and only its last row could be removed.
std::string cut_to_row(const std::string& text) {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  size_t n = known ? size.ws_col - 1U : 79U;
  if (n >= text.size()) return text;
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;  // not within a UTF-8 character
  return text.substr(0, n);
}

std::string percent(double part, double whole) {
  char text[16];
  std::snprintf(text, sizeof(text), "%3.0f %%", whole > 0 ? 100.0 * part / whole : 100.0);
  return text;
}

}  // namespace

StatusLine::StatusLine(std::chrono::milliseconds delay) : delay_(delay) {}

bool StatusLine::due() const {
  if (!on_terminal()) return false;
  const Clock::time_point now = Clock::now();
  return now - start_ >= delay_ && now - shown_ >= kInterval;
}

void StatusLine::show(const std::string& text) {
  if (!due()) return;
  shown_ = Clock::now();
  const std::string line = "\r\033[K" + cut_to_row(without_controls(text));
  std::fputs(line.c_str(), stderr);
}

void StatusLine::clear() {
  if (std::exchange(shown_, {}) != Clock::time_point{}) std::fputs("\r\033[K", stderr);
}

void StatusLine::restart() {
  clear();
  start_ = Clock::now();
}

std::string StatusLine::time_left(double done, double total) const {
  if (done <= 0) return "";
  const double left = seconds() * std::max(total - done, 0.0) / done;
  char text[32];
  if (left < 100) {
    std::snprintf(text, sizeof(text), ", %.0f s left", left);
  } else {
    std::snprintf(text, sizeof(text), ", %.0f min left", left / 60);
  }
  return text;
}

std::function<void(uint64_t done, uint64_t total)> loading_line() {
  return [line = std::make_shared<StatusLine>()](uint64_t done, uint64_t total) {
    if (done >= total) {
      line->restart();  // a draft model may follow
      return;
    }
    if (!line->due()) return;
    char rate[32];
    const double seconds = line->seconds();
    std::snprintf(rate, sizeof(rate), "%.1f GB/s", seconds > 0 ? static_cast<double>(done) / 1e9 / seconds : 0.0);
    line->show(concat("loading weights: ", percent(static_cast<double>(done), static_cast<double>(total)), " of ",
                      bytes_text(total), ", ", rate));
  };
}

void PromptLine::update(const Progress& progress) {
  if (progress.finished != FinishReason::kNone || progress.computed_tokens >= progress.prompt_tokens) {
    line_.clear();
    return;
  }
  if (!on_ || !line_.due()) return;
  // The time is that of the tokens that had to be computed.
  const double done = static_cast<double>(progress.computed_tokens - progress.cached_tokens);
  const double all = static_cast<double>(progress.prompt_tokens - progress.cached_tokens);
  char rate[32];
  std::snprintf(rate, sizeof(rate), "%.0f tokens/s", done / line_.seconds());
  line_.show(concat(
      "prompt: ", percent(static_cast<double>(progress.computed_tokens), static_cast<double>(progress.prompt_tokens)),
      " of ", grouped(static_cast<uint64_t>(progress.prompt_tokens)), " tokens, ", rate, line_.time_left(done, all)));
}

}  // namespace infer
