// What a terminal shows of a line that is being edited: the prompt, and the text over as many rows as it takes, with
// wide and combining characters. Makes the bytes that bring the terminal from one state to the next; writes nothing.
// Terminals wrap long rows themselves, so that those that rearrange their rows when resized keep the line in one piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace infer {

class LineScreen {
 public:
  // A line begins in the first column of the row the cursor is in. `style_on` and `style_off` enclose the prompt.
  void begin(std::wstring prompt, std::string style_on, std::string style_off, int rows, int columns);

  // The text with the cursor before its character `cursor`. Control characters other than line feed are shown as ^X.
  std::string show(std::wstring_view text, size_t cursor);

  // The cursor behind the text; `new_line`: and then in the first column of a row below it.
  std::string finish(bool new_line);

  // The terminal has another size. Nothing may be shown until settle() is told in which column, counted from 0, the
  // terminal put the cursor (-1: it does not say): that tells whether it wraps the text anew or cuts its rows off.
  void resize(int rows, int columns);
  std::string settle(int column);

  // What is on the screen is gone, and the cursor in the first column of some row: all is to be drawn anew.
  void forget();

 private:
  struct Place {
    int row = 0, column = 0;
  };
  // The places of all characters of prompt and text, and of what would follow them.
  std::vector<Place> places(std::wstring_view whole, int columns) const;
  // Index of the first character in that row or below.
  static size_t row_begin(const std::vector<Place>& all, int row);
  std::string draw(std::wstring whole, size_t cursor);
  std::string move(Place to);

  std::wstring prompt_;
  std::string style_on_, style_off_;
  int rows_ = 24, columns_ = 80;
  std::wstring whole_;     // prompt and text as shown, control characters replaced
  size_t cursor_ = 0;      // index in whole_
  Place at_;               // of the terminal's cursor, below the first row that is drawn
  int first_row_ = 0;      // of the text, the first one drawn; above 0 where the text has more rows than the terminal
  bool drawn_ = false;     // whole_ is on the screen
  int narrowest_ = 0;      // columns since the text was drawn
  int drawn_columns_ = 0;  // when it was drawn
  bool rewraps_ = true;    // the terminal wraps its rows anew when resized, as far as is known
};

}  // namespace infer
