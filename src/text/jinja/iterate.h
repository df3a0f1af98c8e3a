// Going through the items of a value, as Python's iter() does.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

bool is_iterable(const Value& value);

class Iterator {
 public:
  // Throws Failure for a value without items.
  explicit Iterator(Heap& heap, Value source);
  // The next item, or nothing at the end.
  std::optional<Value> next();
  // How many are left; of a generator those that were not taken yet.
  int64_t remaining() const;

 private:
  void check_size(const DictObject& dict) const;

  Heap& heap_;
  Value source_;
  size_t dict_size_ = 0;  // when it began; a dict must not grow or shrink meanwhile, a list may
  int64_t position_ = 0;  // item; of a string byte
  int64_t taken_ = 0;
};

// All items (what is left of a generator).
Values items_of(Heap& heap, const Value& value);

}  // namespace infer::jinja
