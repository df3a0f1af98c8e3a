#include "tools/chat/line_editor.h"

#include <fcntl.h>
#include <histedit.h>
#include <langinfo.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
#include "tools/chat/terminal_input.h"
#include "tools/terminal.h"

namespace infer {
namespace {

constexpr int kHistoryLines = 1000;
constexpr size_t kTypedPaste = 400;     // pastes of one line up to this many bytes appear as if typed
constexpr wchar_t kEscapeMark = L'\1';  // encloses what takes no room on the screen

// libedit reads and draws characters as the locale says.
void choose_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

static_assert(sizeof(wchar_t) == 4);

std::wstring to_wide(std::string_view text) {
  std::wstring wide;
  while (!text.empty()) {
    char32_t character = 0;
    const size_t n = utf8_character(text, character);
    wide += n == 0 ? L'\uFFFD' : static_cast<wchar_t>(character);
    text.remove_prefix(std::max<size_t>(n, 1));
  }
  return wide;
}

std::string to_utf8(std::wstring_view wide) {
  std::string text;
  for (const wchar_t w : wide) {
    const char32_t c = static_cast<char32_t>(w);
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  return text;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

struct LineEditor::Impl {
  Options options;
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  std::wstring prompt;
  std::string typed_ahead;
  TerminalInput* input = nullptr;                           // while read() runs
  std::deque<wchar_t> queue;                                // characters to come before those of `input`
  std::vector<std::pair<std::string, std::string>> pastes;  // what stands in the line for it, its text
  Event event = Event::kLine;
  bool was_empty = false;

  explicit Impl(Options o) : options(std::move(o)) {
    choose_utf8_locale();
    editor = el_init("infer", stdin, stderr, stderr);
    history = history_winit();
    if (!editor || !history) {
      release();
      throw Error(ErrorCode::kIo, "[terminal] the line editor can not be started");
    }
    HistEventW outcome;
    history_w(history, &outcome, H_SETSIZE, kHistoryLines);
    history_w(history, &outcome, H_SETUNIQUE, 1);
    el_wset(editor, EL_HIST, history_w, history);
    el_wset(editor, EL_CLIENTDATA, this);
    el_wset(editor, EL_EDITOR, L"emacs");
    el_wset(editor, EL_SIGNAL, 0);
    el_wset(editor, EL_PROMPT_ESC, get_prompt, kEscapeMark);
    el_wset(editor, EL_GETCFN, get_character);
    el_wset(editor, EL_ADDFN, L"complete-command", L"Complete a command", complete);
    el_wset(editor, EL_BIND, L"^I", L"complete-command", nullptr);
    el_wset(editor, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
    el_source(editor, nullptr);  // the user's own ~/.editrc; no matter if there is none
    load_history();
  }

  ~Impl() { release(); }

  void release() {
    if (editor) el_end(editor);
    if (history) history_wend(history);
  }

  static Impl& of(EditLine* editor) {
    void* self = nullptr;
    el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }

  static wchar_t* get_prompt(EditLine* editor) { return of(editor).prompt.data(); }

  // 1: a character, 0: end of input, -1: the line is given up.
  static int get_character(EditLine* editor, wchar_t* character) {
    Impl& self = of(editor);
    for (;;) {
      if (!self.queue.empty()) {
        *character = self.queue.front();
        self.queue.pop_front();
        return 1;
      }
      TerminalInput::Item item = self.input->next();
      switch (item.event) {
        case TerminalInput::Event::kCharacter:
          *character = static_cast<wchar_t>(item.character);
          return 1;
        case TerminalInput::Event::kPaste:
          self.take_paste(std::move(item.paste));
          break;
        case TerminalInput::Event::kResized:
          el_resize(editor);
          el_wset(editor, EL_REFRESH);
          break;
        case TerminalInput::Event::kContinued:
          el_wset(editor, EL_PREP_TERM, 1);
          el_wset(editor, EL_REFRESH);
          break;
        case TerminalInput::Event::kInterrupted: {
          const LineInfoW* line = el_wline(editor);
          self.was_empty = line->lastchar == line->buffer;
          self.event = Event::kInterrupted;
          return -1;
        }
        case TerminalInput::Event::kEnd:
          self.event = Event::kEnd;
          return 0;
      }
    }
  }

  void take_paste(std::string text) {
    if (text.find('\n') != std::string::npos || text.size() > kTypedPaste) {
      const auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
      std::string sign = concat("[paste ", pastes.size() + 1, ": ", lines, lines == 1 ? " line, " : " lines, ",
                                text.size(), " bytes]");
      pastes.emplace_back(sign, std::move(text));
      text = std::move(sign);
    }
    std::replace(text.begin(), text.end(), '\t', ' ');  // typed, a tab would complete
    for (const wchar_t c : to_wide(text)) queue.push_back(c);
  }

  static unsigned char complete(EditLine* editor, int) {
    const Impl& self = of(editor);
    const LineInfoW* line = el_wline(editor);
    const std::string typed = to_utf8({line->buffer, static_cast<size_t>(line->cursor - line->buffer)});
    std::string common;
    int matches = 0;
    for (const std::string& word : self.options.completions) {
      if (typed.empty() || !word.starts_with(typed)) continue;
      if (matches++ == 0) {
        common = word;
      } else {
        common.resize(std::mismatch(common.begin(), common.end(), word.begin(), word.end()).first - common.begin());
      }
    }
    if (matches == 0 || (matches > 1 && common.size() == typed.size())) return CC_REFRESH_BEEP;
    el_winsertstr(editor, to_wide(common.substr(typed.size()) + (matches == 1 ? " " : "")).c_str());
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
    for (const std::string& line : lines) history_w(history, &outcome, H_ENTER, to_wide(line).c_str());
    if (n > 2 * kHistoryLines) shorten_history(lines);
  }

  // Written beside and renamed. A history that cannot be written is no reason not to chat.
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
    const std::string entry = line + "\n";
    [[maybe_unused]] const auto n = write(file, entry.data(), entry.size());
    close(file);
  }
};

LineEditor::LineEditor(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
LineEditor::~LineEditor() = default;

LineEditor::Input LineEditor::read(const std::string& prompt, const std::string& prefill) {
  Impl& self = *impl_;
  const std::wstring on = to_wide(style_on_stderr(Style::kPrompt)), off = to_wide(style_end_on_stderr());
  self.prompt = to_wide(prompt);
  if (!on.empty()) self.prompt = kEscapeMark + on + kEscapeMark + self.prompt + kEscapeMark + off + kEscapeMark;
  self.event = Event::kLine;
  self.was_empty = false;
  self.pastes.clear();
  self.queue.clear();
  for (const wchar_t c : to_wide(without_controls(prefill))) self.queue.push_back(c);

  TerminalInput input(self.typed_ahead);
  self.input = &input;
  el_resize(self.editor);  // the terminal may have changed while nobody looked
  // Before the prompt appears, not with the first character as libedit does it: who types at once must find it ready.
  el_wset(self.editor, EL_PREP_TERM, 1);
  int length = 0;
  const wchar_t* line = el_wgets(self.editor, &length);
  self.input = nullptr;
  if (self.event == Event::kInterrupted) return {Event::kInterrupted, "", self.was_empty};
  if (!line || length <= 0) return {Event::kEnd, ""};
  std::string text = to_utf8({line, static_cast<size_t>(length)});
  if (text.ends_with('\n')) text.pop_back();
  for (const auto& [sign, paste] : self.pastes) replace_all(text, sign, paste);
  return {Event::kLine, text};
}

void LineEditor::remember(const std::string& line) {
  if (line.empty() || line.find('\n') != std::string::npos) return;
  HistEventW outcome;
  history_w(impl_->history, &outcome, H_ENTER, to_wide(line).c_str());
  impl_->append_to_file(line);
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
