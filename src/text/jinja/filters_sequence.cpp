// Filters of lists and other values with items.
#include <algorithm>

#include "src/text/jinja/builtins.h"
#include "src/text/jinja/html.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

Value batch(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t size = int_argument(arguments.positional[0], "linecount");
  const Value& fill = arguments.positional[1];
  Heap& heap = runtime.heap();
  return make_lazily(heap, "do_batch", [&](Values& batches) {
    Values current(heap);
    Iterator items(heap, self);
    while (auto item = items.next()) {
      if (static_cast<int64_t>(current.size()) == size) {
        batches.push_back(make_list(std::move(current)));
        current = Values(heap);
      }
      current.push_back(std::move(*item));
    }
    if (current.empty()) return;
    if (!fill.is_missing() && !fill.is_none()) {
      while (static_cast<int64_t>(current.size()) < size) heap.step(), current.push_back(fill);
    }
    batches.push_back(make_list(std::move(current)));
  });
}

Value slice_columns(Runtime& runtime, const Value& self, Arguments& arguments) {
  const int64_t columns = int_argument(arguments.positional[0], "slices");
  const Value& fill = arguments.positional[1];
  Heap& heap = runtime.heap();
  return make_lazily(heap, "do_slice", [&](Values& result) {
    const Values items = items_of(heap, self);
    if (columns == 0) fail("integer division or modulo by zero");
    const auto n = static_cast<int64_t>(items.size());
    const int64_t size = columns < 0 ? 0 : n / columns, longer = columns < 0 ? 0 : n % columns;
    size_t at = 0;
    for (int64_t i = 0; i < columns; ++i) {
      heap.step();
      Values part(heap);
      for (int64_t k = 0; k < size + (i < longer ? 1 : 0); ++k) part.push_back(items[at++]);
      if (!fill.is_missing() && !fill.is_none() && i >= longer) part.push_back(fill);
      result.push_back(make_list(std::move(part)));
    }
  });
}

Value first(Runtime& runtime, const Value& self, Arguments&) {
  Iterator items(runtime.heap(), self);
  auto item = items.next();
  return item ? *item : runtime.undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& self, Arguments&) {
  if (self.is(Kind::kGenerator)) fail("'generator' object is not reversible");
  if (!is_iterable(self)) fail(concat("'", type_name(self), "' object is not reversible"));
  const Values items = items_of(runtime.heap(), self);
  return items.empty() ? runtime.undefined("No last item, sequence was empty.") : items.back();
}

Value join(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Value separator = arguments.positional[0].is_missing() ? runtime.text("") : arguments.positional[0];
  const Value& attribute = arguments.positional[1];
  const AttributePath path(heap, attribute);
  Iterator iterator(heap, self);
  Values items(heap);
  while (auto item = iterator.next()) items.push_back(path.get(runtime, std::move(*item)));
  bool markup = runtime.autoescape && is_markup(separator);
  for (const Value& item : items) markup = markup || (runtime.autoescape && is_markup(item));
  Text out(heap);
  const auto append = [&](const Value& value) {
    if (!markup || is_markup(value)) append_str(value, out);
    else append_escaped(to_text(heap, value), out);
  };
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) append(separator);
    append(items[i]);
  }
  return markup ? make_markup(std::move(out)) : Value::of(std::move(out));
}

Value list(Runtime& runtime, const Value& self, Arguments&) { return make_list(items_of(runtime.heap(), self)); }

Value reverse(Runtime& runtime, const Value& self, Arguments&) {
  Heap& heap = runtime.heap();
  Values items = items_of(heap, self);
  std::reverse(items.begin(), items.end());
  if (self.is(Kind::kGenerator)) return make_list(std::move(items));
  if (!self.is_string()) return make_generator(std::move(items), "reverse");
  Text out(heap);
  for (const Value& item : items) out += item.text();
  return make_text_like(std::move(out), self);
}

// The key of an item: the value at the end of the path, lowercased unless case matters.
Value key_of(Runtime& runtime, const AttributePath& path, bool case_sensitive, const Value& fallback, Value item) {
  Value key = path.get(runtime, std::move(item), fallback);
  return case_sensitive ? key : ignore_case(runtime.heap(), key);
}

bool flag(const Value& value) { return !value.is_missing() && truth(value); }

Value sort(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  // Several attributes, separated by commas, are compared in order.
  Vector<AttributePath> paths(heap);
  if (a[2].is_string()) {
    std::string_view rest = a[2].text();
    for (size_t comma = 0; comma != std::string_view::npos;) {
      comma = rest.find(',');
      paths.emplace_back(heap, runtime.text(rest.substr(0, comma)));
      if (comma != std::string_view::npos) rest.remove_prefix(comma + 1);
    }
  } else {
    paths.emplace_back(heap, a[2]);
  }
  Vector<Keyed> items(heap);
  Iterator iterator(heap, self);
  while (auto item = iterator.next()) {
    Values keys(heap);
    for (const AttributePath& path : paths) keys.push_back(key_of(runtime, path, flag(a[1]), {}, *item));
    items.push_back({make_list(std::move(keys)), std::move(*item)});
  }
  sort_keyed(heap, items, flag(a[0]));
  Values result(heap);
  for (Keyed& item : items) result.push_back(std::move(item.item));
  return make_list(std::move(result));
}

