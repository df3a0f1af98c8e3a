// Elements and slices of strings, lists, tuples and ranges.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

// REQUIRES 0 <= index < length.
Value element(const Value& sequence, int64_t index);

// sequence[start:stop:step]; each bound is an integer or none. Throws Failure for a value that cannot be sliced.
Value slice(Heap& heap, const Value& sequence, const Value& start, const Value& stop, const Value& step);

// The bounds of a slice, resolved as in Python.
struct SliceBounds {
  int64_t start, stop, step, count;
};
SliceBounds slice_bounds(int64_t length, const Value& start, const Value& stop, const Value& step);

}  // namespace infer::jinja
