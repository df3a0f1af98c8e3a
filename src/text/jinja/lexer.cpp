#include "src/text/jinja/lexer.h"

#include <algorithm>

#include "src/text/jinja/string_literal.h"
#include "src/text/jinja/unicode.h"
#include "src/text/template_error.h"

namespace infer::jinja {
namespace {

constexpr size_t kMaxBrackets = 1000;

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kData:
      return "template data / text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "string";
    default:
      return token.text.substr(0, 100);
  }
}

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

void Lexer::fail_here(const std::string& text) const {
  throw TemplateError(TemplateError::Kind::kSyntax, static_cast<int>(line_), "syntax", text);
}

void Lexer::advance(size_t to) {
  const std::string_view passed = source_.substr(position_, to - position_);
  if (passed.empty()) return;
  line_ += static_cast<uint32_t>(std::count(passed.begin(), passed.end(), '\n'));
  line_starting_ = passed.back() == '\n';
  position_ = to;
}

size_t Lexer::skip_space(size_t position) const {
  for (size_t length = 0; position < source_.size(); position += length) {
    if (!is_space(code_at(source_, position, length))) break;
  }
  return position;
}

Token Lexer::next() {
  if (pending_ != State::kRoot) {
    Token token;
    token.line = line_;
    state_ = pending_;
    pending_ = State::kRoot;
    token.kind = state_ == State::kVariable ? TokenKind::kVariableBegin : TokenKind::kBlockBegin;
    return token;
  }
  return state_ == State::kRoot ? root() : inside();
}

// Text up to the next tag, which is kept in pending_. Empty text is skipped.
Token Lexer::root() {
  while (position_ < source_.size()) {
    Token token;
    token.kind = TokenKind::kData;
    token.line = line_;
    size_t open = position_;
    do {
      open = source_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source_.size()) open = source_.size();
      else if (source_[open + 1] != '%' && source_[open + 1] != '{' && source_[open + 1] != '#') ++open;
      else break;
    } while (open < source_.size());
    const std::string_view data = source_.substr(position_, open - position_);
    if (open == source_.size()) {
      token.text = data;
      advance(open);
      return token;
    }
    const char type = source_[open + 1];
    const char sign = open + 2 < source_.size() ? source_[open + 2] : ' ';
    const bool has_sign = sign == '-' || sign == '+';
    token.text = strip_before_tag(data, has_sign ? sign : ' ', type == '{');
    size_t raw_end = 0;
    if (type == '%' && raw_begin(open, raw_end)) {
      advance(raw_end);
      token.text += raw_data();
    } else {
      advance(open + (has_sign ? 3 : 2));
      if (type == '#') {
        skip_comment();
      } else {
        pending_ = type == '{' ? State::kVariable : State::kBlock;
        closers_.clear();
      }
    }
    if (!token.text.empty()) return token;
    if (pending_ != State::kRoot) return next();
  }
  Token end;
  end.line = line_;
  return end;
}

std::string Lexer::strip_before_tag(std::string_view data, char sign, bool variable) {
  if (sign == '-') return std::string(strip(data, Side::kRight));
  if (sign != '+' && !variable) {
    const size_t line_break = data.rfind('\n');
    const size_t line = line_break == std::string_view::npos ? 0 : line_break + 1;
    if ((line > 0 || line_starting_) && strip(data.substr(line), Side::kBoth).empty()) data = data.substr(0, line);
  }
  return std::string(data);
}

bool Lexer::raw_begin(size_t open, size_t& end) const {
  size_t i = open + 2;
  if (at(i, "-") || at(i, "+")) ++i;
  i = skip_space(i);
  if (!at(i, "raw")) return false;
  i = skip_space(i + 3);
  if (at(i, "%}")) return end = i + 2, true;
  if (at(i, "-%}")) return end = skip_space(i + 3), true;
  return false;
}

void Lexer::skip_comment() {
  const size_t close = source_.find("#}", position_);
  if (close == std::string_view::npos) fail_here("Missing end of comment tag");
  const char sign = close > position_ ? source_[close - 1] : ' ';
  size_t end = close + 2;
  if (sign == '-') end = skip_space(end);
  else if (sign != '+' && at(end, "\n")) ++end;
  advance(end);
}

std::string Lexer::raw_data() {
  for (size_t open = position_; (open = source_.find("{%", open)) != std::string_view::npos; open += 2) {
    size_t i = open + 2;
    const char sign = at(i, "-") ? '-' : at(i, "+") ? '+' : ' ';
    if (sign != ' ') ++i;
    i = skip_space(i);
    if (!at(i, "endraw")) continue;
    i = skip_space(i + 6);
    size_t end = 0;
    if (at(i, "+%}")) end = i + 3;
    else if (at(i, "-%}")) end = skip_space(i + 3);
    else if (at(i, "%}")) end = i + 2 + (at(i + 2, "\n") ? 1 : 0);
    else continue;
    const std::string data = strip_before_tag(source_.substr(position_, open - position_), sign, false);
    advance(end);
    return data;
  }
  fail_here("Missing end of raw directive");
}

