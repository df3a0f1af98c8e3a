// infer quantize: converts a model to another type. Reads and writes slice by slice, so memory does not depend on the
// model's size; the new file appears under its name complete or not at all.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "tools/quantize/mix.h"

namespace infer {

struct QuantizeOptions {
  // OUT may be left out, and a number of threads may follow.
  std::string input, output;
  std::string type;                       // see file_type.h; "COPY": all tensors as they are
  std::string count;                      // the word after TYPE
  std::string importance;                 // --imatrix; "": none
  std::vector<std::string> tensor_types;  // REGEX=TYPE; the first match wins
  std::string output_tensor_type, token_embedding_type;
  MixOptions mix;  // --pure, --leave-output-tensor
  bool allow_requantize = false;
  bool keep_split = false;
  std::string split_size;  // "500M", "2G"; "": one file
  bool dry_run = false;    // print what would be written
  bool report = false;     // measure the error of every type
  int threads = 0;         // 0: one per processor
};

// Defines the flags on `app`; returns the function that runs the command. Its exit code is 130 if the user stopped it.
std::function<int()> define_quantize(CLI::App& app);

}  // namespace infer
