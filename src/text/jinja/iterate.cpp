#include "src/text/jinja/iterate.h"

#include "src/text/jinja/operators.h"
#include "src/text/utf8.h"

namespace infer::jinja {

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kGenerator:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

Iterator::Iterator(Heap& heap, Value source) : heap_(heap), source_(std::move(source)) {
  if (!is_iterable(source_) || source_.is(Kind::kLoop)) {
    fail(concat("'", type_name(source_), "' object is not iterable"));
  }
  if (source_.is(Kind::kDict)) dict_size_ = source_.dict().size();
  if (source_.is(Kind::kView)) dict_size_ = source_.get<ViewObject>().dict().size();
}

void Iterator::check_size(const DictObject& dict) const {
  if (dict.size() != dict_size_) fail("dictionary changed size during iteration");
}

std::optional<Value> Iterator::next() {
  heap_.step();
  switch (source_.kind()) {
    case Kind::kString: {
      const std::string_view text = source_.text();
      const auto at = static_cast<size_t>(position_);
      if (at >= text.size()) return std::nullopt;
      const size_t length = decode_utf8(text, at).length;
      position_ += static_cast<int64_t>(length);
      ++taken_;
      Text character(heap_);
      character.append_part(source_.string().marked_text(), at, length);
      return Value::of(std::move(character));
    }
    case Kind::kList:
    case Kind::kTuple: {
      const Values& items = source_.items();
      if (static_cast<size_t>(position_) >= items.size()) return std::nullopt;
      return items[static_cast<size_t>(position_++)];
    }
    case Kind::kDict: {
      check_size(source_.dict());
      const auto& entries = source_.dict().entries();
      if (static_cast<size_t>(position_) >= entries.size()) return std::nullopt;
      return entries[static_cast<size_t>(position_++)].first;
    }
    case Kind::kView: {
      const auto& view = source_.get<ViewObject>();
      check_size(view.dict());
      if (static_cast<size_t>(position_) >= view.dict().size()) return std::nullopt;
      return view.at(static_cast<size_t>(position_++));
    }
    case Kind::kRange: {
      const auto& range = source_.get<RangeObject>();
      if (position_ >= range.size) return std::nullopt;
      return Value::of(range.start + position_++ * range.step);
    }
    case Kind::kGenerator: {
      auto& generator = source_.get<GeneratorObject>();
      if (generator.next >= generator.items.size()) {
        if (!generator.failure.is_missing()) fail(std::string(generator.failure.text()));
        return std::nullopt;
      }
      return generator.items[generator.next++];
    }
    default:
      return std::nullopt;
  }
}

int64_t Iterator::remaining() const {
  switch (source_.kind()) {
    case Kind::kString:
      return source_.string().length() - taken_;
    case Kind::kGenerator: {
      const auto& generator = source_.get<GeneratorObject>();
      return static_cast<int64_t>(generator.items.size() - generator.next);
    }
    default:
      return length_of(source_) - position_;
  }
}

Values items_of(Heap& heap, const Value& value) {
  Values items(heap);
  if (value.is_sequence()) {
    heap.step(value.items().size() / 8);
    items = value.items();
    return items;
  }
  Iterator iterator(heap, value);
  while (auto item = iterator.next()) items.push_back(std::move(*item));
  return items;
}

}  // namespace infer::jinja
