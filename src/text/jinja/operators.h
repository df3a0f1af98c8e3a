// Python's operators on values, with Python's error messages.
#pragma once

#include "src/text/jinja/value.h"

namespace infer::jinja {

enum class BinaryOp : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp : uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

Value apply(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& value);
Value unary_plus(const Value& value);
bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right);

bool truth(const Value& value);
bool equals(const Value& left, const Value& right, int depth = 0);
// <0, 0, >0; nullopt for NaN. Throws Failure for values without an order; `op` appears in its message.
std::optional<int> order(const Value& left, const Value& right, std::string_view op = "<", int depth = 0);

// An item and the key by which it is sorted.
struct Keyed {
  Value key, item;
};
// A stable sort by order(). Each comparison is a step.
void sort_keyed(Heap& heap, Vector<Keyed>& items, bool descending);

bool contains(const Value& container, const Value& item);

// Throws Failure with the reason why the value is undefined, if it is.
void require_defined(const Value& value);

// len(); throws Failure for values that have no length.
int64_t length_of(const Value& value);

// Checked integer arithmetic; throws Failure on overflow.
int64_t add_checked(int64_t a, int64_t b);
int64_t multiply_checked(int64_t a, int64_t b);

}  // namespace infer::jinja
