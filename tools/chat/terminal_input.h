// What is typed on standard input while a line is edited: characters, pastes (marked by the terminal, bracketed paste
// mode), and the signals that concern a terminal. Reads bytes as UTF-8; what is none becomes U+FFFD.
// While one exists it holds SIGINT, SIGWINCH, SIGCONT, SIGTERM and SIGHUP; one at a time, one thread.
#pragma once

#include <signal.h>

#include <string>

namespace infer {

// What outlives one line: a terminal's answer may come while the next one is being edited.
struct TerminalState {
  std::string typed_ahead;      // read, and not yet taken
  int questions = 0;            // positions asked for that the terminal has not told
  bool tells_position = false;  // it has told one
};

class TerminalInput {
 public:
  // `state` is kept up to date, and outlives this.
  explicit TerminalInput(TerminalState& state);
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
    kPosition,     // the terminal told where its cursor is, or did not in time
    kNone,         // nothing that matters
  };
  struct Item {
    Event event;
    char32_t character = 0;  // kCharacter
    std::string paste = {};  // kPaste: UTF-8, lines end with \n, no other control characters but tab
    int column = -1;         // kPosition: from 0; -1: not told
  };
  Item next();  // waits
  // Whether next() has something typed to return at once.
  bool has_more();
  // Asks the terminal for its cursor's position; of several questions the last is answered with kPosition.
  void ask_position();
  // Asks as well, but only to learn whether the terminal answers: no kPosition follows.
  void learn_manners();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGWINCH, SIGCONT, SIGTERM, SIGHUP};

  // Waits for a byte more, for at most `milliseconds` (-1: for ever). False: none came.
  bool fill(int milliseconds);
  std::string read_paste();
  // Takes the terminal's answer to ask_position() off the front of what was read; false when there is none.
  bool take_position(int& column);

  TerminalState& state_;
  std::string& bytes_;      // of state_
  int pipe_[2] = {-1, -1};  // signal handlers write to it
  struct sigaction before_[5] = {};
  bool ended_ = false;
  bool waiting_ = false;  // next() owes a kPosition
};

}  // namespace infer
