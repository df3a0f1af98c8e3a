#include "tools/tokenize.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ggml-like/error.h"
#include "ggml-like/gguf.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"
#include "src/model/vocabulary_loader.h"
#include "src/text/tokenizer.h"
#include "tools/flags.h"
#include "tools/input.h"
#include "tools/model_by_name.h"

namespace infer {
namespace {

using nlohmann::json;

struct TokenizeOptions {
  std::string model;
  std::string text;
  bool has_text = false;
  std::string file;
  bool add_special = true;
  bool parse_special = true;
  bool json = false;   // {"tokens": [...]}
  bool jsonl = false;  // {"text", "add_special", "parse_special"} per line in, {"tokens": [...]} per line out
};

// Handles one line of --jsonl. Line numbers start at 1.
json answer_line(const Tokenizer& tokenizer, const TokenizeOptions& options, const std::string& line, int number) {
  const auto fail = [&](const std::string& expected, const char* found) {
    throw Error(ErrorCode::kInvalidArgument, expected_found("tokenize", concat("line ", number), expected, found));
  };
  const json request = json::parse(line, nullptr, false);
  if (!request.is_object())
    fail("a JSON object", request.is_discarded() ? "text that is not JSON" : request.type_name());
  if (!request.contains("text") || !request["text"].is_string())
    fail("a string \"text\"", request.contains("text") ? request["text"].type_name() : "none");
  const auto flag = [&](const char* key, bool fallback) {
    if (!request.contains(key)) return fallback;
    if (!request[key].is_boolean()) fail(concat("true or false as \"", key, "\""), request[key].type_name());
    return request[key].get<bool>();
  };
  return {{"tokens",
           tokenizer.encode(request["text"].get_ref<const std::string&>(), flag("add_special", options.add_special),
                            flag("parse_special", options.parse_special))}};
}

// Reads the text from the options, the file, or standard input.
int run_tokenize(const TokenizeOptions& options) {
  GgufOpenOptions open;
  open.map_data = false;
  const Tokenizer tokenizer(load_vocabulary(*open_model(options.model, open)));
  const std::string text = options.has_text        ? options.text
                           : !options.file.empty() ? read_text_file(options.file)
                                                   : read_stdin();
  if (options.jsonl) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      std::cout << answer_line(tokenizer, options, line, number).dump() << '\n';
    }
  } else {
    const std::vector<TokenId> tokens = tokenizer.encode(text, options.add_special, options.parse_special);
    if (options.json) {
      std::cout << json{{"tokens", tokens}}.dump() << '\n';
    } else {
      for (const TokenId token : tokens) {
        std::cout << token << '\t' << printable(tokenizer.piece(token, true), 1000) << '\n';
      }
    }
  }
  if (!std::cout.flush()) throw Error(ErrorCode::kIo, "Cannot write to standard output.");
  return 0;
}

}  // namespace

std::function<int()> define_tokenize(CLI::App& app) {
  const auto o = std::make_shared<TokenizeOptions>();
  add_model_file_flag(app, o->model);
  const auto set_text = [o](const std::string& text) { o->text = text, o->has_text = true; };
  auto* text = app.add_option_function<std::string>("text", set_text, "Text (default: --file or standard input)")
                   ->type_name("TEXT");
  app.add_option_function<std::string>("-p,--prompt", set_text, "The same as TEXT")->excludes(text)->type_name("TEXT");
  app.add_option("-f,--file", o->file, "File with the text")->type_name("FILE");
  app.add_flag_callback(
      "--no-add-special", [o] { o->add_special = false; }, "Do not add begin or end tokens");
  app.add_flag_callback(
      "--no-parse-special", [o] { o->parse_special = false; }, "Read control tokens in the text as text");
  auto* json = app.add_flag("--json", o->json, "Print {\"tokens\": [...]}");
  app.add_flag("--jsonl", o->jsonl,
               "One {\"text\", \"add_special\", \"parse_special\"} per line in, one {\"tokens\": [...]} per line out")
      ->excludes(json);
  return [o] { return run_tokenize(*o); };
}

}  // namespace infer
