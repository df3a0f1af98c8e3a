// infer tokenize: the token ids of a text.
#pragma once

#include <string>

namespace infer {

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

// Reads the text from the options, the file, or standard input. Returns the exit code; throws Error.
int run_tokenize(const TokenizeOptions& options);

}  // namespace infer
