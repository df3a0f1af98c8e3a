// Residuals that attend over earlier layers, as in Kimi K3: the input of a layer is a weighted mean of the current
// residual and earlier, banked ones, weighted by the softmax of their scores.
#pragma once

#include <vector>

#include "src/model/blocks/linear.h"

namespace infer {

struct ResidualBank {
  std::vector<ValueId> values;      // [n_rows, n_embd] each
  std::vector<ValueId> normalized;  // the same, normalized
};

// Adds x [n_rows, n_embd] to the bank.
void bank_residual(Graph& graph, ResidualBank& bank, ValueId x, float eps);
// Keeps only the rows of the outputs.
void select_bank_rows(Graph& graph, ResidualBank& bank);

// x [n_rows, n_embd], score [1, n_embd] -> [n_rows, n_embd]; x itself if the bank is empty.
ValueId attend_to_bank(Graph& graph, ValueId x, const ResidualBank& bank, const Weight& score, float eps);

}  // namespace infer
