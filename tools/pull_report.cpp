#include "tools/pull_report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr std::chrono::seconds kRateWindow{5};

std::string rate_text(double bytes_per_second) {
  return bytes_text(static_cast<uint64_t>(std::max(bytes_per_second, 0.0))) + "/s";
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::clamp(seconds, 0.0, 3.6e6 - 1)));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%d:%02d:%02d", static_cast<int>(whole / 3600), static_cast<int>(whole / 60 % 60),
                  static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof(text), "%d:%02d", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  }
  return text;
}

PullReport::PullReport() : terminal_(isatty(STDERR_FILENO) != 0) {}

void PullReport::note(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (line == last_note_) return;  // several connections have the same trouble
  last_note_ = line;
  line_.clear();
  write_note(line);
}

void PullReport::start_file(const std::string& file, uint64_t done, uint64_t total) {
  file_ = file;
  first_ = done;
  start_ = Clock::now();
  recent_.clear();
  quarter_ = static_cast<int>(4 * done / total);
  finished_ = false;
  last_note_.clear();
  if (done > 0 && done < total) {
    line_.clear();
    write_note(concat(printable(file), ": continuing after ", bytes_text(done), " of ", bytes_text(total)));
  } else if (!terminal_) {
    write_note(concat(printable(file), ": ", bytes_text(total)));
  }
}

void PullReport::update_line(uint64_t done, uint64_t total) {
  const Clock::time_point now = Clock::now();
  recent_.push_back({now, done});
  while (recent_.size() > 2 && now - recent_.front().time > kRateWindow) recent_.pop_front();
  if (!line_.due()) return;
  const double seconds = seconds_between(recent_.front().time, now);
  const double rate = seconds > 0 ? static_cast<double>(done - recent_.front().done) / seconds : 0;
  std::string text =
      concat(printable(file_, 40), ": ", 100 * done / total, " % of ", bytes_text(total), ", ", rate_text(rate));
  if (rate > 0) text += concat(", ", duration_text(static_cast<double>(total - done) / rate), " left");
  line_.show(text);
}

void PullReport::progress(const std::string& file, uint64_t done, uint64_t total) {
  const std::lock_guard lock(mutex_);
  if (total == 0) return;
  if (file != file_ || done < first_) start_file(file, done, total);
  if (finished_) return;
  if (done == total) {
    finished_ = true;
    line_.clear();
    const double seconds = seconds_between(start_, Clock::now());
    const std::string rate =
        seconds > 0.001 && done > first_ ? ", " + rate_text(static_cast<double>(done - first_) / seconds) : "";
    write_note(concat(printable(file_), ": ", bytes_text(total), " in ", duration_text(seconds), rate));
  } else if (terminal_) {
    update_line(done, total);
  } else if (const int quarter = static_cast<int>(4 * done / total); quarter > quarter_) {
    quarter_ = quarter;
    write_note(concat(printable(file_), ": ", 25 * quarter, " %"));
  }
}

}  // namespace infer