bool Lexer::close_tag(Token& token) {
  if (!closers_.empty()) return false;
  const bool block = state_ == State::kBlock;
  const std::string_view close = block ? "%}" : "}}";
  size_t end = 0;
  if (at(position_, close)) end = position_ + 2 + (block && at(position_ + 2, "\n") ? 1 : 0);
  else if (at(position_, "-") && at(position_ + 1, close)) end = skip_space(position_ + 3);
  else if (block && at(position_, "+") && at(position_ + 1, close)) end = position_ + 3;
  else return false;
  token.kind = block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd;
  token.line = line_;
  advance(end);
  state_ = State::kRoot;
  return true;
}

Token Lexer::inside() {
  Token token;
  if (close_tag(token)) return token;
  advance(skip_space(position_));
  if (close_tag(token)) return token;
  token.line = line_;
  if (position_ >= source_.size()) return token;
  const char c = source_[position_];
  if (is_digit_char(c)) return number();
  if (c == '"' || c == '\'') return string();
  size_t length = 0;
  const uint32_t code = code_at(source_, position_, length);
  if (code == '_' || is_alphanumeric(code)) return name();
  return operator_token();
}

Token Lexer::number() {
  Token token;
  token.line = line_;
  size_t i = position_;
  const auto digits = [&](size_t from, auto is_part) {
    size_t end = from;
    while (end < source_.size() && (is_part(source_[end]) || (source_[end] == '_' && end > from &&
                                                              end + 1 < source_.size() && is_part(source_[end + 1])))) {
      ++end;
    }
    return end;
  };
  const auto decimal = [&](size_t from) { return digits(from, is_digit_char); };
  // A fraction or an exponent makes a float, except after a dot: `x.1.2` has two indices.
  const size_t whole = decimal(i);
  size_t end = whole;
  const bool behind_dot = i > 0 && source_[i - 1] == '.';
  if (!behind_dot) {
    if (at(end, ".") && end + 1 < source_.size() && is_digit_char(source_[end + 1])) end = decimal(end + 1);
    if (at(end, "e") || at(end, "E")) {
      const size_t sign = end + 1 + (at(end + 1, "+") || at(end + 1, "-") ? 1 : 0);
      if (sign < source_.size() && is_digit_char(source_[sign])) end = decimal(sign);
    }
  }
  if (end > whole) {
    token.kind = TokenKind::kFloat;
  } else {
    token.kind = TokenKind::kInteger;
    const char base = source_[i] == '0' && i + 1 < source_.size() ? static_cast<char>(source_[i + 1] | 0x20) : ' ';
    const auto prefixed = [&](auto is_part) {
      const size_t from = i + 2 + (at(i + 2, "_") ? 1 : 0);
      const size_t stop = digits(from, is_part);
      if (stop > from) end = stop;
    };
    if (base == 'x')
      prefixed([](char c) { return is_digit_char(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); });
    else if (base == 'o') prefixed([](char c) { return c >= '0' && c <= '7'; });
    else if (base == 'b') prefixed([](char c) { return c == '0' || c == '1'; });
    else if (source_[i] == '0') end = digits(i, [](char c) { return c == '0'; });
  }
  for (; i < end; ++i) {
    if (source_[i] != '_') token.text += source_[i];
  }
  advance(end);
  return token;
}

Token Lexer::name() {
  Token token;
  token.kind = TokenKind::kName;
  token.line = line_;
  size_t end = position_;
  bool valid = true;
  for (size_t length = 0; end < source_.size(); end += length) {
    const uint32_t code = code_at(source_, end, length);
    if (code != '_' && !is_alphanumeric(code) && !is_identifier_part(code)) break;
    valid = valid && (end == position_ ? is_identifier_start(code) : is_identifier_part(code));
  }
  token.text = source_.substr(position_, end - position_);
  if (!valid) fail_here("Invalid character in identifier");
  advance(end);
  return token;
}

Token Lexer::string() {
  Token token;
  token.kind = TokenKind::kString;
  token.line = line_;
  const char quote = source_[position_];
  size_t end = position_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size())
    fail_here(concat("unexpected char ", quote == '"' ? "'\"'" : "\"'\"", ": the string is not closed"));
  std::string problem;
  token.text = unescape(source_.substr(position_ + 1, end - position_ - 1), problem);
  if (!problem.empty()) fail_here(problem);
  advance(end + 1);
  return token;
}

Token Lexer::operator_token() {
  constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                             "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  Token token;
  token.kind = TokenKind::kOperator;
  token.line = line_;
  for (const std::string_view op : kOperators) {
    if (!at(position_, op)) continue;
    token.text = op;
    const char c = op[0];
    if (c == '(' || c == '[' || c == '{') {
      closers_.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      if (closers_.size() > kMaxBrackets) fail_here("brackets nested too deeply");
    } else if (c == ')' || c == ']' || c == '}') {
      if (closers_.empty()) fail_here(concat("unexpected '", op, "'"));
      if (closers_.back() != c) fail_here(concat("unexpected '", op, "', expected '", closers_.back(), "'"));
      closers_.pop_back();
    }
    advance(position_ + op.size());
    return token;
  }
  size_t length = 0;
  code_at(source_, position_, length);
  fail_here(concat("unexpected char '", source_.substr(position_, length), "' at ", position_));
}

}  // namespace infer::jinja
