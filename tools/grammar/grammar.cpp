#include "tools/grammar/grammar.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/grammar/gbnf.h"
#include "src/text/grammar/json_schema.h"
#include "src/text/tokenizer.h"
#include "tools/constraint_flags.h"
#include "tools/grammar/grammar_bench.h"
#include "tools/input.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

using nlohmann::json;

struct GrammarOptions {
  std::string grammar_file;
  std::string schema_file;
  std::string model;  // -m: to resolve tokens that the grammar names by their text
  bool check = false, bench = false;
  bool jsonl = false;    // {"text"} per line in, {"result"} per line out
  bool compact = false;  // --json-compact
  bool lenient = false;  // --schema-lenient
};

std::shared_ptr<const grammar::Grammar> read_schema(const GrammarOptions& options) {
  grammar::SchemaOptions schema;
  schema.compact = options.compact;
  schema.lenient = options.lenient;
  std::vector<std::string> warnings;
  auto grammar = grammar::parse_json_schema(read_text_file(options.schema_file), schema, &warnings);
  print_warnings(warnings);
  return grammar;
}

std::shared_ptr<const grammar::Grammar> read_grammar(const GrammarOptions& options) {
  if (!options.schema_file.empty()) return read_schema(options);
  std::shared_ptr<const Tokenizer> tokenizer;
  grammar::FindToken find_token;
  if (!options.model.empty()) {
    GgufOpenOptions open;
    open.map_data = false;
    tokenizer = std::make_shared<const Tokenizer>(load_vocabulary(*open_model(options.model, open)));
    find_token = [tokenizer](std::string_view text) { return tokenizer->find(text); };
  }
  return grammar::parse_gbnf(read_text_file(options.grammar_file), find_token);
}

void answer_lines(const grammar::Grammar& grammar) {
  std::istringstream lines(read_stdin());
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const json request = json::parse(line, nullptr, false);
    if (!request.is_object() || !request.contains("text") || !request["text"].is_string()) {
      throw Error(ErrorCode::kInvalidArgument,
                  expected_found("grammar", concat("line ", number), "a JSON object with a string \"text\"",
                                 request.is_discarded() ? "text that is not JSON" : "another"));
    }
    const grammar::Match match = grammar.match(request["text"].get_ref<const std::string&>());
    std::cout << json{{"result", grammar::match_name(match)}}.dump() << '\n';
  }
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
}

int run_grammar(const GrammarOptions& options) {
  if (options.bench) {
    if (options.model.empty() || !options.grammar_file.empty() || !options.schema_file.empty())
      throw Error(ErrorCode::kInvalidArgument, "--bench needs -m MODEL, and reads its schemas from standard input.");
    bench_grammars(options.model, {options.compact, options.lenient});
    return 0;
  }
  if (!options.check) throw Error(ErrorCode::kInvalidArgument, "Give --check or --bench.");
  if (options.grammar_file.empty() == options.schema_file.empty())
    throw Error(ErrorCode::kInvalidArgument, "Give either --grammar-file or --json-schema-file.");
  std::shared_ptr<const grammar::Grammar> grammar;
  try {
    grammar = read_grammar(options);
  } catch (const Error& error) {
    // A rejected file is not wrong usage: exit code 1.
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw Error(ErrorCode::kInvalidFile, error.what());
  }
  if (options.jsonl) answer_lines(*grammar);
  else std::cout << "The grammar compiles to " << grammar->automaton().n_states() << " states.\n";
  return 0;
}

}  // namespace

std::function<int()> define_grammar(CLI::App& app) {
  const auto o = std::make_shared<GrammarOptions>();
  auto* check = app.add_flag("--check", o->check, "Check a grammar, and texts against it");
  app.add_flag("--bench", o->bench,
               "Measure compilation and token masks: read {\"schema\", \"texts\"} per line, with the tokens of -m")
      ->excludes(check);
  auto* file = app.add_option("--grammar-file", o->grammar_file, "File with a grammar (GBNF)")->type_name("FILE");
  app.add_option("--json-schema-file", o->schema_file, "File with a JSON schema")->type_name("FILE")->excludes(file);
  app.add_option("-m,--model", o->model, "Model file, for tokens that the grammar names by their text, and for --bench")
      ->type_name("FILE");
  app.add_flag("--jsonl", o->jsonl,
               "Read one {\"text\"} per line, write one {\"result\": \"accept\" | \"prefix\" | \"reject\"} per line");
  app.add_flag("--json-compact", o->compact, "Require compact JSON, without spaces or line breaks between its tokens");
  app.add_flag("--schema-lenient", o->lenient, "Ignore keywords that cannot be enforced, with a warning");
  return [o] { return run_grammar(*o); };
}

}  // namespace infer
