#include "src/text/jinja/heap.h"

#include <algorithm>

namespace infer::jinja {

Heap::~Heap() {
  // The remaining objects form reference cycles. The extra reference keeps all of them alive while forget() breaks the
  // cycles; then they are released.
  for (Object* object = objects_; object; object = object->next_) object->retain();
  for (Object* object = objects_; object; object = object->next_) object->forget();
  dropping_ = true;
  for (Object *object = objects_, *next = nullptr; object; object = next) {
    next = object->next_;
    object->release();
  }
  delete_dropped();
  CHECK_INTERNAL(objects_ == nullptr);
}

void Text::mark(size_t begin, size_t end) {
  if (begin >= end) return;
  while (!from_caller_.empty() && from_caller_.back().begin >= begin) from_caller_.pop_back();
  if (!from_caller_.empty() && from_caller_.back().end >= begin) {
    from_caller_.back().end = std::max(from_caller_.back().end, static_cast<uint32_t>(end));
  } else {
    from_caller_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
  }
}

void Text::mark_from(size_t begin) { mark(begin, size()); }

void Text::append_part(const Text& other, size_t begin, size_t n) {
  const size_t offset = size(), end = begin + n;
  append(other, begin, n);
  auto range = std::lower_bound(other.from_caller_.begin(), other.from_caller_.end(), begin,
                                [](const ByteRange& r, size_t at) { return r.end <= at; });
  for (; range != other.from_caller_.end() && range->begin < end; ++range) {
    const size_t from = std::max<size_t>(range->begin, begin), to = std::min<size_t>(range->end, end);
    mark(offset + from - begin, offset + to - begin);
  }
}

void* Heap::allocate(size_t bytes) {
  charge(bytes);
  try {
    return ::operator new(bytes);
  } catch (...) {
    release(bytes);
    throw;
  }
}

void Heap::deallocate(void* data, size_t bytes) noexcept {
  ::operator delete(data);
  release(bytes);
}

void Heap::add(Object* object, size_t bytes) noexcept {
  object->bytes_ = static_cast<uint32_t>(bytes);
  object->next_ = objects_;
  if (objects_) objects_->previous_ = object;
  objects_ = object;
}

void Heap::remove(Object* object) noexcept {
  if (object->previous_) object->previous_->next_ = object->next_;
  else objects_ = object->next_;
  if (object->next_) object->next_->previous_ = object->previous_;
}

void Heap::drop(Object* object) noexcept {
  remove(object);
  object->next_ = dropped_;
  dropped_ = object;
  if (dropping_) return;
  dropping_ = true;
  delete_dropped();
  dropping_ = false;
}

void Heap::delete_dropped() noexcept {
  while (dropped_) {
    Object* dead = dropped_;
    dropped_ = dead->next_;
    const size_t bytes = dead->bytes_;
    delete dead;
    release(bytes);
  }
}

void Heap::refuse_memory() const {
  fail_budget(concat("values need more than the limit of ", limits_.memory_bytes >> 20, " MiB"));
}

void Heap::refuse_steps() const {
  fail_budget(concat("evaluation needs more than the limit of ", limits_.steps, " steps"));
}

}  // namespace infer::jinja
