// Methods of lists, tuples, dicts, ranges, numbers and cyclers. Those that change a list or a dict are in
// methods_changing.cpp.
#include <cmath>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/slice.h"

namespace infer::jinja {
namespace {

Value count_item(Runtime& runtime, const Value& self, Arguments& arguments) {
  int64_t n = 0;
  Iterator items(runtime.heap(), self);
  while (const auto item = items.next()) n += equals(*item, arguments.positional[0]);
  return Value::of(n);
}

Value index_of_item(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values& a = arguments.positional;
  const SliceBounds b = slice_bounds(length_of(self), a[1], a[2], {});
  for (int64_t i = b.start; i < b.stop; ++i) {
    runtime.heap().step();
    if (equals(element(self, i), a[0])) return Value::of(i);
  }
  fail("value is not in the list");
}

Value copy(Runtime& runtime, const Value& self, Arguments&) {
  if (self.is(Kind::kList)) return make_list(items_of(runtime.heap(), self));
  const Value result(Kind::kDict, runtime.heap().make<DictObject>());
  for (const auto& [key, value] : self.dict().entries()) {
    runtime.heap().step();
    result.get<DictObject>().set(key, value);
  }
  return result;
}

template <ViewObject::Part Part>
Value view(Runtime& runtime, const Value& self, Arguments&) {
  return {Kind::kView, runtime.heap().make<ViewObject>(self, Part)};
}

Value get(Runtime&, const Value& self, Arguments& arguments) {
  const Value& fallback = arguments.positional[1];
  if (const Value* found = self.dict().find(arguments.positional[0])) return *found;
  return fallback.is_missing() ? Value::none() : fallback;
}

Value from_keys(Runtime& runtime, const Value&, Arguments& arguments) {
  const Value& value = arguments.positional[1];
  const Value result(Kind::kDict, runtime.heap().make<DictObject>());
  Iterator keys(runtime.heap(), arguments.positional[0]);
  while (const auto key = keys.next()) {
    result.get<DictObject>().set(*key, value.is_missing() ? Value::none() : value);
  }
  return result;
}

Value is_integer(Runtime&, const Value& self, Arguments&) {
  return Value::of(std::isfinite(self.as_float()) && self.as_float() == std::floor(self.as_float()));
}

Value bit_length(Runtime&, const Value& self, Arguments&) {
  const int64_t number = self.as_int();
  uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  int64_t n = 0;
  for (; magnitude > 0; magnitude >>= 1) ++n;
  return Value::of(n);
}

Value conjugate(Runtime&, const Value& self, Arguments&) { return unary_plus(self); }

Value next(Runtime&, const Value& self, Arguments&) {
  auto& cycler = self.get<CyclerObject>();
  const Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Value reset(Runtime&, const Value& self, Arguments&) {
  self.get<CyclerObject>().position = 0;
  return Value::none();
}

constexpr Builtin kListMethods[] = {
    {"count", ".", count_item}, {"index", ". [.] [.]", index_of_item}, {"copy", "", copy}};
constexpr Builtin kTupleMethods[] = {{"count", ".", count_item}, {"index", ". [.] [.]", index_of_item}};
constexpr Builtin kDictMethods[] = {{"keys", "", view<ViewObject::kKeys>},
                                    {"values", "", view<ViewObject::kValues>},
                                    {"items", "", view<ViewObject::kItems>},
                                    {"get", ". [.]", get},
                                    {"copy", "", copy},
                                    {"fromkeys", ". [.]", from_keys}};
constexpr Builtin kFloatMethods[] = {{"is_integer", "", is_integer}, {"conjugate", "", conjugate}};
constexpr Builtin kIntMethods[] = {{"bit_length", "", bit_length}, {"conjugate", "", conjugate}};
constexpr Builtin kCyclerMethods[] = {{"next", "", next}, {"reset", "", reset}};

}  // namespace

std::span<const Builtin> collection_methods(Kind kind) {
  switch (kind) {
    case Kind::kList:
      return kListMethods;
    case Kind::kTuple:
    case Kind::kRange:
      return kTupleMethods;
    case Kind::kDict:
      return kDictMethods;
    case Kind::kFloat:
      return kFloatMethods;
    case Kind::kInt:
    case Kind::kBool:
      return kIntMethods;
    case Kind::kCycler:
      return kCyclerMethods;
    default:
      return {};
  }
}

}  // namespace infer::jinja
