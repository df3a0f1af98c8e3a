#include "src/text/grammar/gbnf.h"

#include <map>
#include <optional>
#include <utility>

#include "ggml-like/bytes_text.h"
#include "ggml-like/error.h"
#include "src/text/grammar/rules.h"
#include "src/text/utf8.h"

namespace infer::grammar {
namespace {

constexpr uint32_t kMaxRepeat = 2'000'000'000;
constexpr TokenId kMaxTokenId = 100'000'000;

bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class GbnfParser {
 public:
  GbnfParser(std::string_view text, const FindToken& find_token, const Limits& limits)
      : text_(text), find_token_(find_token), limits_(limits) {}

  Rules parse() {
    if (text_.size() > limits_.source_bytes)
      fail_at(0, concat("at most ", grouped(limits_.source_bytes), " bytes"), concat(grouped(text_.size())));
    check_utf8();
    for (skip_space(true); !at_end(); skip_space(true)) read_rule();
    for (const auto& [name, rule] : rule_ids_) {
      if (rules_.definition(rule) == kNoId)
        fail_at(first_use_[rule], "the name of a rule", concat(name, ", which is undefined"));
    }
    const auto root = rule_ids_.find("root");
    if (root == rule_ids_.end())
      throw Error(ErrorCode::kInvalidArgument, "[grammar] expected a rule named root, found none");
    rules_.set_root(root->second);
    return std::move(rules_);
  }

 private:
  // The alternatives between two parentheses, or of a whole rule.
  struct Group {
    size_t begin;
    std::vector<ExprId> alternatives, sequence;
  };

  [[noreturn]] void fail_at(size_t at, const std::string& expected, const std::string& found) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at; i += decode_utf8(text_, i).length) {
      const bool line_end = text_[i] == '\n' || (text_[i] == '\r' && text_.substr(i + 1, 1) != "\n");
      column = line_end ? 1 : column + 1;
      line += line_end ? 1 : 0;
    }
    throw Error(ErrorCode::kInvalidArgument,
                concat("[grammar] line ", line, ", column ", column, ": expected ", expected, ", found ", found));
  }
  [[noreturn]] void fail(const std::string& expected) const { fail_at(at_, expected, describe(at_)); }

  std::string describe(size_t at) const {
    if (at >= text_.size()) return "the end of the grammar";
    if (text_[at] == '\n' || text_[at] == '\r') return "the end of the line";
    const uint32_t length = decode_utf8(text_, at).length;
    if (static_cast<uint8_t>(text_[at]) < 0x20) return concat("byte ", static_cast<int>(text_[at]));
    return std::string(text_.substr(at, length));
  }

