// Iterates over the items of a value, as Python's iter() does.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

bool is_iterable(const Value& value);

class Iterator {
 public:
  // Throws Failure for a value that is not iterable.
  explicit Iterator(Heap& heap, Value source);
  // The next item, or nothing at the end.
  std::optional<Value> next();
  // The number of items left; for a generator, those not yet taken.
  int64_t remaining() const;

 private:
  void check_size(const DictObject& dict) const;

  Heap& heap_;
  Value source_;
  size_t dict_size_ = 0;  // at the start; a dict must not grow or shrink during iteration, a list may
  int64_t position_ = 0;  // index of the item; for a string, the byte offset
  int64_t taken_ = 0;
};

// All items; for a generator, those not yet taken.
Values items_of(Heap& heap, const Value& value);

}  // namespace infer::jinja
