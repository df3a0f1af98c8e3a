// infer imatrix: which columns of the weights matter, from what a model computes while it reads a text; for
// infer quantize --imatrix.
#pragma once

#include <string>

#include "tools/flags.h"

namespace infer {

struct ImatrixOptions {
  ModelFlags model;  // context 0: 512
  std::string file;  // the text
  std::string out;
  int chunks = 0;  // at most so many; 0: all
};

// Returns the exit code: 0, or 130 after Ctrl-C, with nothing written. Throws Error.
int run_imatrix(const ImatrixOptions& options);

}  // namespace infer
