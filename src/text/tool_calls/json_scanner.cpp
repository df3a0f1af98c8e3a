#include "src/text/tool_calls/json_scanner.h"

namespace infer {
namespace {

constexpr size_t kMaxScannedDepth = 500;

bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonScanner::Status JsonScanner::next(State state) {
  state_ = state;
  return Status::kMore;
}

JsonScanner::Status JsonScanner::open(char bracket) {
  if (open_.size() == kMaxScannedDepth) return Status::kBroken;
  open_.push_back(bracket);
  return next(bracket == '{' ? State::kFirstKey : State::kFirstValue);
}

JsonScanner::Status JsonScanner::close(char bracket) {
  if (open_.empty() || open_.back() != (bracket == '}' ? '{' : '[')) return Status::kBroken;
  open_.pop_back();
  return end_value();
}

JsonScanner::Status JsonScanner::end_value() {
  state_ = State::kAfterValue;
  return open_.empty() ? Status::kDone : Status::kMore;
}

JsonScanner::Status JsonScanner::begin_value(char c) {
  key_ = false;
  if (c == '"') return next(State::kString);
  if (c == '{' || c == '[') return open(c);
  if (c == '-') return next(State::kMinus);
  if (c == '0') return next(State::kZero);
  if (is_digit(c)) return next(State::kDigits);
  word_ = c == 't' ? "true" : c == 'f' ? "false" : c == 'n' ? "null" : "";
  if (word_.empty()) return Status::kBroken;
  word_.remove_prefix(1);
  return next(State::kWord);
}

JsonScanner::Status JsonScanner::begin_key(char c) {
  key_ = true;
  return c == '"' ? next(State::kString) : Status::kBroken;
}

JsonScanner::Status JsonScanner::after_value(char c) {
  if (c == '}' || c == ']') return close(c);
  if (c != ',' || open_.empty()) return Status::kBroken;
  return next(open_.back() == '{' ? State::kKey : State::kValue);
}

JsonScanner::Status JsonScanner::in_string(char c) {
  if (c == '\\') return next(State::kEscape);
  if (c != '"') return Status::kMore;
  return key_ ? next(State::kColon) : end_value();
}

bool JsonScanner::number_complete() const {
  return state_ == State::kZero || state_ == State::kDigits || state_ == State::kFraction ||
         state_ == State::kExponentDigits;
}

JsonScanner::Status JsonScanner::in_number(char c) {
  const bool integer = state_ == State::kZero || state_ == State::kDigits;
  if (is_digit(c)) {
    switch (state_) {
      case State::kMinus:
        return next(c == '0' ? State::kZero : State::kDigits);
      case State::kZero:
        return Status::kBroken;
      case State::kDot:
        return next(State::kFraction);
      case State::kExponent:
      case State::kExponentSign:
        return next(State::kExponentDigits);
      default:
        return Status::kMore;
    }
  }
  if (c == '.' && integer) return next(State::kDot);
  if ((c == 'e' || c == 'E') && (integer || state_ == State::kFraction)) return next(State::kExponent);
  if ((c == '+' || c == '-') && state_ == State::kExponent) return next(State::kExponentSign);
  if (!number_complete()) return Status::kBroken;
  state_ = State::kAfterValue;
  return is_json_space(c) ? Status::kMore : after_value(c);
}

JsonScanner::Status JsonScanner::add(char c) {
  switch (state_) {
    case State::kString:
      return in_string(c);
    case State::kEscape:
      return next(State::kString);
    case State::kWord:
      if (c != word_.front()) return Status::kBroken;
      word_.remove_prefix(1);
      if (word_.empty()) state_ = State::kAfterValue;
      return Status::kMore;
    default:
      break;
  }
  if (state_ >= State::kMinus) return in_number(c);
  if (is_json_space(c)) return Status::kMore;
  switch (state_) {
    case State::kFirstValue:
      return c == ']' ? close(c) : begin_value(c);
    case State::kFirstKey:
      return c == '}' ? close(c) : begin_key(c);
    case State::kKey:
      return begin_key(c);
    case State::kColon:
      return c == ':' ? next(State::kValue) : Status::kBroken;
    case State::kAfterValue:
      return after_value(c);
    default:
      return begin_value(c);
  }
}

}  // namespace infer
