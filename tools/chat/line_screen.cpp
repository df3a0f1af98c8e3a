#include "tools/chat/line_screen.h"

#include <wchar.h>

#include <algorithm>

#include "ggml-like/error.h"
#include "tools/chat/wide_text.h"

namespace infer {
namespace {

// Width in columns; 0 for combining marks, which join the previous character.
int width_of(wchar_t c) { return std::max(0, wcwidth(c)); }

// Appends one screen character per wchar_t, except for line feeds.
void append_shown(std::wstring& shown, wchar_t c) {
  const bool control = c < 0x20 || c == 0x7F;
  if (c == L'\t') {
    shown += L"    ";
  } else if (control && c != L'\n') {
    shown += L'^';
    shown += static_cast<wchar_t>(c ^ 0x40);
  } else {
    shown += wcwidth(c) < 0 && c != L'\n' ? L'\uFFFD' : c;
  }
}

std::string to_terminal(std::wstring_view shown) {
  std::string text;
  for (const char byte : to_utf8(shown)) text += byte == '\n' ? "\r\n" : std::string(1, byte);
  return text;
}

// Moves the cursor `n` rows down, or up if negative.
std::string rows_down(int n) {
  if (n == 0) return "";
  return n > 0 ? concat("\033[", n, "B") : concat("\033[", -n, "A");
}

}  // namespace

void LineScreen::begin(std::wstring prompt, std::string style_on, std::string style_off, int rows, int columns) {
  prompt_ = std::move(prompt);
  style_on_ = std::move(style_on);
  style_off_ = std::move(style_off);
  rows_ = std::max(rows, 1);
  columns_ = std::max(columns, 2);
  forget();
}

void LineScreen::forget() {
  drawn_ = false;
  at_ = {};
  first_row_ = 0;
}

std::vector<LineScreen::Place> LineScreen::places(std::wstring_view whole, int columns) const {
  std::vector<Place> all;
  all.reserve(whole.size() + 1);
  Place at;
  for (const wchar_t c : whole) {
    const int width = width_of(c);
    // A full row wraps only when the next character arrives; a wide character leaves the last column empty.
    if (c != L'\n' && width > 0 && at.column + width > columns) at = {at.row + 1, 0};
    all.push_back(at);
    at = c == L'\n' ? Place{at.row + 1, 0} : Place{at.row, at.column + width};
  }
  if (at.column >= columns) at = {at.row + 1, 0};
  all.push_back(at);
  return all;
}

size_t LineScreen::row_begin(const std::vector<Place>& all, int row) {
  const auto first = std::find_if(all.begin(), all.end(), [&](const Place& place) { return place.row >= row; });
  return static_cast<size_t>(first - all.begin());
}

std::string LineScreen::show(std::wstring_view text, size_t cursor) {
  std::wstring whole = prompt_;
  size_t shown_cursor = whole.size();
  for (size_t i = 0; i < text.size(); ++i) {
    append_shown(whole, text[i]);
    if (i + 1 == cursor) shown_cursor = whole.size();
  }
  return draw(std::move(whole), shown_cursor);
}

std::string LineScreen::draw(std::wstring whole, size_t cursor) {
  if (drawn_ && whole == whole_ && cursor == cursor_) return "";
  const std::vector<Place> place = places(whole, columns_);
  const int n_rows = place.back().row + 1;
  const bool all_visible = first_row_ == 0 && n_rows <= rows_;
  // Appended text can simply be written, except for combining marks, which may belong before the wrap.
  const bool appends = drawn_ && all_visible && cursor == whole.size() && cursor_ == whole_.size() &&
                       whole.starts_with(whole_) &&
                       std::all_of(whole.begin() + static_cast<ptrdiff_t>(whole_.size()), whole.end(),
                                   [](wchar_t c) { return width_of(c) > 0; });
  const bool same_text = drawn_ && whole == whole_;
  const int row = place[cursor].row;
  if (same_text && row >= first_row_ && row < first_row_ + rows_) {
    cursor_ = cursor;
    return move({row - first_row_, place[cursor].column});
  }
  std::string bytes;
  size_t begin = 0, end = whole.size();
  if (appends) {
    begin = whole_.size();
  } else {
    bytes += rows_down(-at_.row) + "\r\033[J";
    // If the text has more rows than the terminal, draw the rows around the cursor.
    first_row_ = n_rows <= rows_ ? 0 : std::clamp(first_row_, row - rows_ + 1, row);
    begin = row_begin(place, first_row_);
    end = std::min(row_begin(place, first_row_ + rows_), whole.size());
    // The line feed at the end of the last row would scroll.
    if (end > begin && end < whole.size() && whole[end - 1] == L'\n') --end;
  }
  if (begin < prompt_.size()) {
    bytes += style_on_ + to_terminal(std::wstring_view(whole).substr(begin, prompt_.size() - begin)) + style_off_;
    begin = prompt_.size();
  }
  if (begin < end) bytes += to_terminal(std::wstring_view(whole).substr(begin, end - begin));
  at_ = end == whole.size() ? place.back() : place[end - 1];
  // After filling a row, the terminal keeps its cursor there until another character is written.
  if (end == whole.size() && end > 0 && at_.column == 0 && whole[end - 1] != L'\n') bytes += " \r\033[K";
  at_.row -= first_row_;
  whole_ = std::move(whole);
  cursor_ = cursor;
  drawn_ = true;
  drawn_columns_ = narrowest_ = columns_;
  return bytes + move({row - first_row_, place[cursor].column});
}

std::string LineScreen::move(Place to) {
  std::string bytes = rows_down(to.row - at_.row) + "\r";
  if (to.column > 0) bytes += concat("\033[", to.column, "C");
  at_ = to;
  return bytes;
}

std::string LineScreen::finish(bool new_line) {
  std::string bytes = draw(whole_, whole_.size());
  // A full row has moved the cursor to the next one.
  const bool at_row_start = at_.column == 0 && !whole_.empty() && whole_.back() != L'\n';
  if (new_line && !at_row_start) bytes += "\r\n";
  return bytes;
}

void LineScreen::resize(int rows, int columns) {
  rows_ = std::max(rows, 1);
  columns_ = std::max(columns, 2);
  narrowest_ = std::min(narrowest_, columns_);
}

std::string LineScreen::settle(int column) {
  if (!drawn_) return "";
  // The cursor's place if the terminal reflowed the text, and if it truncated the rows or left them alone.
  const std::vector<Place> anew = places(whole_, columns_), before = places(whole_, drawn_columns_);
  const Place wrapped = anew[cursor_], cut = {before[cursor_].row, std::min(before[cursor_].column, narrowest_ - 1)};
  if (column < 0) {
    rewraps_ = false;  // terminals without position reports leave rows as they are
  } else if ((column == wrapped.column) != (column == cut.column)) {
    rewraps_ = column == wrapped.column;
  }
  const int first_row = rewraps_ ? anew[row_begin(before, first_row_)].row : first_row_;
  at_ = {std::max(0, (rewraps_ ? wrapped.row : cut.row) - first_row), 0};
  first_row_ = 0;
  drawn_ = false;
  return draw(whole_, cursor_);
}

}  // namespace infer
