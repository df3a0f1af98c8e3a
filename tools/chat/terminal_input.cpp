#include "tools/chat/terminal_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/terminal.h"

namespace infer {
namespace {

// The paste markers of xterm and similar terminals.
constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l";
constexpr std::string_view kPasteBegin = "\033[200~", kPasteEnd = "\033[201~";
constexpr int kEscapeWait = 50;  // ms within which the rest of an escape sequence follows its first byte
// Milliseconds to wait for the cursor's position: from a terminal that may never report it, and from one that has.
// Without it the line is drawn as for terminals that do not reflow, which is wrong for others.
constexpr int kPositionWait = 300, kSlowPositionWait = 30000;
constexpr int kLastPositionWait = 5000;  // the same at the end of a line, from a terminal that has reported one
constexpr size_t kMaxReply = 16;         // bytes
constexpr int kPasteWait = 5000;         // ms without input after which a paste is over, marked or not
constexpr size_t kMaxPaste = 1 << 26;    // bytes

std::atomic<int> signal_pipe = -1;

void on_signal(int number) {
  const int saved = errno;
  const char byte = static_cast<char>(number);
  [[maybe_unused]] const auto n = write(signal_pipe, &byte, 1);
  errno = saved;
}

void tell_terminal(std::string_view sequence) {
  if (isatty(STDERR_FILENO) != 0) write_to_terminal(sequence);
}

}  // namespace

void write_to_terminal(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(STDERR_FILENO, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

TerminalInput::TerminalInput(TerminalState& state) : state_(state), bytes_(state.typed_ahead) {
  if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorCode::kIo, concat("[terminal] a pipe: ", std::strerror(errno)));
  }
  signal_pipe = pipe_[1];
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &action, &before_[i]);
  tell_terminal(kPasteOn);
}

TerminalInput::~TerminalInput() {
  tell_terminal(kPasteOff);
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  signal_pipe = -1;
  close(pipe_[0]);
  close(pipe_[1]);
}

bool TerminalInput::fill(int milliseconds) {
  for (;;) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, milliseconds);
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t n = ready < 0 ? -1 : read(STDIN_FILENO, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) {
      ended_ = true;
      return false;
    }
    bytes_.append(buffer, static_cast<size_t>(n));
    return true;
  }
}

bool TerminalInput::has_more() { return !bytes_.empty() || fill(0); }

void TerminalInput::ask_position() {
  learn_manners();
  waiting_ = true;
}

void TerminalInput::learn_manners() {
  ++state_.questions;
  tell_terminal("\033[6n");
}

bool TerminalInput::take_reply(size_t begin, int& column) {
  if (bytes_.compare(begin, 2, "\033[") != 0) return false;
  const size_t end = bytes_.find_first_not_of("0123456789;", begin + 2);
  const size_t semicolon = bytes_.find(';', begin);
  if (end == std::string::npos || bytes_[end] != 'R' || semicolon > end || end - begin > kMaxReply) return false;
  column = std::atoi(bytes_.c_str() + semicolon + 1) - 1;
  bytes_.erase(begin, end + 1 - begin);
  --state_.questions;
  if (state_.overdue > 0) --state_.overdue;
  state_.tells_position = true;
  return true;
}

bool TerminalInput::take_position(int& column) {
  if (state_.questions == 0) return false;
  const auto is_begun = [&] {
    return bytes_.size() < 2
               ? bytes_ == "\033"
               : bytes_.starts_with("\033[") && bytes_.find_first_not_of("0123456789;", 2) == std::string::npos;
  };
  while (is_begun() && fill(kEscapeWait)) {
  }
  return take_reply(0, column);
}

int TerminalInput::await_position() {
  int column = -1;
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(state_.tells_position ? kLastPositionWait : kPositionWait);
  for (size_t searched = 0; state_.questions > state_.overdue;) {
    const size_t begin = bytes_.find('\033', searched);
    if (begin != std::string::npos) {
      // What is not a reply may be one that has not arrived in full.
      if (!take_reply(begin, column)) searched = begin + 1;
      continue;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    searched = bytes_.size() - std::min(bytes_.size(), kMaxReply);
    if (left.count() <= 0 || !fill(static_cast<int>(left.count()))) {
      state_.overdue = state_.questions;
      break;
    }
  }
  waiting_ = false;
  return column;
}

TerminalInput::Item TerminalInput::next() {
  while (bytes_.empty()) {
    if (ended_) return {Event::kEnd};
    const int wait = !waiting_ ? -1 : state_.tells_position ? kSlowPositionWait : kPositionWait;
    pollfd waited[2] = {{STDIN_FILENO, POLLIN, 0}, {pipe_[0], POLLIN, 0}};
    const int ready = poll(waited, 2, wait);
    if (ready < 0 && errno != EINTR) return {Event::kEnd};
    if (ready == 0 && std::exchange(waiting_, false)) return {Event::kPosition};
    char number = 0;
    if (read(pipe_[0], &number, 1) == 1) {
      switch (number) {
        case SIGINT:
          return {Event::kInterrupted};
        case SIGWINCH:
          return {Event::kResized};
        case SIGCONT:
          return {Event::kContinued};
        default:
          return {Event::kEnd};
      }
    }
    if (waited[0].revents != 0) fill(0);
  }
  if (int column = -1; take_position(column)) {
    const bool answers = state_.questions == 0 && std::exchange(waiting_, false);
    return answers ? Item{Event::kPosition, 0, {}, column} : Item{Event::kNone};
  }
  while (bytes_[0] == '\033' && bytes_.size() < kPasteBegin.size() && kPasteBegin.starts_with(bytes_)) {
    if (!fill(kEscapeWait)) break;
  }
  if (bytes_.starts_with(kPasteBegin)) {
    bytes_.erase(0, kPasteBegin.size());
    return {Event::kPaste, 0, read_paste()};
  }
  // A character may arrive in pieces.
  char32_t character = 0;
  size_t length = utf8_character(bytes_, character);
  for (int i = 1; length == 0 && i < 4 && bytes_.size() < 4 && static_cast<unsigned char>(bytes_[0]) >= 0xC0; ++i) {
    if (!fill(kEscapeWait)) break;
    length = utf8_character(bytes_, character);
  }
  if (length == 0) {
    character = U'\uFFFD';
    length = 1;
  }
  bytes_.erase(0, length);
  return {Event::kCharacter, character};
}

std::string TerminalInput::read_paste() {
  size_t end = 0;
  for (size_t searched = 0; (end = bytes_.find(kPasteEnd, searched)) == std::string::npos;) {
    searched = bytes_.size() - std::min(bytes_.size(), kPasteEnd.size() - 1);
    if (bytes_.size() > kMaxPaste || !fill(kPasteWait)) break;
  }
  const std::string raw = bytes_.substr(0, end);
  bytes_.erase(0, end == std::string::npos ? end : end + kPasteEnd.size());
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    const bool line_end = raw[i] == '\r' || raw[i] == '\n';
    if (raw[i] == '\r' && i + 1 < raw.size() && raw[i + 1] == '\n') continue;
    text += line_end ? '\n' : raw[i];
  }
  return without_controls(text);
}

}  // namespace infer
