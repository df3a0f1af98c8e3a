// Methods that change the list or dict they are called on. Templates can call them only on their own values, not on the
// caller's (see Runtime::get_attribute). They can make a value contain itself, so code that walks values limits its
// depth, and the Heap deletes what is left in cycles.
#include <algorithm>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"

namespace infer::jinja {
namespace {

Values& items_in(const Value& self) { return self.get<ListObject>().own_items(); }

// Charges for moving this many items by one position.
void charge_move(Runtime& runtime, size_t n) { runtime.heap().step(n / 8); }

Value append_item(Runtime&, const Value& self, Arguments& arguments) {
  items_in(self).push_back(arguments.positional[0]);
  return Value::none();
}

Value extend(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Values more = items_of(runtime.heap(), arguments.positional[0]);  // a copy, because it may be the list itself
  Values& items = items_in(self);
  items.insert(items.end(), more.begin(), more.end());
  return Value::none();
}

Value insert(Runtime& runtime, const Value& self, Arguments& arguments) {
  Values& items = items_in(self);
  const auto n = static_cast<int64_t>(items.size());
  int64_t at = int_argument(arguments.positional[0], "insert");
  if (at < 0) at = at < -n ? 0 : at + n;
  at = std::min(at, n);
  charge_move(runtime, static_cast<size_t>(n - at));
  items.insert(items.begin() + at, arguments.positional[1]);
  return Value::none();
}

Value pop_item(Runtime& runtime, const Value& self, Arguments& arguments) {
  Values& items = items_in(self);
  const auto n = static_cast<int64_t>(items.size());
  if (n == 0) fail("pop from empty list");
  int64_t at = arguments.positional[0].is_missing() ? -1 : int_argument(arguments.positional[0], "pop");
  if (at < 0) at = at < -n ? -1 : at + n;
  if (at < 0 || at >= n) fail("pop index out of range");
  charge_move(runtime, static_cast<size_t>(n - at));
  Value item = std::move(items[static_cast<size_t>(at)]);
  items.erase(items.begin() + at);
  return item;
}

Value remove(Runtime& runtime, const Value& self, Arguments& arguments) {
  Values& items = items_in(self);
  for (size_t i = 0; i < items.size(); ++i) {
    runtime.heap().step();
    if (!equals(items[i], arguments.positional[0])) continue;
    charge_move(runtime, items.size() - i);
    const Value removed = std::move(items[i]);
    items.erase(items.begin() + static_cast<ptrdiff_t>(i));
    return Value::none();
  }
  fail("list.remove(x): x not in list");
}

Value reverse_list(Runtime& runtime, const Value& self, Arguments&) {
  Values& items = items_in(self);
  charge_move(runtime, items.size());
  std::reverse(items.begin(), items.end());
  return Value::none();
}

Value clear_list(Runtime& runtime, const Value& self, Arguments&) {
  Values gone(runtime.heap());
  std::swap(gone, items_in(self));  // the removed item may refer to the list
  return Value::none();
}

Value sort_list(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Value &key = arguments.positional[0], &reverse = arguments.positional[1];
  const Values before = items_of(heap, self);
  Vector<Keyed> sorted(heap);
  for (const Value& item : before) {
    if (key.is_missing() || key.is_none()) {
      sorted.push_back({item, item});
      continue;
    }
    Arguments one(heap);
    one.positional.push_back(item);
    sorted.push_back({runtime.call(key, one), item});
  }
  const bool descending = !reverse.is_missing() && truth(reverse);
  sort_keyed(heap, sorted, descending);
  Values& items = items_in(self);
  if (items.size() != before.size()) fail("list modified during sort");
  for (size_t i = 0; i < items.size(); ++i) items[i] = sorted[i].item;
  return Value::none();
}

DictObject& dict_in(const Value& self) { return self.get<DictObject>(); }

Value clear_dict(Runtime&, const Value& self, Arguments&) {
  dict_in(self).clear();
  return Value::none();
}

Value pop_key(Runtime& runtime, const Value& self, Arguments& arguments) {
  const Value& fallback = arguments.positional[1];
  Value value = dict_in(self).erase(arguments.positional[0]);
  if (!value.is_missing()) return value;
  if (!fallback.is_missing()) return fallback;
  Value holder;
  fail(concat("key ", text_of(runtime.heap(), arguments.positional[0], holder).substr(0, 100), " is not in the dict"));
}

Value pop_last(Runtime& runtime, const Value& self, Arguments&) {
  DictObject& dict = dict_in(self);
  if (dict.size() == 0) fail("popitem(): dictionary is empty");
  const auto [key, value] = dict.entries().back();
  const Value pair = make_pair(runtime.heap(), key, value);
  dict.erase(key);
  return pair;
}

Value set_default(Runtime&, const Value& self, Arguments& arguments) {
  const Value& key = arguments.positional[0];
  if (const Value* found = self.dict().find(key)) return *found;
  const Value value = arguments.positional[1].is_missing() ? Value::none() : arguments.positional[1];
  dict_in(self).set(key, value);
  return value;
}

Value update(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  if (arguments.positional.size() > 1) {
    fail(concat("update expected at most 1 argument, got ", arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    const bool dict = source.is(Kind::kDict);
    if (dict && source.object() == self.object()) return Value::none();
    Values pairs(heap);
    if (!dict) pairs = items_of(heap, source);
    for (const Value& pair : pairs) {
      const Values entry = items_of(heap, pair);
      if (entry.size() != 2) fail(concat("update: expected pairs of key and value, found ", entry.size(), " values"));
      dict_in(self).set(entry[0], entry[1]);
    }
    for (size_t i = 0; dict && i < source.dict().size(); ++i) {
      heap.step();
      const auto& [key, value] = source.dict().entries()[i];
      dict_in(self).set(key, value);
    }
  }
  for (const auto& [name, value] : arguments.named) dict_in(self).set(name, value);
  return Value::none();
}

constexpr Builtin kListChanges[] = {{"append", ".", append_item},
                                    {"extend", ".", extend},
                                    {"insert", ". .", insert},
                                    {"pop", "[.]", pop_item},
                                    {"remove", ".", remove},
                                    {"reverse", "", reverse_list},
                                    {"sort", "[key] [reverse]", sort_list},
                                    {"clear", "", clear_list}};
constexpr Builtin kDictChanges[] = {{"clear", "", clear_dict},
                                    {"pop", ". [.]", pop_key},
                                    {"popitem", "", pop_last},
                                    {"setdefault", ". [.]", set_default},
                                    {"update", "*", update}};

}  // namespace

std::span<const Builtin> changing_methods(Kind kind) {
  if (kind == Kind::kList) return kListChanges;
  if (kind == Kind::kDict) return kDictChanges;
  return {};
}

}  // namespace infer::jinja
