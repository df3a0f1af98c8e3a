#include "src/model/weights.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "ggml-like/error.h"
#include "ggml-like/message.h"
#include "ggml-like/printable.h"

namespace infer {
namespace {

// Removes dimensions of 1, which files may omit or add.
std::vector<int64_t> significant(std::span<const int64_t> dims) {
  std::vector<int64_t> others;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(others), [](int64_t dim) { return dim != 1; });
  return others;
}

bool fits(const GgufTensor& tensor, const Shape& shape) {
  if (shape.rank == 1) return tensor.n_elements() == shape[0];
  const std::vector<int64_t> found = significant(tensor.shape);
  const int64_t joined[] = {shape[0] * shape[1], shape[2]};
  return found == significant({shape.dim, static_cast<size_t>(shape.rank)}) ||
         (shape.rank == 3 && found == significant(joined));
}

}  // namespace

std::string WeightSet::full_name(int layer, std::string_view name) const {
  if (layer == kInputLayer || layer == kOutputLayer) return std::string(name);
  return concat("blk.", first_layer_ + layer, ".", name);
}

const Weight* WeightSet::require(int layer, WeightRole role, std::string_view name, const Shape& shape) {
  const Weight* weight = optional(layer, role, name, shape);
  if (!weight) missing(layer, name, shape);
  return weight;
}

void WeightSet::missing(int layer, std::string_view name, const Shape& shape) const {
  throw Error(ErrorCode::kInvalidFile,
              expected_found("model", concat("tensor ", full_name(layer, name)), shape.to_string(), "none"));
}

const Weight* WeightSet::optional(int layer, WeightRole role, std::string_view name, const Shape& shape) {
  std::optional<Weight> weight = find(layer, name, shape);
  if (!weight) return nullptr;
  weight->factor = find_factor(layer, role, name, shape);
  return add(layer, role, std::move(*weight));
}

std::vector<const Weight*> WeightSet::require_parts(int layer, WeightRole role, std::string_view name, int n,
                                                    const Shape& shape) {
  Shape all{n};
  for (int i = 0; i < shape.rank; ++i) all.dim[all.rank++] = shape[i];
  if (shape.rank == 1) all = {n * shape[0]};
  std::optional<Weight> whole = find(layer, name, all);
  if (!whole) missing(layer, name, all);
  whole->factor = find_factor(layer, role, name, shape);
  std::vector<const Weight*> parts;
  for (int i = 0; i < n; ++i) {
    Weight part = *whole;
    part.name = concat(whole->name, "[", i, "]");
    part.desc = make_desc(whole->desc.type, shape);
    if (part.host) part.host += static_cast<size_t>(i) * part.desc.bytes();
    parts.push_back(add(layer, role, std::move(part)));
  }
  return parts;
}

std::optional<Weight> WeightSet::find(int layer, std::string_view name, const Shape& shape) {
  Weight weight;
  weight.name = full_name(layer, name);
  const GgufTensor* tensor = file_->find_tensor(weight.name);
  if (!tensor) return std::nullopt;
  const bool vector = shape.rank == 1;
  if (!fits(*tensor, shape)) {
    throw Error(ErrorCode::kInvalidFile,
                expected_found("model", concat("tensor ", weight.name), shape.to_string(), tensor->shape_string()));
  }
  const TypeTraits& type = traits(tensor->type);
  if (!type.to_float || (!vector && !type.dot)) {
    throw Error(ErrorCode::kUnsupported,
                expected_found("model", concat("tensor ", weight.name), "a type with a matmul kernel", type.name));
  }
  used_.insert(tensor);
  parameters_ += tensor->n_elements();
  bytes_ += tensor->n_bytes;
  weight.desc = make_desc(tensor->type, shape);
  weight.host = tensor->data;
  if (vector && tensor->type != DataType::kF32) {
    weight.desc.type = DataType::kF32;
    if (tensor->data) {
      std::vector<float>& values = converted_.emplace_back(static_cast<size_t>(shape[0]));
      type.to_float(tensor->data, values.data(), shape[0]);
      weight.host = reinterpret_cast<const std::byte*>(values.data());
    }
  }
  return weight;
}

