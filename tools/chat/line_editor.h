// Reads lines from a terminal, with editing and history (libedit), pastes of any size, and Ctrl-C. Input is UTF-8; a
// line may contain wide characters, combining marks and line feeds, and stays intact when the terminal is resized. The
// prompt and the line being edited go to standard error, so standard output has only answers. One at a time. It handles
// SIGINT, SIGWINCH, SIGCONT, SIGTERM and SIGHUP, but only while read() runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace infer {

class LineEditor {
 public:
  struct Options {
    std::string history_file;              // "": keep the history for this run only
    std::vector<std::string> completions;  // words that Tab completes, or lists, at the start of a line
  };
  // REQUIRES: standard input is a terminal. Throws Error(kIo) if the terminal cannot be used.
  explicit LineEditor(Options options);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Event {
    kLine,
    kInterrupted,  // Ctrl-C; the typed text is dropped
    kEnd,          // Ctrl-D on an empty line, loss of the terminal, or a request to terminate
  };
  struct Input {
    Event event;
    std::string text;    // the line, without its end; several lines if they come from a paste, the history or `prefill`
    bool empty = false;  // kInterrupted: nothing had been typed
  };
  // `prefill`: initial text of the line.
  Input read(const std::string& prompt, const std::string& prefill = "");

  // Adds a text, possibly of several lines, to this run's history and to the file. Texts above 64 KiB are skipped.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// $INFER_HISTORY, else infer/history below $XDG_STATE_HOME or ~/.local/state; "" if there is no home directory.
std::string default_history_file();

}  // namespace infer
