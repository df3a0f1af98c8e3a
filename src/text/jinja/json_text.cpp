#include "src/text/jinja/json_text.h"

#include <algorithm>
#include <cmath>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/utf8.h"

namespace infer::jinja {
namespace {

constexpr size_t kMaxJsonDepth = 200;

class JsonWriter {
 public:
  JsonWriter(const JsonLayout& layout, Text& out) : layout_(layout), out_(out), heap_(out.get_allocator().heap()) {}

  void write(const Value& value) {
    heap_.step();
    switch (value.kind()) {
      case Kind::kString:
        string(value);
        return;
      case Kind::kList:
      case Kind::kTuple:
        enter(value);
        list(value.items());
        open_.pop_back();
        return;
      case Kind::kDict:
        enter(value);
        object(value.dict());
        open_.pop_back();
        return;
      default:
        scalar(value);
    }
  }

 private:
  // A list that contains itself cannot be written as JSON.
  void enter(const Value& value) {
    heap_.step(open_.size() / 16);
    for (const Object* object : open_) {
      if (object == value.object()) fail("Circular reference detected");
    }
    if (open_.size() == kMaxJsonDepth) fail_budget("the value is nested too deeply for JSON");
    open_.push_back(value.object());
  }

  void list(const Values& items) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    open('[');
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) separate();
      write(items[i]);
    }
    close(']');
  }

  void scalar(const Value& value) {
    switch (value.kind()) {
      case Kind::kNone:
        out_ += "null";
        return;
      case Kind::kBool:
        out_ += value.as_int() ? "true" : "false";
        return;
      case Kind::kInt:
        append_repr(value, out_);
        return;
      case Kind::kFloat: {
        const double number = value.as_float();
        if (std::isnan(number)) out_ += "NaN";
        else if (std::isinf(number)) out_ += number < 0 ? "-Infinity" : "Infinity";
        else out_ += float_repr(number);
        return;
      }
      default:
        fail(concat("Object of type ", type_name(value), " is not JSON serializable"));
    }
  }

  void object(const DictObject& dict) {
    if (dict.size() == 0) {
      out_ += "{}";
      return;
    }
    Vector<const std::pair<Value, Value>*> entries(heap_);
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    if (layout_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        heap_.step();
        return order(a->first, b->first).value_or(0) < 0;
      });
    }
    open('{');
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) separate();
      first = false;
      key(entry->first);
      out_ += layout_.key_separator;
      write(entry->second);
    }
    close('}');
  }

  void key(const Value& key) {
    if (key.is_string()) {
      string(key);
      return;
    }
    if (!key.is_number() && !key.is_none()) {
      fail(concat("keys must be str, int, float, bool or None, not ", type_name(key)));
    }
    out_ += '"';
    scalar(key);
    out_ += '"';
  }

  void open(char bracket) {
    ++depth_;
    out_ += bracket;
    new_line();
  }
  void close(char bracket) {
    --depth_;
    new_line();
    out_ += bracket;
  }
  void separate() {
    out_ += layout_.item_separator;
    new_line();
  }
  void new_line() {
    if (!layout_.indented) return;
    out_ += '\n';
    for (int i = 0; i < depth_; ++i) out_ += layout_.indent;
  }

  void escape(uint32_t code) {
    char text[16];
    if (code >= 0x10000) {
      code -= 0x10000;
      std::snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
      std::snprintf(text, sizeof(text), "\\u%04x", code);
    }
    out_ += text;
  }

  void string(const Value& value) {
    const size_t begin = out_.size();
    quoted(value.text());
    if (has_caller_text(value)) out_.mark_from(begin);
  }

  void quoted(std::string_view text) {
    heap_.scan(layout_.ensure_ascii ? 2 * text.size() : text.size() / 2);
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
      if (const size_t k = kEscaped.find(c); k != std::string_view::npos) {
        out_ += '\\';
        out_ += kLetters[k];
        ++i;
      } else if (static_cast<uint8_t>(c) < 0x20) {
        escape(static_cast<uint8_t>(c));
        ++i;
      } else if (static_cast<uint8_t>(c) < 0x80 || !layout_.ensure_ascii) {
        out_ += c;
        ++i;
      } else {
        const Utf8Char next = decode_utf8(text, i);
        escape(next.code);
        i += next.length;
      }
    }
    out_ += '"';
  }

  const JsonLayout& layout_;
  Text& out_;
  Heap& heap_;
  int depth_ = 0;
  Vector<const Object*> open_{heap_};
};

}  // namespace

void append_json(const Value& value, const JsonLayout& layout, Text& out) { JsonWriter(layout, out).write(value); }

}  // namespace infer::jinja
