// Values of the template language: Python's None, bool, int (64 bits), float, str, list, tuple, dict and range, and
// Jinja's own. A Value is 16 bytes and reference-counts its object; objects belong to one Heap and do not outlive
// it. Lists and dicts from the caller are immutable; the template's own have methods that change them. Not
// thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "src/text/jinja/heap.h"

namespace infer::jinja {

enum class Kind : uint8_t {
  kMissing,  // no value, such as an argument not given; templates never see it
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // keys(), values() or items() of a dict
  kRange,
  kGenerator,  // the result of a lazy filter; its items can be taken once
  kNamespace,
  kFunction,  // range, dict, ...; and bound methods
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
};

class StringObject;
class UndefinedObject;
class ListObject;
class DictObject;
class ViewObject;
class RangeObject;
class GeneratorObject;
class NamespaceObject;
class FunctionObject;
class MacroObject;
class LoopObject;
class CyclerObject;
class JoinerObject;

class Value {
 public:
  Value() : kind_(Kind::kMissing), int_(0) {}
  static Value none() { return Value(Kind::kNone); }
  static Value of(bool flag) {
    Value v(Kind::kBool);
    v.int_ = flag;
    return v;
  }
  static Value of(int64_t number) {
    Value v(Kind::kInt);
    v.int_ = number;
    return v;
  }
  static Value of(double number) {
    Value v(Kind::kFloat);
    v.float_ = number;
    return v;
  }
  static Value of(Heap& heap, std::string_view text);
  static Value of(Text&& text);
  static Value undefined(Heap& heap, std::string_view why);
  Value(Kind kind, Object* object) : kind_(kind), object_(object) { object_->retain(); }

  Value(const Value& other) noexcept : kind_(other.kind_), int_(other.int_) {
    if (is_object()) object_->retain();
  }
  Value(Value&& other) noexcept : kind_(other.kind_), int_(other.int_) { other.kind_ = Kind::kMissing; }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(int_, other.int_);
    return *this;
  }
  ~Value() {
    if (is_object()) object_->release();
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return kind_ == Kind::kMissing; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }  // bool counts, as in Python
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // REQUIRES: the value has that kind.
  int64_t as_int() const { return int_; }                                                         // also for a bool
  double as_float() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }  // for any number
  std::string_view text() const;
  const StringObject& string() const;
  const Vector<Value>& items() const;  // of a list or tuple
  const DictObject& dict() const;
  Object* object() const { return object_; }
  template <typename T>
  T& get() const {
    return static_cast<T&>(*object_);
  }

  // Python's `is`.
  bool same_as(const Value& other) const;

 private:
  explicit Value(Kind kind) : kind_(kind), int_(0) {}
  bool is_object() const { return kind_ == Kind::kUndefined || kind_ >= Kind::kString; }

  Kind kind_;
  union {
    int64_t int_;
    double float_;
    Object* object_;
  };
};

using Values = Vector<Value>;

// The text is always valid UTF-8: input is converted by valid_text.
class StringObject final : public Object {
 public:
  StringObject(Heap& heap, Text&& text, bool markup = false) : Object(heap), text_(std::move(text)), markup_(markup) {}

  std::string_view text() const { return text_; }
  const Text& marked_text() const { return text_; }
  // Safe HTML: Jinja's Markup.
  bool markup() const { return markup_; }
  // In code points.
  int64_t length() const;
  bool ascii() const { return length() == static_cast<int64_t>(text_.size()); }

 private:
  Text text_;
  bool markup_;
  mutable int64_t length_ = -1;
};

class UndefinedObject final : public Object {
 public:
  UndefinedObject(Heap& heap, std::string_view why) : Object(heap), why_(why, heap) {}
  std::string_view why() const { return why_; }

 private:
  Text why_;
};

// A list or a tuple.
class ListObject final : public Object {
 public:
  ListObject(Heap& heap, Values&& items, bool group = false) : Object(heap), items_(std::move(items)), group_(group) {}
  const Values& items() const { return items_; }
  Values& own_items() { return items_; }  // REQUIRES: a list that is not the caller's
  bool group() const { return group_; }   // a tuple made by groupby, whose two items have names
  void forget() noexcept override { items_.clear(); }

  bool from_caller = false;  // no method may change it

 private:
  Values items_;
  bool group_;
};

// Keeps insertion order. Keys are hashable values.
class DictObject final : public Object {
 public:
  explicit DictObject(Heap& heap) : Object(heap), entries_(heap), slots_(heap) {}
  const Vector<std::pair<Value, Value>>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(const Value& key) const;  // throws Failure for an unhashable key
  const Value* find(std::string_view key) const;
  // Call these three only during construction, or on a dict that is not the caller's.
  void set(const Value& key, Value value);
  // Returns the removed value; missing if there is no such key.
  Value erase(const Value& key);
  void clear();
  void forget() noexcept override { entries_.clear(), slots_.clear(); }