  void check_utf8() const {
    for (size_t at = 0; at < text_.size();) {
      const Utf8Char c = decode_utf8(text_, at);
      if (!c.valid)
        throw Error(ErrorCode::kInvalidArgument, concat("[grammar] expected UTF-8, found an error at byte ", at));
      at += c.length;
    }
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_line_end() const { return at_end() || peek() == '\n' || peek() == '\r'; }
  bool take(std::string_view wanted) {
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  void expect(std::string_view wanted) {
    if (!take(wanted)) fail(std::string(wanted));
  }

  // Skips spaces and comments; line ends too, if they do not end the rule.
  void skip_space(bool lines) {
    for (; !at_end(); ++at_) {
      if (peek() == '#') {
        while (!at_line_end()) ++at_;
      }
      const bool line_end = peek() == '\n' || peek() == '\r';
      if (at_end() || (line_end ? !lines : peek() != ' ' && peek() != '\t')) return;
    }
  }

  std::string read_name() {
    const size_t begin = at_;
    while (is_name(peek())) ++at_;
    if (at_ == begin) fail("the name of a rule");
    return std::string(text_.substr(begin, at_ - begin));
  }

  RuleId rule_named(const std::string& name, size_t at) {
    const auto [found, is_new] = rule_ids_.try_emplace(name, kNoId);
    if (is_new) {
      found->second = rules_.declare(name);
      first_use_.push_back(at);
    }
    return found->second;
  }

  void read_rule() {
    const size_t begin = at_;
    const std::string name = read_name();
    const RuleId rule = rule_named(name, begin);
    if (rules_.definition(rule) != kNoId)
      fail_at(begin, "one definition of each rule", concat("a second one of ", name));
    skip_space(false);
    expect("::=");
    skip_space(true);
    rules_.define(rule, read_alternatives());
    if (!at_line_end()) fail("the end of the rule");
  }

  // Reads to the end of the rule. Groups are kept on an explicit stack, since they can nest deeply.
  ExprId read_alternatives() {
    std::vector<Group> groups = {{at_, {}, {}}};
    for (;;) {
      if (rules_.n_exprs() > limits_.expressions)
        fail(concat("at most ", grouped(limits_.expressions), " expressions"));
      Group& group = groups.back();
      const bool nested = groups.size() > 1;
      if (take("(")) {
        if (groups.size() > limits_.nesting)
          fail_at(at_ - 1, concat("at most ", limits_.nesting, " groups inside each other"), "more");
        groups.push_back({at_ - 1, {}, {}});
        skip_space(true);
        continue;
      }
      if (take("|")) {
        end_sequence(group);
        skip_space(true);
        continue;
      }
      if (nested && take(")")) {
        end_sequence(group);
        const ExprId choice = rules_.choice(std::move(group.alternatives));
        groups.pop_back();
        groups.back().sequence.push_back(choice);
        skip_space(groups.size() > 1);
        continue;
      }
      if (read_quantifier(group) || read_element(group)) {
        skip_space(nested);
        continue;
      }
      if (nested) fail_at(at_, concat("the ) of the ( on line ", line_of(group.begin)), describe(at_));
      end_sequence(group);
      return rules_.choice(std::move(group.alternatives));
    }
  }

  size_t line_of(size_t at) const {
    size_t line = 1;
    for (size_t i = 0; i < at; ++i) line += text_[i] == '\n' ? 1 : 0;
    return line;
  }

  void end_sequence(Group& group) {
    group.alternatives.push_back(rules_.sequence(std::move(group.sequence)));
    group.sequence.clear();
  }

  bool read_element(Group& group) {
    std::vector<ExprId>& out = group.sequence;
    if (peek() == '"') out.push_back(read_literal());
    else if (peek() == '[') out.push_back(read_class());
    else if (peek() == '<' || (peek() == '!' && peek(1) == '<')) out.push_back(read_token());
    else if (take(".")) out.push_back(rules_.code_point(CodePoints::all()));
    else if (is_name(peek())) {
      const size_t begin = at_;
      out.push_back(rules_.rule(rule_named(read_name(), begin)));
    } else return false;
    return true;
  }

  bool read_quantifier(Group& group) {
    const char c = peek();
    if (c != '*' && c != '+' && c != '?' && c != '{') return false;
    if (group.sequence.empty()) fail(concat("something to repeat before ", c));
    ++at_;
    uint32_t min = c == '+' ? 1 : 0, max = c == '?' ? 1 : kUnbounded;
    if (c == '{') {
      const size_t begin = at_;
      skip_space(false);
      min = max = read_count();
      skip_space(false);
      if (take(",")) {
        skip_space(false);
        max = is_digit(peek()) ? read_count() : kUnbounded;
        skip_space(false);
      }
      expect("}");
      if (min > max) fail_at(begin, concat("at least ", min, " as the second count"), concat(max));
    }
    group.sequence.back() = rules_.repeat(group.sequence.back(), min, max);
    return true;
  }

  uint32_t read_count() {
    const size_t begin = at_;
    uint64_t count = 0;
    for (; is_digit(peek()); ++at_) {
      count = count * 10 + static_cast<uint64_t>(peek() - '0');
      if (count > kMaxRepeat) fail_at(begin, concat("a count of at most ", grouped(kMaxRepeat)), "more");
    }
    if (at_ == begin) fail("a count");
    return static_cast<uint32_t>(count);
  }

  ExprId read_literal() {
    const size_t begin = at_++;
    std::string bytes;
    while (peek() != '"') {
      if (at_end()) fail_at(at_, concat("the \" that ends the literal of line ", line_of(begin)), describe(at_));
      append_utf8(read_character(), bytes);
    }
    ++at_;
    return rules_.bytes(bytes);
  }

  ExprId read_class() {
    const size_t begin = at_++;
    const bool negated = take("^");
    CodePoints set;
    while (peek() != ']') {
      if (at_end()) fail_at(at_, concat("the ] that ends the class of line ", line_of(begin)), describe(at_));
      const size_t first_at = at_;
      const uint32_t first = read_character();
      uint32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end()) continue;
        last = read_character();
        if (last < first) fail_at(first_at, "a range whose first character is not after its last", "one that is");
      }
      set.add(first, last);
    }
    ++at_;
    return rules_.code_point(negated ? set.complement() : std::move(set));
  }

