// Where the time of steps goes: one line per operation, weight type and shape. A plan that has a profile runs its nodes
// one by one and waits for each, so that a step takes a little longer than without.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ggml-like/graph.h"
#include "ggml-like/step_inputs.h"

namespace infer {

// Totals over all steps. Operations are multiplications and additions: of bytes where a product has quantized weights,
// of F32 elsewhere. Both `operations` and `bytes` count what a perfect machine would have to do, and are 0 for
// operations that are neither products nor attention: bytes are those of weights (each expert in use once) and of keys
// and values, read once per step.
struct ProfileLine {
  Op op{};
  DataType type = DataType::kF32;  // of the weight, else of the first input
  int64_t n = 0, k = 0;            // rows and columns of a product's weight, else 0
  bool quantized = false;          // a product with quantized weights
  int64_t calls = 0, rows = 0;     // rows: tokens or outputs
  double seconds = 0, operations = 0, bytes = 0;
};

// Values that crossed from one device to another.
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
  std::vector<ProfileLine> lines() const;  // the most expensive first
  double seconds() const;                  // of all lines
  const ProfileCopies& copies() const { return copies_; }

 private:
  std::map<std::tuple<Op, DataType, int64_t, int64_t>, ProfileLine> lines_;
  ProfileCopies copies_;
};

}  // namespace infer
