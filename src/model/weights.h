// The weights of a model: architecture code declares the tensors it needs by role, name and shape, and gets Weight
// objects that point into the mapped file. In the end every tensor of the file must have been declared, so that none is
// left out of the computation in silence.
//
// Owns the Weight objects and keeps the GgufFile alive; addresses are stable.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-like/gguf.h"
#include "src/model/model_weight.h"

namespace infer {

class WeightSet {
 public:
  explicit WeightSet(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}
  WeightSet(const WeightSet&) = delete;
  WeightSet& operator=(const WeightSet&) = delete;

  // The tensor NAME of kInputLayer and kOutputLayer, or blk.LAYER.NAME. Leading dimensions of 1 may be missing in the
  // file. Vectors are F32 whatever their type in the file. Throws Error(kInvalidFile) when the tensor is missing or has
  // another shape, Error(kUnsupported) when there is no matmul for its type.
  const Weight* require(int layer, WeightRole role, std::string_view name, const Shape& shape);
  // As above, but null when the tensor is missing.
  const Weight* optional(int layer, WeightRole role, std::string_view name, const Shape& shape);
  // A second use of the same data, in another layer and role.
  const Weight* share(int layer, WeightRole role, const Weight& weight);
  // A tensor that is not needed; it may be missing.
  void ignore(int layer, std::string_view name);
  bool has(int layer, std::string_view name) const;
  static std::string full_name(int layer, std::string_view name);

  // Throws Error(kUnsupported) naming a tensor of the file that was not declared.
  void finish() const;

  std::span<ModelWeight* const> of_layer(int layer) const;
  int64_t parameter_count() const { return parameters_; }
  uint64_t bytes() const { return bytes_; }  // as they lie in the file

 private:
  const Weight* add(int layer, WeightRole role, Weight weight);

  std::shared_ptr<const GgufFile> file_;
  std::deque<ModelWeight> weights_;
  std::map<int, std::vector<ModelWeight*>> layers_;
  std::deque<std::vector<float>> converted_;  // vectors that are not F32 in the file
  std::set<const GgufTensor*> used_;
  int64_t parameters_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace infer