const Weight* WeightSet::find_factor(int layer, WeightRole role, std::string_view name, const Shape& shape) {
  constexpr std::string_view kSuffix = ".weight";
  if (shape.rank < 2 || !name.ends_with(kSuffix)) return nullptr;
  name.remove_suffix(kSuffix.size());
  ignore(layer, concat(name, ".input_scale"));
  const std::string factor_name = concat(name, ".scale");
  const GgufTensor* tensor = file_->find_tensor(full_name(layer, factor_name));
  const int64_t n = tensor ? tensor->n_elements() : 0;
  const bool per_expert = role == WeightRole::kExpert && n == shape[0];
  if (n != 1 && !per_expert) return nullptr;
  Weight factor = *find(layer, factor_name, {n});
  if (n > 1) factor.desc = make_desc(DataType::kF32, {n, 1, 1});
  return add(layer, role, std::move(factor));
}

const Weight* WeightSet::require_indices(int layer, WeightRole role, std::string_view name, const Shape& shape,
                                         int64_t limit) {
  Weight weight;
  weight.name = full_name(layer, name);
  const GgufTensor* tensor = file_->find_tensor(weight.name);
  if (!tensor) missing(layer, name, shape);
  const auto reject = [&](const std::string& expected, const auto& found) {
    throw Error(ErrorCode::kInvalidFile, expected_found("model", concat("tensor ", weight.name), expected, found));
  };
  if (tensor->type != DataType::kI32) reject("type I32", traits(tensor->type).name);
  if (!fits(*tensor, shape)) reject(shape.to_string(), tensor->shape_string());
  const int64_t n = tensor->n_elements();
  for (int64_t i = 0; tensor->data && i < n; ++i) {
    int32_t value = 0;
    std::memcpy(&value, tensor->data + i * static_cast<int64_t>(sizeof value), sizeof value);
    if (value < 0 || value >= limit) reject(concat("numbers from 0 to ", limit - 1), value);
  }
  used_.insert(tensor);
  parameters_ += n;
  bytes_ += tensor->n_bytes;
  weight.desc = make_desc(DataType::kI32, shape);
  weight.host = tensor->data;
  return add(layer, role, std::move(weight));
}

const Weight* WeightSet::share(int layer, WeightRole role, const Weight& weight) { return add(layer, role, weight); }

const Weight* WeightSet::add(int layer, WeightRole role, Weight weight) {
  weights_.push_back({std::move(weight), role});
  layers_[layer].push_back(&weights_.back());
  return &weights_.back();
}

void WeightSet::ignore(int layer, std::string_view name) {
  if (const GgufTensor* tensor = file_->find_tensor(full_name(layer, name))) used_.insert(tensor);
}

void WeightSet::ignore_layer(int layer) {
  const std::string prefix = full_name(layer, "");
  for (const GgufTensor& tensor : file_->tensors()) {
    if (tensor.name.starts_with(prefix)) used_.insert(&tensor);
  }
}

bool WeightSet::has(int layer, std::string_view name) const {
  return file_->find_tensor(full_name(layer, name)) != nullptr;
}

int64_t WeightSet::rows(int layer, std::string_view name) const {
  const GgufTensor* tensor = file_->find_tensor(full_name(layer, name));
  return tensor && tensor->shape.size() == 2 ? tensor->shape[0] : 0;
}

void WeightSet::finish() const {
  for (const GgufTensor& tensor : file_->tensors()) {
    const bool other = first_layer_ > 0 && !tensor.name.starts_with(full_name(0, ""));
    if (other || used_.contains(&tensor)) continue;
    throw Error(ErrorCode::kUnsupported, concat("[model] tensor ", printable(tensor.name, 100), " ",
                                                tensor.shape_string(), " is not used by this architecture"));
  }
}

std::span<ModelWeight* const> WeightSet::of_layer(int layer) const {
  const auto at = layers_.find(layer);
  if (at == layers_.end()) return {};
  return at->second;
}

}  // namespace infer
