// The building blocks of JSON for schemas: values of any kind, brackets and separators.
#include "src/text/grammar/json_text.h"
#include "src/text/grammar/schema_compiler.h"

namespace infer::grammar {

ExprId SchemaCompiler::quoted(ExprId inside) { return rules_.sequence({token("\""), inside, token("\"")}); }

ExprId SchemaCompiler::separator() { return rules_.sequence({space_, token(","), space_}); }

// `key`: the contents of the key's string.
ExprId SchemaCompiler::member(ExprId key, ExprId value) {
  return rules_.sequence({quoted(key), space_, token(":"), space_, value});
}

ExprId SchemaCompiler::bracketed(const char* open, ExprId inside, const char* close) {
  return rules_.sequence({token(open), space_, inside, space_, token(close)});
}

ExprId SchemaCompiler::any_string() {
  if (string_ == kNoId) {
    string_ = rules_.declare("any string");
    rules_.define(string_, quoted(rules_.repeat(character_, 0, kUnbounded)));
  }
  return rules_.rule(string_);
}

// Numbers that every parser reads as finite: at most 41 digits before the point and an exponent below 200.
ExprId SchemaCompiler::any_number() {
  if (number_ == kNoId) {
    number_ = rules_.declare("any number");
    const ExprId fraction = rules_.sequence({token("."), rules_.repeat(digit_, 1, 40)});
    const ExprId positive =
        rules_.sequence({rules_.optional(token("+")), rules_.optional(token("1")), digit_, rules_.optional(digit_)});
    const ExprId negative = rules_.sequence({token("-"), rules_.repeat(digit_, 1, 3)});
    const ExprId exponent =
        rules_.sequence({rules_.code_point({{'E', 'E'}, {'e', 'e'}}), rules_.choice({positive, negative})});
    rules_.define(number_, rules_.sequence({any_integer(), rules_.optional(fraction), rules_.optional(exponent)}));
  }
  return rules_.rule(number_);
}

ExprId SchemaCompiler::any_integer() {
  if (integer_ == kNoId) {
    integer_ = rules_.declare("any integer");
    const ExprId digits = rules_.sequence({rules_.code_point({{'1', '9'}}), rules_.repeat(digit_, 0, 40)});
    rules_.define(integer_, rules_.sequence({rules_.optional(token("-")), rules_.choice({token("0"), digits})}));
  }
  return rules_.rule(integer_);
}

ExprId SchemaCompiler::any_value() {
  if (value_ == kNoId) {
    value_ = rules_.declare("any value");
    const ExprId value = rules_.rule(value_);
    const ExprId items = rules_.listed(separator(), {value}, std::string(1, kRepeated), 0);
    const ExprId key = rules_.repeat(character_, 0, kUnbounded);
    const ExprId members = rules_.listed(separator(), {member(key, value)}, std::string(1, kRepeated), 0);
    rules_.define(value_, rules_.choice({bracketed("{", members, "}"), bracketed("[", items, "]"), any_string(),
                                         any_number(), token("true"), token("false"), token("null")}));
  }
  return rules_.rule(value_);
}

}  // namespace infer::grammar