Value unique(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  return make_lazily(heap, "do_unique", [&](Values& result) {
    const AttributePath path(heap, arguments.positional[1]);
    const Value seen(Kind::kDict, heap.make<DictObject>());
    Iterator items(heap, self);
    while (auto item = items.next()) {
      const Value key = key_of(runtime, path, flag(arguments.positional[0]), {}, *item);
      if (seen.dict().find(key)) continue;
      seen.get<DictObject>().set(key, Value::none());
      result.push_back(std::move(*item));
    }
  });
}

template <int Sign>  // 1: the largest, -1: the smallest
Value extreme(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const AttributePath path(heap, arguments.positional[1]);
  const bool case_sensitive = flag(arguments.positional[0]);
  Iterator items(heap, self);
  std::optional<Value> best = items.next();
  if (!best) return runtime.undefined("No aggregated item, sequence was empty.");
  Value best_key = key_of(runtime, path, case_sensitive, {}, *best);
  while (auto item = items.next()) {
    Value key = key_of(runtime, path, case_sensitive, {}, *item);
    if (order(key, best_key, Sign > 0 ? ">" : "<").value_or(0) * Sign <= 0) continue;
    best = std::move(item);
    best_key = std::move(key);
  }
  return *best;
}

Value sum(Runtime& runtime, const Value& self, Arguments& arguments) {
  const AttributePath path(runtime.heap(), arguments.positional[0]);
  Value total = arguments.positional[1].is_missing() ? Value::of(int64_t{0}) : arguments.positional[1];
  if (total.is_string()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iterator items(runtime.heap(), self);
  while (auto item = items.next()) {
    total = apply(runtime, BinaryOp::kAdd, total, path.get(runtime, std::move(*item)));
  }
  return total;
}

Value group_by(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  const AttributePath path(heap, a[0]);
  const bool case_sensitive = flag(a[2]);
  Vector<Keyed> items(heap);
  Iterator iterator(heap, self);
  while (auto item = iterator.next()) {
    Value key = key_of(runtime, path, case_sensitive, a[1], *item);
    items.push_back({std::move(key), std::move(*item)});
  }
  sort_keyed(heap, items, false);
  Values groups(heap);
  for (size_t i = 0; i < items.size();) {
    Values group(heap);
    const size_t begin = i;
    for (; i < items.size() && equals(items[begin].key, items[i].key); ++i) group.push_back(items[i].item);
    // The key of the first item, in its original case.
    const Value key = key_of(runtime, path, true, a[1], items[begin].item);
    groups.push_back(make_pair(heap, key, make_list(std::move(group)), true));
  }
  return make_list(std::move(groups));
}

Value sort_dict(Runtime& runtime, const Value& self, Arguments& arguments) {
  Heap& heap = runtime.heap();
  const Values& a = arguments.positional;
  const std::string_view by = a[1].is_missing() ? "key" : text_argument(a[1], "by");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  require_defined(self);
  if (!self.is(Kind::kDict)) fail(concat("'", type_name(self), "' object has no attribute 'items'"));
  Vector<Keyed> items(heap);
  for (const auto& [key, value] : self.dict().entries()) {
    heap.step();
    const Value& compared = by == "key" ? key : value;
    items.push_back({flag(a[0]) ? compared : ignore_case(heap, compared), make_pair(heap, key, value)});
  }
  sort_keyed(heap, items, flag(a[2]));
  Values result(heap);
  for (Keyed& item : items) result.push_back(std::move(item.item));
  return make_list(std::move(result));
}

Value dict_items(Runtime& runtime, const Value& self, Arguments&) {
  return make_lazily(runtime.heap(), "do_items", [&](Values& result) {
    if (!self.is_undefined() && !self.is(Kind::kDict)) fail("Can only get item pairs from a mapping.");
    if (!self.is(Kind::kDict)) return;
    for (const auto& [key, value] : self.dict().entries()) {
      runtime.heap().step();
      result.push_back(make_pair(runtime.heap(), key, value));
    }
  });
}

constexpr Builtin kSequenceFilters[] = {
    {"batch", "linecount [fill_with]", batch},
    {"slice", "slices [fill_with]", slice_columns},
    {"first", "", first},
    {"last", "", last},
    {"join", "[d] [attribute]", join},
    {"list", "", list},
    {"reverse", "", reverse},
    {"sort", "[reverse] [case_sensitive] [attribute]", sort},
    {"unique", "[case_sensitive] [attribute]", unique},
    {"max", "[case_sensitive] [attribute]", extreme<1>},
    {"min", "[case_sensitive] [attribute]", extreme<-1>},
    {"sum", "[attribute] [start]", sum},
    {"groupby", "attribute [default] [case_sensitive]", group_by},
    {"dictsort", "[case_sensitive] [by] [reverse]", sort_dict},
    {"items", "", dict_items},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kSequenceFilters; }

}  // namespace infer::jinja
