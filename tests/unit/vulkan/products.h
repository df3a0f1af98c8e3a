// Matmuls on a Vulkan device, for the unit tests: one operation, on tensors of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ggml-like/backend.h"
#include "ggml-like/graph.h"

namespace infer::test {

// The first Vulkan device, or "" after counting a skip of `test`.
std::string device_name(const std::string& test);

struct Problem {
  int64_t n, k;
  std::vector<std::byte> weight;  // [n, k]
  std::vector<float> x;           // [tokens, k]
};
// The same random values each time.
Problem problem(DataType type, int64_t n, int64_t k, int tokens);

// The value [tokens, n] that `build` computes from x [tokens, k] and a weight [n, k].
using BuildProduct = ValueId (*)(Graph& graph, const Weight& x, const Weight& weight);
inline ValueId one_product(Graph& graph, const Weight& x, const Weight& weight) {
  return graph.matmul(graph.weight(x), weight);
}
std::vector<float> multiply(Device& device, DataType type, int64_t n, int64_t k, const std::vector<std::byte>& weight,
                            const std::vector<float>& x, int tokens, BuildProduct build = one_product);

// Checks that the first 1, 3 and 6 of 20 rows have the same bits alone as among the others.
void check_rows_alone(Device& device, DataType type);

}  // namespace infer::test
