// Tracks the structure of one JSON value byte by byte, to detect where it ends and whether it is broken. No recursion;
// nesting is limited. Strings are read leniently: raw line breaks and unknown escapes are allowed.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace infer {

class JsonScanner {
 public:
  enum class Status { kMore, kDone, kBroken };

  // Reads the next byte. kDone: this byte ends an object, an array or a string; top-level numbers and literals end with
  // the text (`complete`). REQUIRES: no other status has been returned.
  Status add(char c);

  size_t depth() const { return open_.size(); }
  bool in_key() const { return key_ && (state_ == State::kString || state_ == State::kEscape); }
  // Between a key's closing quote and the value.
  bool before_value() const { return state_ == State::kColon || state_ == State::kValue; }
  // Between a value and the next key of its object, or the bracket after it.
  bool after_value() const { return state_ == State::kAfterValue || state_ == State::kKey; }

 private:
  enum class State {
    kValue,
    kFirstValue,
    kKey,
    kFirstKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kWord,
    kMinus,
    kZero,
    kDigits,
    kDot,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits
  };
  Status begin_value(char c);
  Status begin_key(char c);
  Status end_value();
  Status after_value(char c);
  Status open(char bracket);
  Status close(char bracket);
  Status in_string(char c);
  Status in_number(char c);
  bool number_complete() const;
  Status next(State state);

  State state_ = State::kValue;
  bool key_ = false;        // the string is a key
  std::string_view word_;   // the rest of true, false or null
  std::vector<char> open_;  // brackets
};

}  // namespace infer
