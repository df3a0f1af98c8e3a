// infer inspect: what is in a model file (metadata, tensors, totals) and whether its numbers are finite. Prints text
// for people or one JSON document for programs; strings of the file are made safe for a terminal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "ggml-like/gguf.h"

namespace infer {

struct InspectOptions {
  std::filesystem::path file;  // any part of a split model
  bool tensors = false;        // list every tensor (a JSON document always does)
  bool verify = false;         // read all data and look for NaN and infinity
  bool json = false;
};

// Returns the exit code: 0, or 1 when verification found something. Throws Error when the file cannot be read.
int run_inspect(const InspectOptions& options, std::ostream& out);

// The first value of a tensor that is NaN or infinite after conversion to float, which a bad block scale makes it too.
struct BadValue {
  const GgufTensor* tensor;
  int64_t element;  // in storage order
  float value;

  std::string position() const;  // "[3, 17]", slowest dimension first
};

struct ValueCheck {
  std::vector<BadValue> bad;                 // one per damaged tensor, in file order
  std::vector<const GgufTensor*> unchecked;  // of types that this program cannot convert to float
};

// REQUIRES a file opened with data. Reads all of it with the given number of threads, at least one.
ValueCheck check_values(const GgufFile& file, unsigned n_threads);

}  // namespace infer
