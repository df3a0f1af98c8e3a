// infer imatrix: which columns of the weights matter, from what a model computes while it reads a text, added to what
// earlier runs found; for infer quantize --imatrix.
#pragma once

#include <string>
#include <vector>

#include "tools/flags.h"

namespace infer {

struct ImatrixOptions {
  ModelFlags model;                   // context 0: 512; the file may be "" when there is no text
  std::string file;                   // the text; "": in_files alone
  std::vector<std::string> in_files;  // importance matrices to add up
  std::string out;
  int chunks = 0;  // at most so many; 0: all
};

// Returns the exit code: 0, or 130 after Ctrl-C, with nothing written. Throws Error.
int run_imatrix(const ImatrixOptions& options);

}  // namespace infer
