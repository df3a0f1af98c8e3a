#include "tools/constraint_flags.h"

#include <algorithm>
#include <cstdio>

#include "ggml-like/error.h"
#include "ggml-like/printable.h"
#include "tools/arguments.h"
#include "tools/input.h"

namespace infer {

ContentConstraint schema_constraint(const std::string& text, const std::string& name) {
  const nlohmann::ordered_json schema = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!schema.is_object() && !schema.is_boolean()) {
    throw Error(ErrorCode::kInvalidArgument, concat(name, ": ", printable(text, 60),
                                                    " is not a JSON schema. Write it like {\"type\": \"object\"}."));
  }
  ContentConstraint constraint;
  constraint.kind = ContentConstraint::Kind::kJsonSchema;
  constraint.source = name;
  constraint.text = text;
  return constraint;
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::fprintf(stderr, "warning: %s\n", printable(warning).c_str());
}

ContentConstraint ConstraintFlags::content() const {
  ContentConstraint constraint;
  if (!schema.empty()) constraint = schema_constraint(schema, "--json-schema");
  if (!schema_file.empty()) constraint = schema_constraint(read_text_file(schema_file), "--json-schema-file");
  if (!grammar.empty() || !grammar_file.empty()) {
    constraint.kind = ContentConstraint::Kind::kGrammar;
    constraint.source = grammar.empty() ? "--grammar-file" : "--grammar";
    constraint.text = grammar.empty() ? read_text_file(grammar_file) : grammar;
  }
  constraint.compact = compact;
  constraint.lenient = lenient;
  return constraint;
}

nlohmann::ordered_json ConstraintFlags::tools() const {
  if (tools_file.empty()) return nullptr;
  nlohmann::ordered_json tools = nlohmann::ordered_json::parse(read_text_file(tools_file), nullptr, false);
  if (tools.is_object() && tools.contains("tools")) tools = nlohmann::ordered_json(tools["tools"]);
  const bool valid = tools.is_array() && !tools.empty() &&
                     std::all_of(tools.begin(), tools.end(), [](const auto& tool) { return tool.is_object(); });
  if (!valid) {
    throw Error(ErrorCode::kInvalidArgument, concat("--tools: ", printable(tools_file),
                                                    " is not a list of tools. Write it like [{\"type\": \"function\", "
                                                    "\"function\": {\"name\": ..., \"parameters\": {...}}}]."));
  }
  return tools;
}

void add_constraint_flags(CLI::App& app, ConstraintFlags& flags) {
  auto* grammar = app.add_option("--grammar", flags.grammar, "Grammar (GBNF) that the answer must follow")
                      ->check(not_empty())
                      ->type_name("TEXT");
  auto* file = app.add_option("--grammar-file", flags.grammar_file, "File with a grammar (GBNF)")
                   ->excludes(grammar)
                   ->type_name("FILE");
  auto* schema =
      app.add_option("-j,--json-schema", flags.schema, "JSON schema that the answer must be valid for; {}: any JSON")
          ->check(not_empty())
          ->excludes(grammar)
          ->excludes(file)
          ->type_name("JSON");
  app.add_option(flag_names("-jf,--json-schema-file"), flags.schema_file, "File with a JSON schema")
      ->excludes(grammar)
      ->excludes(file)
      ->excludes(schema)
      ->type_name("FILE");
  app.add_flag("--json-compact", flags.compact,
               "With a schema: compact JSON, without spaces or line breaks between its tokens");
  app.add_flag("--schema-lenient", flags.lenient,
               "With a schema: ignore keywords that cannot be enforced, with a warning");
}

CLI::Option* add_tools_flag(CLI::App& app, ConstraintFlags& flags) {
  return app
      .add_option(
          "--tools", flags.tools_file,
          "File with the tools that the model may call (JSON, as in OpenAI's API); a chat asks for their results")
      ->type_name("FILE");
}

}  // namespace infer
