// Models what a terminal shows of a line being edited: the prompt and the text, wrapped over as many rows as needed,
// with wide and combining characters. Returns the bytes that take the terminal from one state to the next; writes
// nothing itself. Long rows are left to the terminal to wrap, so that terminals that reflow on resize keep the line
// intact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

class LineScreen {
 public:
  // Starts a line in the first column of the cursor's row. `style_on` and `style_off` enclose the prompt.
  void begin(std::wstring prompt, std::string style_on, std::string style_off, int rows, int columns);

  // Shows the text with the cursor before its character `cursor`. Control characters other than line feed appear as ^X.
  std::string show(std::wstring_view text, size_t cursor);

  // Moves the cursor after the text and, with `new_line`, on to the first column of the next row.
  std::string finish(bool new_line);

  // The terminal was resized. Call settle() before showing anything: `column` is the cursor's column, from 0, as
  // reported by the terminal (-1: not reported). It reveals whether the terminal reflows its rows or truncates them.
  void resize(int rows, int columns);
  std::string settle(int column);

  // The screen was cleared and the cursor is in the first column of some row: everything has to be redrawn.
  void forget();

 private:
  struct Place {
    int row = 0, column = 0;
  };
  // The positions of all characters of prompt and text, and of the one that would follow.
  std::vector<Place> places(std::wstring_view whole, int columns) const;
  // Index of the first character in that row or below.
  static size_t row_begin(const std::vector<Place>& all, int row);
  std::string draw(std::wstring whole, size_t cursor);
  std::string move(Place to);

  std::wstring prompt_;
  std::string style_on_, style_off_;
  int rows_ = 24, columns_ = 80;
  std::wstring whole_;     // prompt and text as shown, with control characters replaced
  size_t cursor_ = 0;      // index in whole_
  Place at_;               // position of the terminal's cursor, relative to the first drawn row
  int first_row_ = 0;      // first drawn row of the text; above 0 if the text has more rows than the terminal
  bool drawn_ = false;     // whole_ is on the screen
  int narrowest_ = 0;      // smallest number of columns since the text was drawn
  int drawn_columns_ = 0;  // number of columns when it was drawn
  bool rewraps_ = true;    // best knowledge of whether the terminal reflows its rows on resize
};

}  // namespace infer
