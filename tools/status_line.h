// A line on standard error that shows how far long work is, if that is a terminal: it is replaced with every update and
// removed at the end. On anything else nothing is written. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "src/engine/engine.h"

namespace infer {

class StatusLine {
 public:
  using Clock = std::chrono::steady_clock;

  // Nothing appears before the work has taken `delay`.
  explicit StatusLine(std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // Whether show() would do anything: the line is replaced ten times per second at most.
  bool due() const;
  // `text`: less than a row of the terminal; longer text is cut.
  void show(const std::string& text);
  void clear();
  // Removes the line, and measures from now on.
  void restart();

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  // ", 12 s left" if the rest takes as long per unit as what is done did; "" if nothing is done.
  std::string time_left(double done, double total) const;

 private:
  Clock::time_point start_ = Clock::now();
  std::chrono::milliseconds delay_;
  Clock::time_point shown_ = {};  // none: there is no line on the terminal
};

// How far the weights are on their way to the devices; for EngineOptions::loading.
std::function<void(uint64_t done, uint64_t total)> loading_line();

// How much of a prompt is computed, if that takes more than a second.
class PromptLine {
 public:
  explicit PromptLine(bool on) : on_(on) {}
  // After every step of the request. Removes the line once the prompt is computed.
  void update(const Progress& progress);
  void clear() { line_.clear(); }

 private:
  const bool on_;
  StatusLine line_{std::chrono::seconds(1)};
};

}  // namespace infer
