#include "tools/chat/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <utility>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/chat/line_screen.h"
#include "tools/chat/terminal_input.h"
#include "tools/chat/wide_text.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr int kHistoryLines = 1000;
constexpr size_t kTypedPaste = 400;          // one-line pastes of up to this many bytes are inserted as if typed
constexpr size_t kMostRemembered = 1 << 16;  // bytes; longer texts are not kept in the history
constexpr char kLineFeedInFile = '\v';       // encodes a line feed within an entry of the history file

// libedit reads and draws characters according to the locale.
void choose_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

// Whether the terminal understands ANSI cursor movement. On others, libedit does the drawing.
bool is_ansi_terminal() {
  const char* term = std::getenv("TERM");
  return term && *term && std::strcmp(term, "dumb") != 0;
}

winsize terminal_size() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80, 0, 0};
  return size;
}

// Whether the character makes libedit return, after which the terminal echoes again.
bool ends_line(char32_t character) { return character == U'\r' || character == U'\n' || character == U'\x04'; }

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

struct LineEditor::Impl {
  Options options;
  // libedit edits the line, and `screen` draws it. libedit's own drawing is discarded, because it loses track of the
  // cursor with wide characters and when the terminal is resized.
  const bool draws = is_ansi_terminal();
  LineScreen screen;
  std::FILE* nowhere = nullptr;
  bool unsettled = false;  // resized, and the terminal has not reported the cursor's position yet
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  std::wstring prompt;
  TerminalState terminal;
  bool asked_terminal = false;
  TerminalInput* input = nullptr;                           // valid while read() runs
  std::wstring prefill;                                     // inserted into the line before anything is typed
  std::deque<wchar_t> queue;                                // characters to process before those of `input`
  std::vector<std::pair<std::string, std::string>> pastes;  // placeholder in the line, and the pasted text
  Event event = Event::kLine;
  bool was_empty = false;

