// What the cases of operations on recurrent states share: their data, and running them on a device in several
// compositions (all sequences at once, token by token, in mixed chunks).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/conformance/case.h"

namespace infer::test {

struct RecurrentCase {
  Op op;
  std::string text;         // parameters and shapes, as printed
  std::vector<Shape> rows;  // of each input with a row per token, without the first dimension
  std::vector<Leaf> weights;
  int64_t state_values = 0;
  std::vector<int> lengths;                // of the sequences
  std::vector<std::vector<int>> ids = {};  // [sequence][position], of the tokens; empty: 0
  bool view = false;                       // the inputs are columns of one tensor
  std::function<std::vector<ValueId>(Graph&, const std::vector<ValueId>& in, std::span<const Weight> weights,
                                     const CacheDesc& state)>
      build;
};

struct RecurrentData {
  // [input][sequence][position * row]
  std::vector<std::vector<std::vector<float>>> inputs;

  const float* row(const RecurrentCase& c, size_t input, size_t sequence, int position) const {
    return inputs[input][sequence].data() + position * c.rows[input].elements();
  }
};

// One bound for each value of an output: [output][sequence][position * row].
using RecurrentBounds = std::vector<std::vector<std::vector<double>>>;

// A case with its inputs, drawn by the test, and the error bounds that follow from them.
Verdict check_recurrent(const RecurrentCase& c, const RecurrentData& d, const RecurrentBounds& bounds,
                        const Devices& devices);

}  // namespace infer::test
