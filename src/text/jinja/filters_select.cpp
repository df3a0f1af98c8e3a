// map, select, reject and their kin: filters that apply filters and tests to every item.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"

namespace infer::jinja {
namespace {

// The arguments behind the first `n` positional ones, anew for every item: calls consume them.
Arguments rest_of(Heap& heap, const Arguments& arguments, size_t n) {
  Arguments rest(heap);
  heap.step((arguments.positional.size() + arguments.named.size()) / 4);
  rest.positional.assign(
      arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(n, arguments.positional.size())),
      arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

Value map_attribute(Runtime& runtime, const Value& self, Arguments& arguments) {
  Value attribute, fallback = Value::none();
  for (const auto& [name, value] : arguments.named) {
    if (name.text() == "attribute") attribute = value;
    else if (name.text() == "default") fallback = value;
    else fail(concat("Unexpected keyword argument '", name.text().substr(0, 100), "'"));
  }
  const AttributePath path(runtime.heap(), attribute);
  Values result(runtime.heap());
  Iterator items(runtime.heap(), self);
  while (auto item = items.next()) {
    Value value = path.get(runtime, std::move(*item));
    if (value.is_undefined() && !fallback.is_none()) value = fallback;
    result.push_back(std::move(value));
  }
  return make_generator(std::move(result), "do_map");
}

Value map(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  Values result(heap);
  if (!truth(self)) return make_generator(std::move(result), "do_map");
  bool by_attribute = false;
  for (const auto& [name, value] : arguments.named) by_attribute = by_attribute || name.text() == "attribute";
  if (arguments.positional.empty() && by_attribute) return map_attribute(runtime, self, arguments);
  if (arguments.positional.empty()) fail("map requires a filter argument");
  Iterator items(heap, self);
  while (const auto item = items.next()) {
    Arguments rest = rest_of(heap, arguments, 1);
    result.push_back(runtime.call_filter(arguments.positional[0], *item, rest));
  }
  return make_generator(std::move(result), "do_map");
}

Value select_items(Runtime& runtime, const Value& self, Arguments& arguments, bool wanted, bool by_attribute,
                   std::string_view name) {
  Heap& heap = runtime.heap();
  Values result(heap);
  if (!truth(self)) return make_generator(std::move(result), name);
  const size_t n_own = by_attribute ? 1 : 0;
  const Values& a = arguments.positional;
  if (a.size() < n_own) fail("Missing parameter for attribute name");
  const AttributePath path(heap, by_attribute ? a[0] : Value::none());
  Iterator items(heap, self);
  while (auto item = items.next()) {
    const Value value = path.get(runtime, *item);
    bool passed = false;
    if (a.size() > n_own) {
      Arguments rest = rest_of(heap, arguments, n_own + 1);
      passed = runtime.call_test(a[n_own], value, rest);
    } else {
      passed = truth(value);
    }
    if (passed == wanted) result.push_back(std::move(*item));
  }
  return make_generator(std::move(result), name);
}

Value select(Runtime& runtime, const Value& self, Arguments& arguments) {
  return select_items(runtime, self, arguments, true, false, "do_select");
}
Value reject(Runtime& runtime, const Value& self, Arguments& arguments) {
  return select_items(runtime, self, arguments, false, false, "do_reject");
}
Value select_attribute(Runtime& runtime, const Value& self, Arguments& arguments) {
  return select_items(runtime, self, arguments, true, true, "do_selectattr");
}
Value reject_attribute(Runtime& runtime, const Value& self, Arguments& arguments) {
  return select_items(runtime, self, arguments, false, true, "do_rejectattr");
}

constexpr Builtin kFilters[] = {
    {"map", "*", map},
    {"select", "*", select},
    {"reject", "*", reject},
    {"selectattr", "*", select_attribute},
    {"rejectattr", "*", reject_attribute},
};

}  // namespace

std::span<const Builtin> select_filters() { return kFilters; }

}  // namespace infer::jinja
