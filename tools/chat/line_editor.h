// Lines typed on a terminal: editing and history (libedit), pastes of any size, Ctrl-C. What is typed is UTF-8; the
// line may hold wide characters, combining marks and line feeds, and stays in order when the terminal is resized. The
// prompt and the line under way go to standard error, so that standard output holds answers only.
// One at a time; it takes SIGINT, SIGWINCH, SIGCONT, SIGTERM and SIGHUP only while read() runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace infer {

class LineEditor {
 public:
  struct Options {
    std::string history_file;              // "": keep no history beyond this run
    std::vector<std::string> completions;  // first words that the tab key completes
  };
  // REQUIRES standard input to be a terminal. Throws Error(kIo) when the terminal cannot be used.
  explicit LineEditor(Options options);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Event {
    kLine,
    kInterrupted,  // Ctrl-C; what was typed is dropped
    kEnd,          // Ctrl-D on an empty line, the terminal is gone, or the program was asked to end
  };
  struct Input {
    Event event;
    std::string text;    // the line, without its end; several lines from a paste, the history or `prefill`
    bool empty = false;  // kInterrupted: nothing had been typed
  };
  // `prefill` stands in the line already.
  Input read(const std::string& prompt, const std::string& prefill = "");

  // Adds to the history, of this run and in the file; a text may have several lines. Texts above 64 KiB are left out.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// $INFER_HISTORY, else infer/history below $XDG_STATE_HOME or ~/.local/state; "" when there is no home.
std::string default_history_file();

}  // namespace infer
