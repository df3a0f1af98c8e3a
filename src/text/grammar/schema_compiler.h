// Writes the grammar rules of a JSON schema. Every subschema becomes a rule, processed from a queue, so that nesting
// uses no call stack. Used by one thread.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/grammar/json_schema.h"
#include "src/text/grammar/number_range.h"
#include "src/text/grammar/regex.h"
#include "src/text/grammar/rules.h"
#include "src/text/grammar/schema_document.h"

namespace infer::grammar {

class SchemaCompiler {
 public:
  // Writes into `rules`. All arguments must outlive this. `warnings` may be null.
  SchemaCompiler(Rules& rules, const Json& root, const SchemaOptions& options, std::vector<std::string>* warnings,
                 const Limits& limits);

  // The rule for the root or for one of its subschemas; `place` is its JSON pointer. finish() writes its expression.
  RuleId rule_of(const Json& schema, const std::string& place);
  // Writes all rules requested so far and those they need. Throws as parse_json_schema() does.
  void finish();

  // For values in notations other than JSON. `place` is the schema's. All throw as parse_json_schema() does.
  ExprId any_number();
  // The schema with references and combinations resolved, if it is an object with properties and no alternatives; else
  // null.
  const Json* as_object(const Json& schema, const std::string& place);
  // The target of a schema that is only a reference; else the schema itself.
  const Json& followed(const Json& schema, const std::string& place) const;
  // The schema with references and combinations resolved: a value is valid if one of the results allows it.
  std::vector<const Json*> plain(const Json& schema, const std::string& place);
  // REQUIRES: a result of plain(). The values of enum or const that the rest of the schema allows.
  std::vector<const Json*> values(const Json& schema);
  ExprId compile_number(const Json& schema, const std::string& place, bool integer);
  // The contents of a string; kNoId: any. `any_character`: one character in any spelling.
  ExprId string_text(const Json& schema, const std::string& place, const Speller& speller, ExprId any_character);
  // Throws, or warns about a keyword.
  void unenforced(const std::string& place, const std::string& keyword);

 private:
  struct Task {
    RuleId rule;
    const Json* schema;
    std::string place;
    bool merged;  // has neither applicators nor errors
  };

  ExprId value_of(const Json& schema, const std::string& place) { return rules_.rule(rule_of(schema, place)); }

  ExprId compile(const Task& task);
  ExprId compile_plain(const Json& schema, const std::string& place);
  ExprId compile_branches(const Json& branches, const std::string& place);
  ExprId compile_values(const Json& schema);
  ExprId compile_string(const Json& schema, const std::string& place);
  ExprId compile_array(const Json& schema, const std::string& place);
  ExprId compile_object(const Json& schema, const std::string& place);
  ExprId compile_map(const Json& schema, const std::string& place);
  void add_members(const Json& schema, const std::string& place, std::vector<ExprId>& items, std::string& flags,
                   std::vector<std::string>& words);

  // Building blocks of JSON, created once.
  ExprId token(std::string_view text) { return rules_.bytes(text); }
  ExprId any_value();
  ExprId any_string();
  ExprId any_integer();
  ExprId quoted(ExprId inside);
  ExprId separator();
  ExprId member(ExprId key, ExprId value);
  ExprId constant(const Json& value);
  ExprId bracketed(const char* open, ExprId inside, const char* close);

  const SchemaOptions& options_;
  std::vector<std::string>* warnings_;
  const Limits& limits_;
  SchemaDocument document_;
  Rules& rules_;
  std::deque<Task> tasks_;
  std::map<const Json*, RuleId> rule_of_;
  std::map<std::string, RuleId> rule_of_text_;  // for merged schemas, which may be copies of each other
  ExprId space_ = 0, digit_ = 0, character_ = 0;
  RuleId value_ = kNoId, string_ = kNoId, number_ = kNoId, integer_ = kNoId;
  bool in_merged_ = false;
  size_t compared_bytes_ = 0;
};

// The grammar of a whole schema.
Grammar schema_grammar(const Json& root, const SchemaOptions& options, std::vector<std::string>* warnings,
                       const Limits& limits);

}  // namespace infer::grammar
