// The flags of `infer run` that constrain answers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "src/text/answer_grammar.h"
#include "src/text/ordered_json.h"

namespace infer {

struct ConstraintFlags {
  std::string grammar, grammar_file;      // GBNF
  std::string schema, schema_file;        // JSON
  bool compact = false, lenient = false;  // for schemas
  std::string tools_file;                 // a JSON array of tools

  // Reads the files. Throws Error(kInvalidArgument, kIo).
  ContentConstraint content() const;
  nlohmann::ordered_json tools() const;  // null: none
};

// Adds all flags but --tools.
void add_constraint_flags(CLI::App& app, ConstraintFlags& flags);
CLI::Option* add_tools_flag(CLI::App& app, ConstraintFlags& flags);

// Prints one line each to standard error.
void print_warnings(const std::vector<std::string>& warnings);

// A constraint from a JSON schema. Throws Error(kInvalidArgument) unless `text` is a JSON object or a boolean; `name`
// stands for it in the message.
ContentConstraint schema_constraint(const std::string& text, const std::string& name);

}  // namespace infer
