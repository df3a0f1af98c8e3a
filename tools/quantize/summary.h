// The output of `infer quantize`: progress while it works, then totals and a table of types.
#pragma once

#include <cstdint>
#include <map>
#include <ostream>
#include <string>

#include "tools/quantize/convert.h"
#include "tools/quantize/plan.h"
#include "tools/status_line.h"

namespace infer {

// By new type, in the order of the type numbers.
class Summary {
 public:
  void add_tensor(const Conversion& conversion, uint64_t output_bytes);
  void add_slice(const Conversion& conversion, const Slice& slice);

  void print(std::ostream& out, bool with_errors) const;

 private:
  struct Row {
    uint64_t n_tensors = 0, n_parameters = 0, n_bytes = 0, n_input_bytes = 0;
    uint64_t n_converted_bytes = 0;  // input of tensors that changed type
    double seconds = 0;
    ErrorSums errors;
  };

  std::map<DataType, Row> rows_;
};

// Shows the tensor that is being written, and how many bytes of the input are done.
void show_progress(StatusLine& line, const std::string& tensor, uint64_t done_bytes, uint64_t total_bytes);

}  // namespace infer
