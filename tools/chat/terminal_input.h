// What is typed on standard input while a line is edited: characters, pastes (marked by the terminal, bracketed paste
// mode), and the signals that concern a terminal. Reads bytes as UTF-8; what is none becomes U+FFFD.
// While one exists it holds SIGINT, SIGWINCH, SIGCONT, SIGTERM and SIGHUP; one at a time, one thread.
#pragma once

#include <signal.h>

#include <string>

namespace infer {

class TerminalInput {
 public:
  // `typed_ahead`: bytes read by an earlier one that were not used yet; kept up to date.
  explicit TerminalInput(std::string& typed_ahead);
  ~TerminalInput();
  TerminalInput(const TerminalInput&) = delete;
  TerminalInput& operator=(const TerminalInput&) = delete;

  enum class Event {
    kCharacter,
    kPaste,
    kInterrupted,  // Ctrl-C
    kResized,      // the terminal has another size
    kContinued,    // the program was stopped and goes on
    kEnd,          // end of input, or asked to end
  };
  struct Item {
    Event event;
    char32_t character = 0;  // kCharacter
    std::string paste = {};  // kPaste: UTF-8, lines end with \n, no other control characters but tab
  };
  Item next();  // waits

 private:
  static constexpr int kSignals[] = {SIGINT, SIGWINCH, SIGCONT, SIGTERM, SIGHUP};

  // Waits for a byte more, for at most `milliseconds` (-1: for ever). False: none came.
  bool fill(int milliseconds);
  std::string read_paste();

  std::string& bytes_;
  int pipe_[2] = {-1, -1};  // signal handlers write to it
  struct sigaction before_[5] = {};
  bool ended_ = false;
};

}  // namespace infer
