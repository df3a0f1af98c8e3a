// Values of the template language: Python's None, bool, int (64 bits), float, str, list, tuple, dict, range, and what
// Jinja adds to them. A Value is 16 bytes and counts references to its object; objects belong to one Heap and do not
// outlive it. Lists and dicts that the caller gave never change; the template's own do, by their methods. Not
// thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "src/text/jinja/heap.h"

namespace infer::jinja {

enum class Kind : uint8_t {
  kMissing,  // no value at all: an argument not given; never seen by templates
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,       // keys(), values() or items() of a dict
  kRange,      //
  kGenerator,  // what lazy filters give: its items can be taken once
  kNamespace,
  kFunction,  // range, dict, ... and methods bound to their object
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
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }  // as Python counts bool
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // REQUIRES the kind.
  int64_t as_int() const { return int_; }                                                         // also of a bool
  double as_float() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(int_); }  // of any number
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

// Text is always valid UTF-8: what comes from outside is made so (see valid_text).
class StringObject final : public Object {
 public:
  StringObject(Heap& heap, Text&& text, bool markup = false) : Object(heap), text_(std::move(text)), markup_(markup) {}

  std::string_view text() const { return text_; }
  const Text& marked_text() const { return text_; }
  // Safe for HTML: Jinja's Markup.
  bool markup() const { return markup_; }
  // Code points.
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
  Values& own_items() { return items_; }  // REQUIRES a list that is not the caller's
  bool group() const { return group_; }   // a tuple of groupby, with names for its two items
  void forget() noexcept override { items_.clear(); }

  bool from_caller = false;  // no method may change it

 private:
  Values items_;
  bool group_;
};

// Keeps the order in which keys came. Keys are hashable values.
class DictObject final : public Object {
 public:
  explicit DictObject(Heap& heap) : Object(heap), entries_(heap), slots_(heap) {}
  const Vector<std::pair<Value, Value>>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(const Value& key) const;  // throws Failure for keys that cannot be hashed
  const Value* find(std::string_view key) const;
  // These three only while it is being made, and where it is not the caller's.
  void set(const Value& key, Value value);
  // The value that was removed; missing when there is no such key.
  Value erase(const Value& key);
  void clear();
  void forget() noexcept override { entries_.clear(), slots_.clear(); }

  bool from_caller = false;  // no method may change it

 private:
  static constexpr size_t kAbsent = SIZE_MAX;
  template <typename Equal>
  size_t look_up(uint64_t hash, Equal equal) const;  // index of the entry
  size_t index_of(const Value& key) const;
  void place(size_t index);  // an entry into the slots
  void add_to_slots();

  Vector<std::pair<Value, Value>> entries_;
  Vector<uint32_t> slots_;  // open addressing, index + 1 of an entry; empty while there are few
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
  Values items;  // computed at once; `next` says how many were taken
  size_t next = 0;
  std::string_view name;  // of the filter that made it; static
  Value failure;          // why there are no more items: a text, or missing. Only who takes them all meets it
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

// Arguments of a call.
struct Arguments {
  explicit Arguments(Heap& heap) : positional(heap), named(heap) {}
  Values positional;
  Vector<std::pair<Value, Value>> named;  // names are strings
};

class Runtime;

// A function of the language: a filter, a test, a method, a global.
// `parameters`: names separated by blanks, `[name]` may be left out, `.` or `[.]` is given by position only, `*` takes
// everything as it is. With parameters, `arguments.positional` has one entry for each, kMissing where none was given.
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
// A generator of what `fill(items)` appends. Jinja's generators compute nothing before they are asked, so an error of
// `fill` is kept for later calls.
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
Value make_markup(Text&& text);
// `text`, made of the string `like`: as safe, and the caller's when any of `like` is.
Value make_text_like(Text&& text, const Value& like);
// Part of the string `like`, which `part` points into: as safe, with its marks.
Value make_piece(const Value& like, std::string_view part);
// Whether `value` is a string with words of the caller.
bool has_caller_text(const Value& value);

// As Python's type(x).__name__.
std::string_view type_name(const Value& value);

}  // namespace infer::jinja