  // A character or an escape.
  uint32_t read_character() {
    if (peek() != '\\') {
      const Utf8Char c = decode_utf8(text_, at_);
      at_ += c.length;
      return c.code;
    }
    const size_t begin = at_++;
    const char c = peek();
    if (!at_end()) ++at_;
    switch (c) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return read_hex(2);
      case 'u':
        return read_hex(4);
      case 'U':
        return read_hex(8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
        return static_cast<uint32_t>(c);
      default:
        break;
    }
    fail_at(begin, "an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\xHH \\uHHHH or \\UHHHHHHHH",
            concat("\\", describe(begin + 1)));
  }

  uint32_t read_hex(int n_digits) {
    const size_t begin = at_;
    uint64_t code = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const char c = peek();
      if (is_digit(c)) code = code * 16 + static_cast<uint64_t>(c - '0');
      else if (c >= 'a' && c <= 'f') code = code * 16 + static_cast<uint64_t>(c - 'a' + 10);
      else if (c >= 'A' && c <= 'F') code = code * 16 + static_cast<uint64_t>(c - 'A' + 10);
      else fail(concat(n_digits, " hexadecimal digits"));
    }
    if (code > kMaxCodePoint) fail_at(begin, "a code point of at most 10FFFF", std::string(text_.substr(begin, 8)));
    return static_cast<uint32_t>(code);
  }

  // <[id]> or <text>; with ! in front, any other token.
  ExprId read_token() {
    TokenLiteral literal;
    literal.negated = take("!");
    const size_t begin = at_;
    expect("<");
    if (take("[")) {
      literal.token = static_cast<TokenId>(read_count());
      if (literal.token > kMaxTokenId) fail_at(begin, "the id of a token", "a larger number");
      expect("]");
      expect(">");
      return rules_.token(literal);
    }
    while (peek() != '>' && !at_line_end()) ++at_;
    expect(">");
    const std::string_view token = text_.substr(begin, at_ - begin);
    if (!find_token_) fail_at(begin, "the id of a token, as <[id]>, because no model is given", std::string(token));
    literal.token = find_token_(token);
    if (literal.token == kNoToken) fail_at(begin, "a token of the model", std::string(token));
    return rules_.token(literal);
  }

  std::string_view text_;
  const FindToken& find_token_;
  const Limits& limits_;
  size_t at_ = 0;
  Rules rules_;
  std::map<std::string, RuleId> rule_ids_;
  std::vector<size_t> first_use_;  // [n_rules] where its name was first seen
};

}  // namespace

Rules parse_gbnf_rules(std::string_view text, const FindToken& find_token, const Limits& limits) {
  return GbnfParser(text, find_token, limits).parse();
}

std::shared_ptr<const Grammar> parse_gbnf(std::string_view text, const FindToken& find_token, const Limits& limits) {
  return std::make_shared<const Grammar>(parse_gbnf_rules(text, find_token, limits), limits);
}

}  // namespace infer::grammar
