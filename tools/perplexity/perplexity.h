// infer perplexity: how well a model predicts a text, and how far its distributions are from another model's.
#pragma once

#include <string>

#include "tools/flags.h"

namespace infer {

struct PerplexityOptions {
  ModelFlags model;           // context 0: 512
  std::string file;           // the text
  int chunks = 0;             // maximum; 0: all
  std::string save_logits;    // write the distributions to this file
  std::string kl_divergence;  // compare with the distributions in this file, on its text
  bool json = false;
};

// Returns the exit code: 0, or 130 after Ctrl-C. Throws Error.
int run_perplexity(const PerplexityOptions& options);

}  // namespace infer
