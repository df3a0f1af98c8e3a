// The budget of one parse or render, and the memory of its values. Everything that a template can make grow is
// allocated through a HeapAllocator, so live bytes are counted exactly and an allocation beyond the limit is refused in
// advance. Evaluation counts steps; work on bytes counts as steps too. A Heap belongs to one render and one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "src/text/template_error.h"

namespace infer::jinja {

// An error during parsing or evaluation; the parser and interpreter add the location and turn it into a TemplateError.
struct Failure {
  TemplateError::Kind kind;
  std::string text;
};

[[noreturn]] inline void fail(std::string text) { throw Failure{TemplateError::Kind::kRuntime, std::move(text)}; }
[[noreturn]] inline void fail_budget(std::string text) { throw Failure{TemplateError::Kind::kBudget, std::move(text)}; }

struct Limits {
  uint64_t steps = 5'000'000;              // evaluated nodes and items; 256 bytes of text count as one
  size_t memory_bytes = size_t{40} << 20;  // live values and output together
  size_t output_bytes = size_t{16} << 20;
  int depth = 1500;      // nested evaluations
  int call_depth = 200;  // nested macros, loops and callers
  int json_depth = 200;  // nesting of the variables passed in
};

class Object;

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}
  ~Heap();  // deletes the remaining objects, which are in reference cycles
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  void charge(size_t bytes) {
    if (bytes > limits_.memory_bytes - live_) refuse_memory();
    live_ += bytes;
    if (live_ > peak_) peak_ = live_;
    work(bytes);
  }
  void release(size_t bytes) noexcept { live_ -= bytes; }

  // Charged memory, for HeapAllocator.
  void* allocate(size_t bytes);
  void deallocate(void* data, size_t bytes) noexcept;

  void step(uint64_t n = 1) {
    if (n > limits_.steps - steps_) refuse_steps();
    steps_ += n;
  }
  // Charges for reading or writing this many bytes.
  void work(size_t bytes) {
    if (bytes >= 256) step(bytes / 256);
  }

  // The only way to make an object.
  template <typename T, typename... Args>
  T* make(Args&&... args) {
    charge(sizeof(T));
    T* object = nullptr;
    try {
      object = new T(*this, std::forward<Args>(args)...);
    } catch (...) {
      release(sizeof(T));
      throw;
    }
    add(object, sizeof(T));
    return object;
  }

  // Charges for examining this many bytes character by character.
  void scan(size_t bytes) {
    if (bytes >= 16) step(bytes / 16);
  }

  const Limits& limits() const { return limits_; }
  size_t live_bytes() const { return live_; }
  size_t peak_bytes() const { return peak_; }
  uint64_t steps() const { return steps_; }

 private:
  friend class Object;
  void add(Object* object, size_t bytes) noexcept;
  void remove(Object* object) noexcept;
  void drop(Object* object) noexcept;  // called when its last reference is gone
  void delete_dropped() noexcept;
  [[noreturn]] void refuse_memory() const;
  [[noreturn]] void refuse_steps() const;

  const Limits limits_;
  size_t live_ = 0, peak_ = 0;
  uint64_t steps_ = 0;
  Object* objects_ = nullptr;  // all live objects, doubly linked
  Object* dropped_ = nullptr;  // to be deleted, singly linked; a list, because recursion could get deep
  bool dropping_ = false;
};

template <typename T>
class HeapAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  HeapAllocator(Heap& heap) : heap_(&heap) {}  // NOLINT: implicit on purpose
  template <typename U>
  HeapAllocator(const HeapAllocator<U>& other) : heap_(&other.heap()) {}  // NOLINT

  T* allocate(size_t n) {
    if (n > SIZE_MAX / 2 / sizeof(T)) fail_budget("values need more memory than there is");
    return static_cast<T*>(heap_->allocate(n * sizeof(T)));
  }
  void deallocate(T* data, size_t n) noexcept { heap_->deallocate(data, n * sizeof(T)); }
  Heap& heap() const { return *heap_; }
  bool operator==(const HeapAllocator& other) const { return heap_ == other.heap_; }

 private:
  Heap* heap_;
};

template <typename T>
using Vector = std::vector<T, HeapAllocator<T>>;

// Bytes [begin, end) of a text.
struct ByteRange {
  uint32_t begin, end;
};

// A string that records which of its bytes come from the caller and which from the template. Bytes appended directly
// count as the template's; append_part() copies the marks. Code that builds a new string from marked ones must mark it.
class Text : public std::basic_string<char, std::char_traits<char>, HeapAllocator<char>> {
  using Base = std::basic_string<char, std::char_traits<char>, HeapAllocator<char>>;

 public:
  using Base::Base;

  // In ascending order, with gaps between them.
  const Vector<ByteRange>& from_caller() const { return from_caller_; }
  bool has_caller_text() const { return !from_caller_.empty(); }
  // Marks all bytes from `begin` on as the caller's.
  void mark_from(size_t begin);
  // Appends bytes [begin, begin + n) of `other`, with their marks.
  void append_part(const Text& other, size_t begin, size_t n);

 private:
  void mark(size_t begin, size_t end);

  Vector<ByteRange> from_caller_{get_allocator()};
};

// What a Value may refer to. Reference-counted by Values; not thread-safe.
class Object {
 public:
  explicit Object(Heap& heap) : heap_(heap) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Drops references that may have been set after construction; every cycle contains at least one of them.
  virtual void forget() noexcept {}

  void retain() noexcept { ++references_; }
  void release() noexcept {
    if (--references_ == 0) heap_.drop(this);
  }
  Heap& heap() const { return heap_; }

 private:
  friend class Heap;
  Heap& heap_;
  uint32_t references_ = 0;
  uint32_t bytes_ = 0;  // size of the object itself
  Object* previous_ = nullptr;
  Object* next_ = nullptr;
};

}  // namespace infer::jinja
