#include "src/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {

Value Value::of(Heap& heap, std::string_view text) { return of(Text(text, heap)); }

Value Value::of(Text&& text) {
  Heap& heap = text.get_allocator().heap();
  return {Kind::kString, heap.make<StringObject>(std::move(text))};
}

Value Value::undefined(Heap& heap, std::string_view why) { return {Kind::kUndefined, heap.make<UndefinedObject>(why)}; }

std::string_view Value::text() const { return string().text(); }
const StringObject& Value::string() const { return get<StringObject>(); }
const Values& Value::items() const { return get<ListObject>().items(); }
const DictObject& Value::dict() const { return get<DictObject>(); }

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  if (kind_ == Kind::kFloat) return float_ == other.float_;
  if (is_object()) return object_ == other.object_ || (is_string() && text() == other.text() && text().size() < 2);
  return int_ == other.int_;
}

int64_t StringObject::length() const {
  if (length_ >= 0) return length_;
  heap().work(text_.size());
  return length_ = code_points(text_);
}

namespace {

constexpr size_t kFewEntries = 8;

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  return x;
}

uint64_t hash_of(std::string_view text) { return mix(std::hash<std::string_view>()(text)); }

uint64_t hash_of(const Value& value, int depth = 0) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      return mix(static_cast<uint64_t>(value.as_int()));
    case Kind::kFloat: {
      // Equal numbers must have equal hashes.
      const double x = value.as_float();
      if (x == std::floor(x) && std::fabs(x) < 9e18) return mix(static_cast<uint64_t>(static_cast<int64_t>(x)));
      return mix(std::hash<double>()(x));
    }
    case Kind::kString:
      value.object()->heap().work(value.text().size());
      return hash_of(value.text());
    case Kind::kTuple: {
      if (depth > 50) fail_budget("the key is nested too deeply");
      uint64_t hash = 17;
      for (const Value& item : value.items()) {
        value.object()->heap().step();
        hash = mix(hash * 31 + hash_of(item, depth + 1));
      }
      return hash;
    }
    case Kind::kList:
    case Kind::kDict:
      fail(concat("unhashable type: '", type_name(value), "'"));
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kUndefined:
      return static_cast<uint64_t>(value.kind());
    default:
      return mix(reinterpret_cast<uintptr_t>(value.object()));
  }
}

}  // namespace

template <typename Equal>
size_t DictObject::look_up(uint64_t hash, Equal equal) const {
  if (slots_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (equal(entries_[i].first)) return i;
    }
    return kAbsent;
  }
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask; slots_[i] != 0; i = (i + 1) & mask) {
    if (equal(entries_[slots_[i] - 1].first)) return slots_[i] - 1;
    heap().step();
  }
  return kAbsent;
}

size_t DictObject::index_of(const Value& key) const {
  return look_up(hash_of(key), [&](const Value& other) { return equals(key, other); });
}

const Value* DictObject::find(const Value& key) const {
  const size_t index = index_of(key);
  return index == kAbsent ? nullptr : &entries_[index].second;
}

const Value* DictObject::find(std::string_view key) const {
  const size_t index = look_up(slots_.empty() ? 0 : hash_of(key),
                               [&](const Value& other) { return other.is_string() && other.text() == key; });
  return index == kAbsent ? nullptr : &entries_[index].second;
}

void DictObject::set(const Value& key, Value value) {
  if (const size_t index = index_of(key); index != kAbsent) {
    std::swap(entries_[index].second, value);  // the old value is destroyed once the dict is consistent again
    return;
  }
  entries_.emplace_back(key, std::move(value));
  if (entries_.size() > kFewEntries) add_to_slots();
}

Value DictObject::erase(const Value& key) {
  const size_t index = index_of(key);
  if (index == kAbsent) return {};
  const auto entry = std::move(entries_[index]);
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(index));
  heap().step(entries_.size() / 4);
  if (!slots_.empty()) {
    std::fill(slots_.begin(), slots_.end(), 0);
    for (size_t i = 0; i < entries_.size(); ++i) place(i);
  }
  return entry.second;
}

void DictObject::clear() {
  Vector<std::pair<Value, Value>> gone(heap());
  std::swap(gone, entries_);
  slots_.clear();
}

void DictObject::place(size_t index) {
  const size_t mask = slots_.size() - 1;
  size_t i = hash_of(entries_[index].first) & mask;
  for (; slots_[i] != 0; i = (i + 1) & mask) heap().step();
  slots_[i] = static_cast<uint32_t>(index + 1);
}

// Adds the last entry to the slots; grows the table when it is two thirds full.
void DictObject::add_to_slots() {
  if (entries_.size() * 3 > slots_.size() * 2) {
    slots_.assign(slots_.empty() ? 4 * kFewEntries : slots_.size() * 2, 0);
    for (size_t i = 0; i < entries_.size(); ++i) place(i);
  } else {
    place(entries_.size() - 1);
  }
}

Value ViewObject::at(size_t i) const {
  const auto& [key, value] = dict().entries()[i];
  if (part_ == kKeys) return key;
  if (part_ == kValues) return value;
  return make_pair(heap(), key, value);
}

const Value* NamespaceObject::find(std::string_view name) const {
  for (const auto& [key, value] : entries) {
    if (key.text() == name) return &value;
  }
  heap().step(entries.size() / 8);
  return nullptr;
}

void NamespaceObject::set(const Value& name, Value value) {
  if (const Value* found = find(name.text())) *const_cast<Value*>(found) = std::move(value);
  else entries.emplace_back(name, std::move(value));
}

Value make_list(Values&& items) {
  Heap& heap = items.get_allocator().heap();
  return {Kind::kList, heap.make<ListObject>(std::move(items))};
}

Value make_tuple(Values&& items, bool group) {
  Heap& heap = items.get_allocator().heap();
  return {Kind::kTuple, heap.make<ListObject>(std::move(items), group)};
}

Value make_pair(Heap& heap, const Value& first, const Value& second, bool group) {
  Values items(heap);
  items.reserve(2);
  items.push_back(first);
  items.push_back(second);
  return make_tuple(std::move(items), group);
}

Value make_generator(Values&& items, std::string_view name, Value failure) {
  Heap& heap = items.get_allocator().heap();
  return {Kind::kGenerator, heap.make<GeneratorObject>(std::move(items), name, std::move(failure))};
}

Value make_markup(Text&& text) {
  Heap& heap = text.get_allocator().heap();
  return {Kind::kString, heap.make<StringObject>(std::move(text), true)};
}

Value make_text_like(Text&& text, const Value& like) {
  if (has_caller_text(like)) text.mark_from(0);
  return is_markup(like) ? make_markup(std::move(text)) : Value::of(std::move(text));
}

Value make_piece(const Value& like, std::string_view part) {
  const Text& whole = like.string().marked_text();
  Text text(whole.get_allocator());
  // An empty part may point anywhere.
  if (!part.empty()) text.append_part(whole, static_cast<size_t>(part.data() - whole.data()), part.size());
  return like.string().markup() ? make_markup(std::move(text)) : Value::of(std::move(text));
}

bool has_caller_text(const Value& value) { return value.is_string() && value.string().marked_text().has_caller_text(); }

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.string().markup() ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      switch (value.get<ViewObject>().part()) {
        case ViewObject::kKeys:
          return "dict_keys";
        case ViewObject::kValues:
          return "dict_values";
        default:
          return "dict_items";
      }
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kFunction:
      return "function";
    case Kind::kMacro:
      return "Macro";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

}  // namespace infer::jinja
