#include "src/text/jinja/pretty.h"

#include <algorithm>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

constexpr int64_t kWidth = 80;
constexpr int kMaxPrettyDepth = 100;

class PrettyPrinter {
 public:
  explicit PrettyPrinter(Text& out) : out_(out), heap_(out.get_allocator().heap()) {}

  // `allowance`: characters that must still fit after the value on its last line.
  void write(const Value& value, int64_t indent, int64_t allowance) {
    if (++depth_ > kMaxPrettyDepth) fail_budget("the value is nested too deeply to be printed");
    Text line = one_line(value);
    if (code_points(line) <= kWidth - indent - allowance) {
      add(line);
    } else if (value.is(Kind::kDict) && value.dict().size() > 0) {
      dict(value.dict(), indent, allowance);
    } else if (value.is_sequence() && !value.items().empty()) {
      sequence(value, indent, allowance);
    } else if (value.is_string() && !value.string().markup() && !value.text().empty()) {
      const size_t begin = out_.size();
      string(value.text(), indent, allowance);
      if (has_caller_text(value)) out_.mark_from(begin);
    } else {
      add(line);
    }
    --depth_;
  }

 private:
  void add(const Text& text) { out_.append_part(text, 0, text.size()); }

  using Entries = Vector<const std::pair<Value, Value>*>;

  // Entries sorted by key; keys that cannot be ordered are sorted by type, then by insertion.
  Entries sorted(const DictObject& dict) {
    Entries entries(heap_);
    for (const auto& entry : dict.entries()) entries.push_back(&entry);
    std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
      heap_.step();
      const Value &x = a->first, &y = b->first;
      const bool ordered = (x.is_number() && y.is_number()) || (x.is_string() && y.is_string());
      if (ordered) return order(x, y).value_or(0) < 0;
      return type_name(x) < type_name(y);
    });
    return entries;
  }

  // repr() with each dict sorted by key.
  Text one_line(const Value& value) {
    Text text(heap_);
    append_one_line(value, text, 0);
    heap_.scan(text.size());
    return text;
  }

  void append_one_line(const Value& value, Text& text, int depth) {
    if (depth > kMaxPrettyDepth) fail_budget("the value is nested too deeply to be printed");
    if (value.is(Kind::kDict)) {
      text += '{';
      bool first = true;
      for (const auto* entry : sorted(value.dict())) {
        if (!first) text += ", ";
        first = false;
        append_one_line(entry->first, text, depth + 1);
        text += ": ";
        append_one_line(entry->second, text, depth + 1);
      }
      text += '}';
    } else if (value.is_sequence()) {
      const bool list = value.is(Kind::kList);
      text += list ? '[' : '(';
      for (size_t i = 0; i < value.items().size(); ++i) {
        if (i > 0) text += ", ";
        append_one_line(value.items()[i], text, depth + 1);
      }
      if (!list && value.items().size() == 1) text += ',';
      text += list ? ']' : ')';
    } else {
      append_repr(value, text);
    }
  }

  void new_line(int64_t indent) {
    out_ += ",\n";
    out_.append(static_cast<size_t>(indent), ' ');
  }

  void dict(const DictObject& dict, int64_t indent, int64_t allowance) {
    out_ += '{';
    const Entries entries = sorted(dict);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) new_line(indent + 1);
      const Text key = one_line(entries[i]->first);
      add(key);
      out_ += ": ";
      write(entries[i]->second, indent + code_points(key) + 3, i + 1 == entries.size() ? allowance + 1 : 1);
    }
    out_ += '}';
  }

  void sequence(const Value& value, int64_t indent, int64_t allowance) {
    const bool list = value.is(Kind::kList);
    const Values& items = value.items();
    const int64_t end = !list && items.size() == 1 ? 2 : 1;
    out_ += list ? '[' : '(';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) new_line(indent + 1);
      write(items[i], indent + 1, i + 1 == items.size() ? allowance + end : 1);
    }
    if (end == 2) out_ += ',';
    out_ += list ? ']' : ')';
  }

  // Splits the string at line ends, then between words, into literals on lines of their own.
  void string(std::string_view text, int64_t indent, int64_t allowance) {
    const bool outermost = depth_ == 1;
    if (outermost) ++indent, ++allowance;
    Vector<Text> pieces(heap_);
    size_t at = 0;
    while (const auto line = next_line(text, at)) {
      const bool last = at >= text.size();
      const int64_t width = kWidth - indent - (last ? allowance : 0);
      Text quoted(heap_);
      append_repr(line->with_end, quoted);
      if (code_points(quoted) <= width) pieces.push_back(std::move(quoted));
      else words(line->with_end, kWidth - indent, last ? allowance : 0, pieces);
    }
    if (pieces.size() == 1) {
      out_ += pieces[0];
      return;
    }
    if (outermost) out_ += '(';
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) {
        out_ += '\n';
        out_.append(static_cast<size_t>(indent), ' ');
      }
      out_ += pieces[i];
    }
    if (outermost) out_ += ')';
  }

  // Puts as many words on a line as fit, each with the white space after it.
  void words(std::string_view line, int64_t width, int64_t allowance, Vector<Text>& pieces) {
    std::string_view rest = line;
    while (!rest.empty()) {
      size_t end = 0;
      const auto word_end = [&](size_t from) {
        size_t i = from, length = 0;
        while (i < rest.size() && !is_space(code_at(rest, i, length))) i += length;
        while (i < rest.size() && is_space(code_at(rest, i, length))) i += length;
        return i;
      };
      for (size_t next = word_end(0);; next = word_end(end)) {
        Text candidate(heap_);
        append_repr(rest.substr(0, next), candidate);
        const int64_t limit = width - (next == rest.size() ? allowance : 0);
        if (end > 0 && code_points(candidate) > limit) break;
        end = next;
        if (end == rest.size()) break;
      }
      Text piece(heap_);
      append_repr(rest.substr(0, end), piece);
      pieces.push_back(std::move(piece));
      rest.remove_prefix(end);
    }
  }

  Text& out_;
  Heap& heap_;
  int depth_ = 0;
};

}  // namespace

void append_pretty(const Value& value, Text& out) { PrettyPrinter(out).write(value, 0, 0); }

}  // namespace infer::jinja
