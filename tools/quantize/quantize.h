// infer quantize: converts a model to another type. Reads and writes slice by slice, so memory does not depend on the
// model's size; the new file appears under its name complete or not at all.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace infer {

struct QuantizeOptions {
  std::string input, output;
  std::string type;                       // see file_type.h
  std::string importance;                 // --imatrix; "": none
  std::vector<std::string> tensor_types;  // REGEX=TYPE; the first match wins
  std::string output_tensor_type, token_embedding_type;
  bool pure = false;
  bool leave_output_tensor = false;
  bool allow_requantize = false;
  bool keep_split = false;
  std::string split_size;  // "500M", "2G"; "": one file
  bool dry_run = false;    // print what would be written
  bool report = false;     // measure the error of every type
  int threads = 0;         // 0: one per processor
};

// Returns the exit code: 0, or 130 if the user stopped it. Throws Error.
int run_quantize(const QuantizeOptions& options, std::ostream& out);

}  // namespace infer
