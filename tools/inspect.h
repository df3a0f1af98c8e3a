// infer inspect: shows the contents of a model file (metadata, tensors, totals) and checks whether its values are
// finite. Prints text, or one JSON document; strings from the file are made safe for a terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"

namespace infer {

struct InspectOptions {
  std::filesystem::path file;  // any part of a split model
  bool architectures = false;  // list what the program can run; no file
  bool tensors = false;        // list every tensor (JSON always does)
  bool verify = false;         // read all data and look for NaN and infinity
  bool json = false;
};

// Returns the exit code: 0, or 1 if verification found bad values. Throws Error if the file cannot be read.
int run_inspect(const InspectOptions& options, std::ostream& out);

// Defines the flags on `app`; returns the function that runs the command.
std::function<int()> define_inspect(CLI::App& app);

// The first value of a tensor that is NaN or infinite after conversion to float, possibly because of a bad block scale.
struct BadValue {
  const GgufTensor* tensor;
  int64_t element;  // in storage order
  float value;

  std::string position() const;  // "[3, 17]", slowest dimension first
};

struct ValueCheck {
  std::vector<BadValue> bad;                 // one per damaged tensor, in file order
  std::vector<const GgufTensor*> unchecked;  // of types that cannot be converted to float
};

// REQUIRES: the file was opened with data. Reads all of it with `n_threads` >= 1 threads.
ValueCheck check_values(const GgufFile& file, unsigned n_threads);

}  // namespace infer
