// Where the time of steps goes: one line per operation, weight type and shape. A plan with a profile runs its nodes one
// by one and waits for each, so steps take slightly longer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ggml-like/graph.h"
#include "ggml-like/step_inputs.h"

namespace infer {

// Totals over all steps. Operations are multiplications and additions: int8 in matmuls with quantized weights,
// F32 elsewhere. `operations` and `bytes` count the minimum that an ideal machine would need, and are 0 for anything
// but matmuls and attention. Bytes cover weights (each expert in use once), keys and values, each read once per
// step.
struct ProfileLine {
  Op op{};
  DataType type = DataType::kF32;  // of the weight, otherwise of the first input
  int64_t n = 0, k = 0;            // rows and columns of a matmul's weight, otherwise 0
  bool quantized = false;          // a matmul with quantized weights
  int64_t calls = 0, rows = 0;     // rows: tokens or outputs
  double seconds = 0, operations = 0, bytes = 0;
};

// Values copied from one device to another.
struct ProfileCopies {
  int64_t calls = 0, bytes = 0;
  double seconds = 0;
};

class Profile {
 public:
  void add(const Graph& graph, const Node& node, const StepView& step, double seconds);
  void add(const Profile& other);
  void add_copies(int64_t values, int64_t bytes, double seconds);
  void clear() { *this = {}; }
  std::vector<ProfileLine> lines() const;  // most expensive first
  double seconds() const;                  // of all lines
  const ProfileCopies& copies() const { return copies_; }

 private:
  std::map<std::tuple<Op, DataType, int64_t, int64_t>, ProfileLine> lines_;
  ProfileCopies copies_;
};

}  // namespace infer
