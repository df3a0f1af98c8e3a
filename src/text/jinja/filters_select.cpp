// map, select, reject and similar filters, which apply filters and tests to every item.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"

namespace infer::jinja {
namespace {

// The arguments after the first `n` positional ones. Copied for every item because calls consume them.
Arguments rest_of(Heap& heap, const Arguments& arguments, size_t n) {
  Arguments rest(heap);
  heap.step((arguments.positional.size() + arguments.named.size()) / 4);
  rest.positional.assign(
      arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(n, arguments.positional.size())),
      arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

void map_attribute(Runtime& runtime, const Value& self, Arguments& arguments, Values& result) {
  Value attribute, fallback;
  for (const auto& [name, value] : arguments.named) {
    if (name.text() == "attribute") attribute = value;
    else if (name.text() == "default") fallback = value;
    else fail(concat("Unexpected keyword argument '", name.text().substr(0, 100), "'"));
  }
  const AttributePath path(runtime.heap(), attribute);
  Iterator items(runtime.heap(), self);
  while (auto item = items.next()) {
    result.push_back(path.get(runtime, std::move(*item), fallback));
  }
}

void map_items(Runtime& runtime, const Value& self, Arguments& arguments, Values& result) {
  Heap& heap = runtime.heap();
  if (!truth(self)) return;
  bool by_attribute = false;
  for (const auto& [name, value] : arguments.named) by_attribute = by_attribute || name.text() == "attribute";
  if (arguments.positional.empty() && by_attribute) return map_attribute(runtime, self, arguments, result);
  if (arguments.positional.empty()) fail("map requires a filter argument");
  Iterator items(heap, self);
  while (const auto item = items.next()) {
    Arguments rest = rest_of(heap, arguments, 1);
    result.push_back(runtime.call_filter(arguments.positional[0], *item, rest));
  }
}

Value map(Runtime& runtime, const Value& self, Arguments& arguments) {
  return make_lazily(runtime.heap(), "do_map", [&](Values& result) { map_items(runtime, self, arguments, result); });
}

// Appends the items that pass a test (without a test: that are true); with `wanted` false, those that do not.
void select_items(Runtime& runtime, const Value& self, Arguments& arguments, bool wanted, bool by_attribute,
                  Values& result) {
  Heap& heap = runtime.heap();
  if (!truth(self)) return;
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
}

template <bool Wanted, bool ByAttribute>
Value selected(Runtime& runtime, const Value& self, Arguments& arguments) {
  return make_lazily(runtime.heap(), "select_or_reject",
                     [&](Values& result) { select_items(runtime, self, arguments, Wanted, ByAttribute, result); });
}

constexpr Builtin kSelectFilters[] = {
    {"map", "*", map},
    {"select", "*", selected<true, false>},
    {"reject", "*", selected<false, false>},
    {"selectattr", "*", selected<true, true>},
    {"rejectattr", "*", selected<false, true>},
};

}  // namespace

std::span<const Builtin> select_filters() { return kSelectFilters; }

}  // namespace infer::jinja