  bool from_caller = false;  // no method may change it

 private:
  static constexpr size_t kAbsent = SIZE_MAX;
  template <typename Equal>
  size_t look_up(uint64_t hash, Equal equal) const;  // index of the entry
  size_t index_of(const Value& key) const;
  void place(size_t index);  // adds entry `index` to the slots
  void add_to_slots();

  Vector<std::pair<Value, Value>> entries_;
  Vector<uint32_t> slots_;  // open addressing; entry index + 1; empty while there are few entries
};

class ViewObject final : public Object {
 public:
  enum Part : uint8_t { kKeys, kValues, kItems };
  ViewObject(Heap& heap, Value dict, Part part) : Object(heap), dict_(std::move(dict)), part_(part) {}
  const DictObject& dict() const { return dict_.dict(); }
  Part part() const { return part_; }
  Value at(size_t i) const;

 private:
  Value dict_;
  Part part_;
};

class RangeObject final : public Object {
 public:
  RangeObject(Heap& heap, int64_t start, int64_t stop, int64_t step, int64_t size)
      : Object(heap), start(start), stop(stop), step(step), size(size) {}
  const int64_t start, stop, step, size;
};

class GeneratorObject final : public Object {
 public:
  GeneratorObject(Heap& heap, Values&& items, std::string_view name, Value failure)
      : Object(heap), items(std::move(items)), name(name), failure(std::move(failure)) {}
  Values items;  // computed eagerly; `next` is how many were taken
  size_t next = 0;
  std::string_view name;  // of the filter that made it; static storage
  Value failure;  // the error (a text) that follows the last item, or missing; raised for callers that take all items
};

class NamespaceObject final : public Object {
 public:
  explicit NamespaceObject(Heap& heap) : Object(heap), entries(heap) {}
  const Value* find(std::string_view name) const;
  void set(const Value& name, Value value);
  void forget() noexcept override { entries.clear(); }
  Vector<std::pair<Value, Value>> entries;
};

class CyclerObject final : public Object {
 public:
  CyclerObject(Heap& heap, Values&& items) : Object(heap), items(std::move(items)) {}
  Values items;
  size_t position = 0;
};

class JoinerObject final : public Object {
 public:
  JoinerObject(Heap& heap, Value separator) : Object(heap), separator(std::move(separator)) {}
  Value separator;
  bool used = false;
};

// The arguments of a call.
struct Arguments {
  explicit Arguments(Heap& heap) : positional(heap), named(heap) {}
  Values positional;
  Vector<std::pair<Value, Value>> named;  // the names are strings
};

class Runtime;

// A builtin function: a filter, a test, a method or a global. `parameters`: names separated by blanks. `[name]` is
// optional, `.` and `[.]` are positional only, `*` accepts any arguments. Except with `*`, `arguments.positional` has
// one entry per parameter, kMissing for those not given.
struct Builtin {
  std::string_view name;
  std::string_view parameters;
  Value (*call)(Runtime& runtime, const Value& self, Arguments& arguments);
};

class FunctionObject final : public Object {
 public:
  FunctionObject(Heap& heap, const Builtin& builtin, Value self)
      : Object(heap), builtin(builtin), self(std::move(self)) {}
  const Builtin& builtin;
  const Value self;
};

Value make_list(Values&& items);
Value make_tuple(Values&& items, bool group = false);
Value make_pair(Heap& heap, const Value& first, const Value& second, bool group = false);
Value make_generator(Values&& items, std::string_view name, Value failure = {});
// A generator of the items that `fill(items)` appends. Jinja's generators compute nothing until they are consumed, so
// an error in `fill` is stored and raised later.
template <typename Fill>
Value make_lazily(Heap& heap, std::string_view name, Fill fill) {
  Values items(heap);
  Value failure;
  try {
    fill(items);
  } catch (const Failure& error) {
    if (error.kind != TemplateError::Kind::kRuntime) throw;
    failure = Value::of(heap, error.text);
  }
  return make_generator(std::move(items), name, std::move(failure));
}
inline bool is_markup(const Value& value) { return value.is_string() && value.string().markup(); }
Value make_markup(Text&& text);
// A string `text` derived from `like`: equally safe, and marked as the caller's if any of `like` is.
Value make_text_like(Text&& text, const Value& like);
// The substring `part` of the string `like`, into which it points: equally safe, with its marks.
Value make_piece(const Value& like, std::string_view part);
// Whether `value` is a string with text from the caller.
bool has_caller_text(const Value& value);

// Python's type(x).__name__.
std::string_view type_name(const Value& value);

}  // namespace infer::jinja
