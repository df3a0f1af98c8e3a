// The weights of a model. An architecture declares the tensors it needs by role, name and shape, and gets Weight
// objects that point into the mapped file. In the end every tensor of the file must have been declared, so that none is
// silently left out of the computation.
//
// Owns the Weight objects and keeps the GgufFile alive; addresses are stable.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
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
  // `first_layer` is the number of layer 0 in the file. If it is not 0, undeclared tensors of other layers are no
  // error.
  explicit WeightSet(std::shared_ptr<const GgufFile> file, int first_layer = 0)
      : file_(std::move(file)), first_layer_(first_layer) {}
  WeightSet(const WeightSet&) = delete;
  WeightSet& operator=(const WeightSet&) = delete;

  // The tensor NAME (for kInputLayer and kOutputLayer) or blk.LAYER.NAME. The file may omit or add dimensions of 1,
  // give a vector more than one dimension, and merge a stack of matrices into one. Vectors become F32, whatever their
  // type in the file. Throws Error(kInvalidFile) if the tensor is missing or has a different shape, and
  // Error(kUnsupported) if its type has no matmul kernel. If the file has a tensor NAME.scale with one value, or one
  // per expert, it becomes the factor of the matrix NAME.weight. NAME.input_scale is ignored: it is for hardware that
  // quantizes activations to the same format.
  const Weight* require(int layer, WeightRole role, std::string_view name, const Shape& shape);
  // The same, but null if the tensor is missing.
  const Weight* optional(int layer, WeightRole role, std::string_view name, const Shape& shape);
  // The tensor NAME of shape [n, shape...] as n weights.
  std::vector<const Weight*> require_parts(int layer, WeightRole role, std::string_view name, int n,
                                           const Shape& shape);
  // A table of numbers from 0 to limit - 1, of type I32. Throws Error(kInvalidFile) for any other number.
  const Weight* require_indices(int layer, WeightRole role, std::string_view name, const Shape& shape, int64_t limit);
  // Uses the same data again, in another layer and role.
  const Weight* share(int layer, WeightRole role, const Weight& weight);
  // Marks a tensor as unused; it may be missing.
  void ignore(int layer, std::string_view name);
  // The same for all tensors blk.LAYER.*.
  void ignore_layer(int layer);
  bool has(int layer, std::string_view name) const;
  int64_t rows(int layer, std::string_view name) const;  // the first dimension of a matrix; 0 if there is none
  std::string full_name(int layer, std::string_view name) const;

  // Throws Error(kUnsupported) naming a tensor of the file that was not declared.
  void finish() const;

  std::span<ModelWeight* const> of_layer(int layer) const;
  int64_t parameter_count() const { return parameters_; }
  uint64_t bytes() const { return bytes_; }  // in the file's format

 private:
  // The tensor blk.LAYER.NAME, before it becomes a weight; nullopt if it is missing.
  std::optional<Weight> find(int layer, std::string_view name, const Shape& shape);
  const Weight* find_factor(int layer, WeightRole role, std::string_view name, const Shape& shape);
  [[noreturn]] void missing(int layer, std::string_view name, const Shape& shape) const;
  const Weight* add(int layer, WeightRole role, Weight weight);

  std::shared_ptr<const GgufFile> file_;
  const int first_layer_;
  std::deque<ModelWeight> weights_;
  std::map<int, std::vector<ModelWeight*>> layers_;
  std::deque<std::vector<float>> converted_;  // vectors whose type in the file is not F32
  std::set<const GgufTensor*> used_;
  int64_t parameters_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace infer
