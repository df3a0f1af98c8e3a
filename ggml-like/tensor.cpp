#include "ggml-like/tensor.h"

#include "ggml-like/error.h"

namespace infer {

Shape::Shape(std::initializer_list<int64_t> dims) {
  CHECK_INTERNAL(dims.size() <= kMaxRank);
  for (const int64_t d : dims) dim[rank++] = d;
}

int64_t Shape::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dim[i];
  return n;
}

int64_t Shape::row_elements() const {
  int64_t n = 1;
  for (int i = 1; i < rank; ++i) n *= dim[i];
  return n;
}

bool Shape::operator==(const Shape& other) const {
  if (rank != other.rank) return false;
  for (int i = 0; i < rank; ++i) {
    if (dim[i] != other.dim[i]) return false;
  }
  return true;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank; ++i) text += (i ? ", " : "") + std::to_string(dim[i]);
  return text + "]";
}

size_t TensorDesc::bytes() const {
  const TypeTraits& t = traits(type);
  return static_cast<size_t>(shape.elements()) / t.block_size * t.type_size;
}

TensorDesc make_desc(DataType type, const Shape& shape, RowKind rows) {
  return TensorDesc{type, shape, rows, shape.row_elements()};
}

}  // namespace infer
