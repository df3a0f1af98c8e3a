#include "src/text/jinja/builtins.h"

#include <unordered_map>

#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/unicode.h"

namespace infer::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Builtin*>;

Table table_of(std::initializer_list<std::span<const Builtin>> parts) {
  Table table;
  for (const auto& part : parts) {
    for (const Builtin& builtin : part) table.emplace(builtin.name, &builtin);
  }
  return table;
}

const Builtin* find_builtin(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

// One entry of Builtin::parameters.
struct Parameter {
  std::string_view name;
  bool required;
};

std::optional<Parameter> next_parameter(std::string_view& rest) {
  const size_t begin = rest.find_first_not_of(' ');
  if (begin == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(begin);
  const size_t end = std::min(rest.find(' '), rest.size());
  std::string_view name = rest.substr(0, end);
  rest.remove_prefix(end);
  const bool optional = name.front() == '[';
  if (optional) name = name.substr(1, name.size() - 2);
  return Parameter{name, !optional};
}

}  // namespace

const Builtin* find_filter(std::string_view name) {
  static const Table table =
      table_of({value_filters(), sequence_filters(), select_filters(), text_filters(), html_filters()});
  return find_builtin(table, name);
}

const Builtin* find_test(std::string_view name) {
  static const Table table = table_of({tests()});
  return find_builtin(table, name);
}

const Builtin* find_global(std::string_view name) {
  static const Table table = table_of({globals()});
  return find_builtin(table, name);
}

const Builtin* find_method(Kind kind, std::string_view name) {
  static const Table strings = table_of({string_methods(), string_search_methods()});
  if (kind == Kind::kString) return find_builtin(strings, name);
  for (const auto& methods : {collection_methods(kind), changing_methods(kind)}) {
    for (const Builtin& method : methods) {
      if (method.name == name) return &method;
    }
  }
  return nullptr;
}

void bind(const Builtin& builtin, Arguments& arguments) {
  if (builtin.parameters == "*") return;
  const size_t given = arguments.positional.size();
  size_t n = 0, taken = 0;
  std::string_view rest = builtin.parameters;
  while (const auto parameter = next_parameter(rest)) {
    const size_t index = n++;
    Value* found = nullptr;
    for (auto& [name, value] : arguments.named) {
      if (name.text() == parameter->name) found = &value;
    }
    if (index < given) {
      if (found) fail(concat(builtin.name, "() got multiple values for argument '", parameter->name, "'"));
      continue;
    }
    arguments.positional.push_back(found ? *found : Value());
    if (found) ++taken;
    if (!found && parameter->required) {
      fail(concat(builtin.name, "() missing a required argument",
                  parameter->name == "." ? "" : concat(": '", parameter->name, "'")));
    }
  }
  if (given > n) fail(concat(builtin.name, "() takes at most ", n, " arguments (", given, " given)"));
  if (taken < arguments.named.size()) {
    for (const auto& [name, value] : arguments.named) {
      rest = builtin.parameters;
      bool known = false;
      while (const auto parameter = next_parameter(rest)) known = known || parameter->name == name.text();
      if (!known) {
        fail(concat(builtin.name, "() got an unexpected keyword argument '", name.text().substr(0, 100), "'"));
      }
    }
  }
}

int64_t int_argument(const Value& value, const char* what) {
  require_defined(value);
  if (!value.is_integer()) fail(concat(what, ": expected an integer, found ", type_name(value)));
  return value.as_int();
}

int64_t int_or(const Value& value, int64_t fallback, const char* what) {
  return value.is_missing() || value.is_none() ? fallback : int_argument(value, what);
}

std::string_view text_argument(const Value& value, const char* what) {
  require_defined(value);
  if (!value.is_string()) fail(concat(what, ": expected a string, found ", type_name(value)));
  return value.text();
}

AttributePath::AttributePath(Heap& heap, const Value& path) : parts_(heap) {
  if (path.is_missing() || path.is_none()) return;
  if (!path.is_string()) {
    parts_.push_back(path);
    return;
  }
  std::string_view rest = path.text();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    bool digits = !part.empty() && part.size() < 18;
    int64_t number = 0;
    for (const char c : part) {
      digits = digits && c >= '0' && c <= '9';
      if (digits) number = number * 10 + (c - '0');
    }
    parts_.push_back(digits ? Value::of(number) : Value::of(heap, part));
    if (dot == std::string_view::npos) return;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributePath::get(Runtime& runtime, Value item, const Value& fallback) const {
  runtime.heap().step(parts_.size());
  for (const Value& part : parts_) {
    item = runtime.get_item(item, part);
    if (item.is_undefined() && !fallback.is_missing() && !fallback.is_none()) item = fallback;
  }
  return item;
}

Value ignore_case(Heap& heap, const Value& value) {
  return value.is_string() ? make_text_like(to_case(heap, value.text(), Case::kLower), value) : value;
}

}  // namespace infer::jinja
