// The global functions.
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/iterate.h"
#include "src/text/jinja/operators.h"
#include "src/text/jinja/print.h"
#include "src/text/jinja/runtime.h"
#include "src/text/jinja/time_format.h"

namespace infer::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in Jinja's sandbox

Value range(Runtime& runtime, const Value&, Arguments& arguments) {
  const Values& values = arguments.positional;
  if (values.empty() || values.size() > 3 || !arguments.named.empty()) {
    fail(concat("range expected 1 to 3 arguments, got ", values.size() + arguments.named.size()));
  }
  for (const Value& value : values) {
    require_defined(value);
    if (!value.is_integer()) fail(concat("'", type_name(value), "' object cannot be interpreted as an integer"));
  }
  const int64_t start = values.size() > 1 ? values[0].as_int() : 0;
  const int64_t stop = values[values.size() > 1 ? 1 : 0].as_int();
  const int64_t step = values.size() > 2 ? values[2].as_int() : 1;
  if (step == 0) fail("range() arg 3 must not be zero");
  // Unsigned, so that the distance between two 64-bit numbers always fits.
  uint64_t size = 0;
  if (step > 0 && start < stop) {
    size = (static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) - 1) / static_cast<uint64_t>(step) + 1;
  } else if (step < 0 && start > stop) {
    size = (static_cast<uint64_t>(start) - static_cast<uint64_t>(stop) - 1) / (0 - static_cast<uint64_t>(step)) + 1;
  }
  if (size > static_cast<uint64_t>(kMaxRange)) {
    fail_budget(concat("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", kMaxRange, ")."));
  }
  return {Kind::kRange, runtime.heap().make<RangeObject>(start, stop, step, static_cast<int64_t>(size))};
}

// Calls `set` for each entry of a mapping or of a sequence of pairs, then for each named argument.
template <typename Set>
void each_entry(Runtime& runtime, const char* what, Arguments& arguments, Set set) {
  if (arguments.positional.size() > 1) {
    fail(concat(what, " expected at most 1 argument, got ", arguments.positional.size()));
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::kDict)) {
      for (const auto& [key, value] : source.dict().entries()) runtime.heap().step(), set(key, value);
    } else {
      Iterator pairs(runtime.heap(), source);
      while (const auto pair = pairs.next()) {
        const Values items = items_of(runtime.heap(), *pair);
        if (items.size() != 2) fail(concat(what, ": expected pairs of key and value, found ", items.size(), " values"));
        set(items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) set(name, value);
}

Value dict(Runtime& runtime, const Value&, Arguments& arguments) {
  const Value result(Kind::kDict, runtime.heap().make<DictObject>());
  each_entry(runtime, "dict", arguments,
             [&](const Value& key, const Value& value) { result.get<DictObject>().set(key, value); });
  return result;
}

Value make_namespace(Runtime& runtime, const Value&, Arguments& arguments) {
  const Value result(Kind::kNamespace, runtime.heap().make<NamespaceObject>());
  each_entry(runtime, "namespace", arguments, [&](const Value& key, const Value& value) {
    text_argument(key, "namespace key");
    result.get<NamespaceObject>().set(key, value);
  });
  return result;
}

Value cycler(Runtime& runtime, const Value&, Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  if (!arguments.named.empty()) fail("cycler() takes no keyword arguments");
  return {Kind::kCycler, runtime.heap().make<CyclerObject>(std::move(arguments.positional))};
}

Value joiner(Runtime& runtime, const Value&, Arguments& arguments) {
  const Value& separator = arguments.positional[0];
  return {Kind::kJoiner, runtime.heap().make<JoinerObject>(separator.is_missing() ? runtime.text(", ") : separator)};
}

Value lipsum(Runtime&, const Value&, Arguments&) {
  fail("lipsum() is not available: a prompt must not contain random text");
}

Value raise_exception(Runtime& runtime, const Value&, Arguments& arguments) {
  Value holder;
  throw Failure{TemplateError::Kind::kRaised, std::string(text_of(runtime.heap(), arguments.positional[0], holder))};
}

Value strftime_now(Runtime& runtime, const Value&, Arguments& arguments) {
  const Value& format = arguments.positional[0];
  return make_text_like(format_time(runtime.heap(), text_argument(format, "format"), runtime.now()), format);
}

constexpr Builtin kGlobals[] = {
    {"range", "*", range},
    {"dict", "*", dict},
    {"namespace", "*", make_namespace},
    {"cycler", "*", cycler},
    {"joiner", "[sep]", joiner},
    {"lipsum", "*", lipsum},
    {"raise_exception", "message", raise_exception},
    {"strftime_now", "format", strftime_now},
};

}  // namespace

std::span<const Builtin> globals() { return kGlobals; }

}  // namespace infer::jinja
