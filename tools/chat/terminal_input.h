// Terminal input while a line is edited: characters, pastes (delimited by the terminal in bracketed paste mode), and
// signals that concern the terminal. Decodes UTF-8; invalid bytes become U+FFFD. While one exists it handles SIGINT,
// SIGWINCH, SIGCONT, SIGTERM and SIGHUP. One at a time, one thread.
#pragma once

#include <signal.h>

#include <string>
#include <string_view>

namespace infer {

// Writes everything to standard error, whatever signals arrive: a query that is lost has no reply.
void write_to_terminal(std::string_view bytes);

// State kept between lines: a terminal's reply may arrive while the next line is being edited.
struct TerminalState {
  std::string typed_ahead;      // read but not yet consumed
  int questions = 0;            // position queries not yet answered
  int overdue = 0;              // those of them, the oldest, that were waited for in vain
  bool tells_position = false;  // it has answered one
};

class TerminalInput {
 public:
  // `state` is kept up to date and must outlive this.
  explicit TerminalInput(TerminalState& state);
  ~TerminalInput();
  TerminalInput(const TerminalInput&) = delete;
  TerminalInput& operator=(const TerminalInput&) = delete;

  enum class Event {
    kCharacter,
    kPaste,
    kInterrupted,  // Ctrl-C
    kResized,      // the terminal was resized
    kContinued,    // the program was stopped and continues
    kEnd,          // end of input, or a request to terminate
    kPosition,     // the terminal reported the cursor's position, or failed to in time
    kNone,         // nothing of interest
  };
  struct Item {
    Event event;
    char32_t character = 0;  // kCharacter
    std::string paste = {};  // kPaste: UTF-8, lines end with \n, no control characters other than tab
    int column = -1;         // kPosition: from 0; -1: not reported
  };
  Item next();  // blocks
  // Whether next() can return typed input without blocking.
  bool has_more();
  // Queries the cursor's position; of several queries, only the last yields kPosition.
  void ask_position();
  // Queries only to learn whether the terminal replies; yields no kPosition.
  void learn_manners();
  // Waits, for a bounded time, for the replies to all queries, so that none arrives when the terminal echoes its input.
  // Input around them is kept. Returns the column of the last one; -1: there was none.
  int await_position();

 private:
  static constexpr int kSignals[] = {SIGINT, SIGWINCH, SIGCONT, SIGTERM, SIGHUP};

  // Waits for more input, at most `milliseconds` (-1: indefinitely). False: none arrived.
  bool fill(int milliseconds);
  std::string read_paste();
  // Removes the terminal's reply to ask_position() from the front of the input; false if there is none.
  bool take_position(int& column);
  // Removes the reply at `begin`, ESC [ row ; column R; false if there is none.
  bool take_reply(size_t begin, int& column);

  TerminalState& state_;
  std::string& bytes_;      // state_.typed_ahead
  int pipe_[2] = {-1, -1};  // written to by signal handlers
  struct sigaction before_[5] = {};
  bool ended_ = false;
  bool waiting_ = false;  // next() owes a kPosition
};

}  // namespace infer
