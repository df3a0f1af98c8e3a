// infer imatrix: measures which columns of the weights matter while a model reads a text, and adds the results of
// earlier runs. For infer quantize --imatrix.
#pragma once

#include <string>
#include <vector>

#include "tools/flags.h"

namespace infer {

struct ImatrixOptions {
  ModelFlags model;                   // context 0: 512; the file may be "" if there is no text
  std::string file;                   // the text; "": only in_files
  std::vector<std::string> in_files;  // importance matrices to add up
  std::string out;
  int chunks = 0;  // maximum; 0: all
};

// Returns the exit code: 0, or 130 after Ctrl-C (nothing is written then). Throws Error.
int run_imatrix(const ImatrixOptions& options);

}  // namespace infer
