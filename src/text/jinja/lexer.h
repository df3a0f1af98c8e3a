// Splits the source of a template into tokens: the text outside tags, with white space control applied, and the
// contents of the tags. trim_blocks and lstrip_blocks are on, a final line break is dropped, every line break becomes
// \n.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infer::jinja {

enum class TokenKind : uint8_t {
  kEnd,
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string text;  // data, name, string value, digits of a number, or operator

  bool is_operator(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// The token's name in error messages.
std::string describe(const Token& token);

// Converts line breaks to \n and drops the last one.
std::string normalize_source(std::string_view source);

class Lexer {
 public:
  // `source` comes from normalize_source and outlives the lexer.
  explicit Lexer(std::string_view source) : source_(source) {}
  // The next token; at the end, kEnd on every call. Throws TemplateError.
  Token next();

 private:
  enum class State : uint8_t { kRoot, kVariable, kBlock };

  Token root();
  Token open_tag(size_t at);
  Token inside();
  bool raw_begin(size_t at, size_t& end) const;
  void skip_comment();
  std::string raw_data();
  bool close_tag(Token& token);
  Token number();
  Token name();
  Token string();
  Token operator_token();
  std::string strip_before_tag(std::string_view data, char sign, bool variable);
  void advance(size_t to);
  size_t skip_space(size_t at) const;
  bool at(size_t position, std::string_view text) const { return source_.substr(position).starts_with(text); }
  [[noreturn]] void fail_here(const std::string& text) const;

  std::string_view source_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  State state_ = State::kRoot;
  State pending_ = State::kRoot;  // the tag found after the current data
  bool line_starting_ = true;     // the last thing read ended a line
  std::vector<char> closers_;     // closing brackets expected in the current tag
};

}  // namespace infer::jinja