  explicit Impl(Options o) : options(std::move(o)) {
    choose_utf8_locale();
    if (draws) nowhere = std::fopen("/dev/null", "we");
    std::FILE* drawing = nowhere ? nowhere : stderr;
    editor = el_init_fd("infer", stdin, drawing, drawing, STDIN_FILENO, STDERR_FILENO, STDERR_FILENO);
    history = history_winit();
    if (!editor || !history || (draws && !nowhere)) {
      release();
      throw Error(ErrorCode::kIo, "[terminal] cannot start the line editor; pipe text in, or use --single-turn");
    }
    HistEventW outcome;
    history_w(history, &outcome, H_SETSIZE, kHistoryLines);
    history_w(history, &outcome, H_SETUNIQUE, 1);
    el_wset(editor, EL_HIST, history_w, history);
    el_wset(editor, EL_CLIENTDATA, this);
    el_wset(editor, EL_EDITOR, L"emacs");
    el_wset(editor, EL_SIGNAL, 0);
    el_wset(editor, EL_PROMPT, get_prompt);
    el_wset(editor, EL_GETCFN, get_character);
    el_wset(editor, EL_ADDFN, L"complete-command", L"Complete a command", complete);
    el_wset(editor, EL_BIND, L"^I", L"complete-command", nullptr);
    el_wset(editor, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    if (draws) {
      el_wset(editor, EL_ADDFN, L"clear-and-redraw", L"Clear the screen", clear_screen);
      el_wset(editor, EL_BIND, L"^L", L"clear-and-redraw", nullptr);
    }
    el_source(editor, nullptr);  // the user's own ~/.editrc, if there is one
    load_history();
  }

  ~Impl() { release(); }

  void release() {
    if (editor) el_end(editor);
    if (history) history_wend(history);
    if (nowhere) std::fclose(nowhere);
  }

  static Impl& of(EditLine* editor) {
    void* self = nullptr;
    el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }

  static wchar_t* get_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  // Returns 1: a character, 0: end of input, -1: the line is abandoned.
  static int get_character(EditLine* editor, wchar_t* character) {
    Impl& self = of(editor);
    if (!self.prefill.empty()) el_winsertstr(editor, std::exchange(self.prefill, L"").c_str());
    for (;;) {
      if (self.queue.empty() && !self.input->has_more()) self.redraw();
      if (!self.queue.empty()) {
        *character = self.queue.front();
        self.queue.pop_front();
        return 1;
      }
      TerminalInput::Item item = self.input->next();
      switch (item.event) {
        case TerminalInput::Event::kCharacter:
          if (ends_line(item.character)) self.settle_now();
          *character = static_cast<wchar_t>(item.character);
          return 1;
        case TerminalInput::Event::kPaste:
          self.take_paste(std::move(item.paste));
          break;
        case TerminalInput::Event::kResized:
          self.resized();
          break;
        case TerminalInput::Event::kPosition:
          self.settle(item.column);
          break;
        case TerminalInput::Event::kNone:
          break;
        case TerminalInput::Event::kContinued:
          el_wset(editor, EL_PREP_TERM, 1);
          self.screen.forget();
          if (!self.draws) el_wset(editor, EL_REFRESH);
          break;
        case TerminalInput::Event::kInterrupted: {
          const LineInfoW* line = el_wline(editor);
          self.was_empty = line->lastchar == line->buffer;
          self.finish({line->buffer, static_cast<size_t>(line->lastchar - line->buffer)}, false);
          self.event = Event::kInterrupted;
          return -1;
        }
        case TerminalInput::Event::kEnd:
          self.settle_now();
          self.event = Event::kEnd;
          return 0;
      }
    }
  }

  // Updates the terminal to show the current line.
  void redraw() {
    if (!draws || unsettled) return;
    const LineInfoW* line = el_wline(editor);
    write_to_terminal(screen.show({line->buffer, static_cast<size_t>(line->lastchar - line->buffer)},
                                  static_cast<size_t>(line->cursor - line->buffer)));
  }

  void resized() {
    el_resize(editor);
    // el_resize keeps the cursor's column, so libedit would write the next character beyond the end of a narrower row.
    el_wset(editor, EL_REFRESH);
    if (!draws) return;
    const winsize size = terminal_size();
    screen.resize(size.ws_row, size.ws_col);
    unsettled = true;
    input->ask_position();
  }

  void settle(int column) {
    if (!std::exchange(unsettled, false)) return;
    write_to_terminal(screen.settle(column));
  }

  // Call while the terminal does not echo: a reply that came later would appear among the program's output.
  void settle_now() { settle(input->await_position()); }

  // Leaves the complete line on the terminal.
  void finish(std::wstring_view text, bool new_line) {
    if (!draws) return;
    settle_now();
    write_to_terminal(screen.show(text, text.size()) + screen.finish(new_line));
  }

  static unsigned char clear_screen(EditLine* editor, int) {
    write_to_terminal("\033[H\033[2J");
    of(editor).screen.forget();
    return CC_REFRESH;
  }

  void take_paste(std::string text) {
    if (text.find('\n') != std::string::npos || text.size() > kTypedPaste) {
      const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
      std::string sign = concat("[paste ", pastes.size() + 1, ": ", lines, lines == 1 ? " line, " : " lines, ",
                                text.size(), " bytes]");
      pastes.emplace_back(sign, std::move(text));
      text = std::move(sign);
    }
    std::replace(text.begin(), text.end(), '\t', ' ');  // a typed tab would complete
    for (const wchar_t c : to_wide(text)) queue.push_back(c);
  }

  static unsigned char complete(EditLine* editor, int) {
    Impl& self = of(editor);
    const LineInfoW* line = el_wline(editor);
    const std::string typed = to_utf8({line->buffer, static_cast<size_t>(line->cursor - line->buffer)});
    std::string common;
    std::vector<std::string> matches;
    for (const std::string& word : self.options.completions) {
      if (typed.empty() || !word.starts_with(typed)) continue;
      if (matches.empty()) common = word;
      common.resize(std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first - common.begin());
      matches.push_back(word);
    }
    if (matches.empty()) {
      write_to_terminal("\a");
      return CC_REFRESH;
    }
    if (matches.size() > 1 && common.size() == typed.size()) return self.list(matches);
    el_winsertstr(editor, to_wide(common.substr(typed.size()) + (matches.size() == 1 ? " " : "")).c_str());
    return CC_REFRESH;
  }

  // Shows words below the line, and the line again below them.
  unsigned char list(const std::vector<std::string>& words) {
    const size_t columns = terminal_size().ws_col;
    std::string rows, row;
    for (const std::string& word : words) {
      if (!row.empty() && row.size() + 2 + word.size() >= columns) rows += std::exchange(row, "") + "\r\n";
      row += (row.empty() ? "" : "  ") + word;
    }
    rows += row + "\r\n";
    if (!draws) {
      write_to_terminal("\r\n" + rows);
      return CC_REDISPLAY;
    }
    const LineInfoW* line = el_wline(editor);
    finish({line->buffer, static_cast<size_t>(line->lastchar - line->buffer)}, true);
    write_to_terminal(rows);
    screen.forget();
    return CC_REFRESH;
  }

  void load_history() {
    if (options.history_file.empty()) return;
    std::ifstream file(options.history_file);
    std::deque<std::string> lines;
    size_t n = 0;
    for (std::string line; std::getline(file, line); ++n) {
      lines.push_back(line);
      if (lines.size() > kHistoryLines) lines.pop_front();
    }
    HistEventW outcome;
    for (std::string line : lines) {
      std::replace(line.begin(), line.end(), kLineFeedInFile, '\n');
      history_w(history, &outcome, H_ENTER, to_wide(line).c_str());
    }
    if (n > 2 * kHistoryLines) shorten_history(lines);
  }

  // Writes a temporary file and renames it. Failing to write the history must not prevent chatting.
  void shorten_history(const std::deque<std::string>& lines) const {
    const std::string beside = options.history_file + ".new";
    {
      std::ofstream file(beside, std::ios::trunc);
      for (const std::string& line : lines) file << line << '\n';
      if (!file.flush()) return;
    }
    chmod(beside.c_str(), 0600);
    std::error_code ignored;
    std::filesystem::rename(beside, options.history_file, ignored);
  }

  void append_to_file(const std::string& line) const {
    if (options.history_file.empty()) return;
    std::error_code ignored;
    const auto folder = std::filesystem::path(options.history_file).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    const int file = open(options.history_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return;
    std::string entry = line;
    std::replace(entry.begin(), entry.end(), '\n', kLineFeedInFile);
    entry += '\n';
    [[maybe_unused]] const auto n = write(file, entry.data(), entry.size());
    close(file);
  }
};

LineEditor::LineEditor(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LineEditor::~LineEditor() = default;

LineEditor::Input LineEditor::read(const std::string& prompt, const std::string& prefill) {
  Impl& self = *impl_;
  self.prompt = to_wide(prompt);
  const winsize size = terminal_size();
  self.screen.begin(self.prompt, std::string(style_on_stderr(Style::kPrompt)), std::string(style_end_on_stderr()),
                    size.ws_row, size.ws_col);
  self.unsettled = false;
  self.event = Event::kLine;
  self.was_empty = false;
  self.pastes.clear();
  self.queue.clear();
  self.prefill = to_wide(without_controls(prefill));

  TerminalInput input(self.terminal);
  self.input = &input;
  el_resize(self.editor);  // the terminal may have been resized in the meantime
  // Before the prompt appears, not with the first character as libedit does, so that the terminal is ready for early
  // typing and does not echo its reply.
  el_wset(self.editor, EL_PREP_TERM, 1);
  if (self.draws && !std::exchange(self.asked_terminal, true)) input.learn_manners();
  int length = 0;
  const wchar_t* line = el_wgets(self.editor, &length);
  if (self.event == Event::kInterrupted) return {Event::kInterrupted, "", self.was_empty};
  if (!line || length <= 0) return {Event::kEnd, ""};
  std::wstring typed(line, static_cast<size_t>(length));
  if (typed.ends_with(L'\n')) typed.pop_back();
  self.finish(typed, true);
  std::string text = to_utf8(typed);
  for (const auto& [sign, paste] : self.pastes) replace_all(text, sign, paste);
  return {Event::kLine, text};
}

void LineEditor::remember(const std::string& text) {
  if (text.empty() || text.size() > kMostRemembered) return;
  HistEventW outcome;
  history_w(impl_->history, &outcome, H_ENTER, to_wide(text).c_str());
  impl_->append_to_file(text);
}

std::string default_history_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::getenv("INFER_HISTORY")) return variable("INFER_HISTORY");
  if (const std::string state = variable("XDG_STATE_HOME"); !state.empty()) return state + "/infer/history";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.local/state/infer/history";
  return "";
}

}  // namespace infer
