// Malicious templates: each ends with an error that names line and construct, or quickly with a text, and never exceeds
// its budget. Steps stand for time; memory is what the interpreter counts, which is every byte of values and output
// (tests/e2e/template_test.py measures the whole program).
#include <doctest/doctest.h>

#include <thread>

#include "tests/unit/text/jinja_support.h"

namespace infer {
namespace {

std::string times(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

struct HostileOutcome {
  std::string error;  // "": no error
  TemplateError::Kind kind = TemplateError::Kind::kRuntime;
  jinja::RenderStatistics cost;
};

HostileOutcome outcome_of(const std::string& source,
                          const nlohmann::ordered_json& variables = nlohmann::ordered_json::object(),
                          const jinja::Limits& limits = {}) {
  HostileOutcome outcome;
  try {
    jinja::Template(source).render(variables, test::recorded_time, limits, &outcome.cost);
  } catch (const TemplateError& error) {
    outcome.error = error.what();
    outcome.kind = error.kind();
  }
  CHECK(outcome.cost.peak_bytes <= limits.memory_bytes);
  CHECK(outcome.cost.steps <= limits.steps);
  return outcome;
}

// The budget stops it.
void refused(const std::string& source, const std::string& construct = "", const jinja::Limits& limits = {}) {
  CAPTURE(source.substr(0, 200));
  const HostileOutcome outcome = outcome_of(source, nlohmann::ordered_json::object(), limits);
  CHECK(outcome.kind == TemplateError::Kind::kBudget);
  CHECK(outcome.error.starts_with("[template] line 1, " + construct));
}

// It ends in some way.
void ends(const std::string& source) {
  CAPTURE(source.substr(0, 200));
  outcome_of(source);
}

// A namespace's `l`, wrapped in itself `n` times by `expression`, then `use`.
std::string nested_value(const std::string& expression, int n, const std::string& use) {
  return "{% set ns = namespace(l=[1]) %}{% for i in range(" + std::to_string(n) + ") %}{% set ns.l = " + expression +
         " %}{% endfor %}" + use;
}

// The budget stops an expression in a loop: each evaluation costs more than 50 steps. Fewer turns with a smaller budget
// than the default one come to the same, sooner.
void refused_in_a_loop(const std::string& setup, const std::string& expression) {
  jinja::Limits limits;
  limits.steps /= 10;
  const auto loop = [&](const std::string& body) {
    return setup + "{% for i in range(10000) %}{% set x = " + body + " %}{% endfor %}";
  };
  CHECK(outcome_of(loop("1"), nlohmann::ordered_json::object(), limits).error == "");
  refused(loop(expression), "", limits);
}

}  // namespace

TEST_CASE("the step budget ends loops") {
  refused("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "for");
  refused("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}");
  refused("{{ range(1000000000) | list }}", "range");
  refused("{{ range(-9223372036854775807, 9223372036854775807) }}", "range");
  CHECK(outcome_of("{{ range(1e9) }}").error.find("float") != std::string::npos);
}

TEST_CASE("recursion ends") {
  refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "f");
  refused("{% macro f(a=f()) %}{{ a }}{% endmacro %}{{ f() }}", "f");
  refused(
      "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{% for x in [1] %}{{ f() }}{% endfor %}{% endmacro %}{{ "
      "f() }}");
  refused("{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}");
  refused("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "loop");
  refused("{% macro f(n) %}" + times("{% if 1 %}", 100) + "{{ f(n) }}" + times("{% endif %}", 100) +
          "{% endmacro %}{{ f(1) }}");
  refused("{% macro f(n) %}{{ f(n)" + times("|string", 400) + " }}{% endmacro %}{{ f(1) }}");
  refused("{{ ['a'] | map(*(['map'] * 100)) | list }}", "filter map");
  CHECK(outcome_of("{% macro f(n) %}{{ f(n - 1) if n > 0 }}{% endmacro %}{{ f(100) }}").error == "");
}

TEST_CASE("text and lists do not grow beyond the budget") {
  refused("{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "+");
  refused("{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "~");
  refused("{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}");
  for (const char* expression : {"'x' * 10000000000",
                                 "[0] * 1000000000",
                                 "('x' * 30000000) * 2",
                                 "range(100000) | list | join('x' * 10000)",
                                 "('a' * 1000000) | replace('a', 'b' * 1000)",
                                 "('a' * 1000000).replace('', 'b' * 1000)",
                                 "'%1000000000d' % 1",
                                 "'%.1000000000f' % 1",
                                 "'%.1000000000d' % 1",
                                 "'%*d' % (1000000000, 1)",
                                 "'{:1000000000}'.format(1)",
                                 "'{:.1000000000f}'.format(1.0)",
                                 "'{:01000000000,}'.format(1)",
                                 "'x' | center(1000000000)",
                                 "'x'.ljust(9223372036854775807)",
                                 "'x'.zfill(1000000000)",
                                 "('a\\n' * 100000) | indent(100000)",
                                 "'a\\nb' | indent(9223372036854775807)",
                                 "('\\t' * 1000000).expandtabs(10000)",
                                 "[[[1]]] | tojson(indent=1000000000)",
                                 "[1] | batch(1000000000, 1) | list",
                                 "[1] | slice(1000000000) | list",
                                 "('a ' * 2000000).split()",
                                 "('<' * 8000000) | e | e",
                                 "('a' * 3000000).translate({97: 'b' * 10000})",
                                 "('%s' * 20) % (('x' * 4000000,) * 20)"}) {
    refused("{{ " + std::string(expression) + " }}");
  }
  refused("{% for i in range(100000) %}{% set n = namespace(s='x' * 10000) %}{% set n.me = n %}{% endfor %}");
  refused("{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}", "expression");
}

TEST_CASE("work on long texts counts") {
  const std::string long_text =
      "{% set t = 'a' * 4000000 %}{% set n = 'a' * 2000000 ~ 'b' %}{% set u = 'é' * 1000000 %}";
  for (const char* expression : {"t.find(n)", "n in t", "t.count('a')", "t.rfind('b' ~ t)", "u | upper", "u[999999]",
                                 "u.isalpha()", "u is lower", "u | wordcount", "u.splitlines()", "t.split('b')",
                                 "[u] | string", "(' ' ~ t ~ ' ').strip('a ')", "u | tojson", "t == t ~ 'b'",
                                 "t | replace('b', 'c')", "range(100000) | sort(reverse=true)", "t[::2] ~ u[::2]"}) {
    refused_in_a_loop(long_text, expression);
  }
  // Texts of any length may be converted to numbers, and attribute paths may have any length.
  for (const char* expression :
       {"digits | int", "digits | float", "(digits | filesizeformat)", "digits | int(base=16)", "blanks | float",
        "[1] | map(attribute=path) | list", "'{0}'.format(1) ~ (digits | float)", "t | replace('', '')",
        "many | items | list", "dict(many) | length", "{(numbers): 1} | length", "many | dictsort | length",
        "blanks | title"}) {
    refused_in_a_loop(
        "{% set digits = '1' * 4000000 %}{% set blanks = ' ' * 4000000 %}{% set path = 'real.' * 200000 ~ 'real' %}"
        "{% set t = 'a' * 1000000 %}{% set many = {} %}"
        "{% for i in range(20000) %}{% set _ = many.update({i: i}) %}{% endfor %}"
        "{% set numbers = (1,) * 200000 %}",
        expression);
  }
  for (const char* expression : {"digits | int", "digits | float", "'1' ~ (digits | filesizeformat)"}) {
    CAPTURE(expression);
    CHECK(outcome_of(std::string("{% set digits = '1' * 4000000 %}{% set x = ") + expression + " %}").cost.steps >
          200'000);
  }
  // Looking at every character costs much more than copying bytes.
  for (const char* expression : {"u | upper", "u.isalpha()", "u is lower", "u | wordcount", "[u] | string", "u | e"}) {
    CAPTURE(expression);
    CHECK(outcome_of(long_text + "{% set x = " + expression + " %}").cost.steps > 100'000);
  }
  ends("{{ ('a' * 1000000).rsplit('a' * 1000) | length }}");
  ends("{{ ('a' * 4000000).rfind('b' ~ 'a' * 2000000) }}");
  ends("{{ ('Σ.' * 100000).lower() | length }}");
  ends("{{ ('a-' * 500000) | wordwrap(400000) | length }}");
  ends("{{ ('<!--' * 200000) | striptags | length }}");
}

TEST_CASE("values that contain each other, or themselves") {
  CHECK(outcome_of(nested_value("[ns.l]", 100000, "")).error == "");
  refused(nested_value("[ns.l]", 10000, "{{ ns.l == [ns.l] }}"), "comparison");
  for (const char* use : {"{{ ns.l }}", "{{ ns.l | tojson }}", "{{ ns.l | pprint }}"}) {
    refused(nested_value("[ns.l]", 10000, use));
    refused(nested_value("[ns.l, ns.l]", 100, use));
  }
  refused(nested_value("{'a': ns.l, 'b': ns.l}", 60, "{{ ns.l }}"));
  refused(
      "{% set ns = namespace(t=(1,)) %}{% for i in range(40) %}{% set ns.t = (ns.t, ns.t) %}{% endfor %}"
      "{{ {ns.t: 1} }}",
      "dict");
  CHECK(test::render("{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}") ==
        "<Namespace {'a': [<Namespace {...}>]}>");
  // Cycles are broken at the end; before that they are refused or limited.
  const std::string circle =
      "{% set l = [1] %}{% set m = {'l': l} %}{% set _ = l.append(m) %}{% set _ = l.append(l.pop) %}";
  CHECK(test::render(circle + "{{ m }}").starts_with("{'l': [1, {...}, <"));
  CHECK(outcome_of(circle + "{{ m | tojson }}").error.find("Circular reference") != std::string::npos);
  ends(circle + "{{ m | pprint }}");
  ends(circle +
       "{% set k = [1] %}{% set _ = k.append(k) %}{% set j = [1] %}{% set _ = j.append(j) %}{{ j == k }}{{ j < k }}");
  ends(circle + "{{ {m: 1} }}{{ [l] | unique | list }}{{ l | sum }}{{ l | sort }}");
  refused("{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}");
  refused("{% set l = ['x' * 1000] %}{% for i in range(100000) %}{% set _ = l.extend(l) %}{% endfor %}");
  refused(
      "{% set l = range(99999) | list %}{% for i in range(100000) %}{% set _ = l.insert(0, l.pop(0)) %}{% endfor %}");
  refused(
      "{% set m = {} %}{% for i in range(99999) %}{% set _ = m.update({i: i}) %}{% endfor %}"
      "{% for i in range(99999) %}{% set _ = m.pop(i) %}{% endfor %}");
  CHECK(outcome_of("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns | tojson }}").error.find("JSON") !=
        std::string::npos);
}

TEST_CASE("numbers do not overflow") {
  for (const char* expression :
       {"10 ** 1000000", "2 ** 9223372036854775807", "9223372036854775807 + 1", "-9223372036854775807 - 2",
        "9223372036854775807 * 2", "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)",
        "(-9223372036854775807 - 1) | abs", "9223372036854775808", "'9223372036854775808' | int", "1e300 | int"}) {
    CAPTURE(expression);
    CHECK(outcome_of(std::string("{{ ") + expression + " }}").error.find("64 bits") != std::string::npos);
  }
  CHECK(test::render("{{ (-9223372036854775807 - 1) % -1 }}") == "0");
  CHECK(test::render("{{ [1, 2][-9223372036854775807:9223372036854775807:9223372036854775807] }}") == "[1]");
  CHECK(test::render("{{ 'ab'[9223372036854775807:-9223372036854775807:-1] }}") == "ba");
  ends("{{ 1.5 | round(1000000000) }}{{ 1.5 | round(-1000000000) }}{{ 5 | round(-9223372036854775807) }}");
  ends("{{ 'x' | truncate(9223372036854775807, leeway=9223372036854775807) }}");
}

TEST_CASE("templates that are too large or too deep") {
  refused("{{ " + times("(", 100000) + "1" + times(")", 100000) + " }}", "syntax");
  refused("{{ " + times("[", 100000) + times("]", 100000) + " }}", "syntax");
  refused("{{ " + times("not ", 100000) + "1 }}", "syntax");
  refused("{{ " + times("-", 100000) + "1 }}", "syntax");
  refused("{{ 1" + times(" + 1", 100000) + " }}", "syntax");
  refused("{{ 1" + times("|string", 50000) + " }}", "syntax");
  refused("{{ a" + times(".a", 100000) + " }}", "syntax");
  refused("{{ a" + times("()", 100000) + " }}", "syntax");
  refused("{{ 1" + times(" if 0 else 1", 50000) + " }}", "syntax");
  refused(times("{% if 1 %}", 20000) + times("{% endif %}", 20000), "if");
  refused(times("{{ a }}", 140000), "syntax");
  ends(times("{{ a }}", 70000));
  ends(times("{# x #}", 149000));
  ends("{{ 1" + times("~1", 50000) + " }}");
  ends("{% if 0 %}" + times("{% elif 0 %}", 50000) + "{% endif %}");
  ends(times("{%", 500000));
  ends(times("{", 1000000));
  ends("{{ '" + times("\\\\", 400000) + "' }}");
  std::string many;
  for (int i = 0; i < 40000; ++i) many += "{% set a" + std::to_string(i) + "=1%}";
  ends("{% with %}" + many + "{% endwith %}");
  CHECK(outcome_of(std::string(size_t{1} << 20, 'x')).error == "");
  CHECK(outcome_of(std::string((size_t{1} << 20) + 1, 'x'))
            .error.starts_with("[template] expected at most 1048576 bytes"));
}

TEST_CASE("variables that are too deep or too large") {
  nlohmann::ordered_json deep = 1;
  for (int i = 0; i < 300; ++i) deep = nlohmann::ordered_json::array({deep});
  CHECK(outcome_of("{{ x }}", {{"x", deep}}).kind == TemplateError::Kind::kBudget);
  CHECK(outcome_of("{{ y }}", {{"x", deep}}).error == "");  // unused variables cost nothing
  CHECK(outcome_of("{{ x | length }}", {{"x", std::string(size_t{50} << 20, 'x')}}).kind ==
        TemplateError::Kind::kBudget);
  CHECK(outcome_of("{{ x }}", {{"x", uint64_t{1} << 63}}).error.find("64 bits") != std::string::npos);
  CHECK(test::render("{{ x }}|{{ x | length }}", {{"x", "a\xFF\xC3"}}) == "a\xEF\xBF\xBD\xEF\xBF\xBD|3");
}

TEST_CASE("other files are refused") {
  for (const char* source :
       {"{% include 'a' %}", "{% import 'a' as b %}", "{% from 'a' import b %}", "{% extends 'a' %}"}) {
    const std::string error = test::render_error(source);
    CHECK(error.find("other template files are not available") != std::string::npos);
  }
}

TEST_CASE("errors name line and construct") {
  CHECK(test::render_error("a\n\n{% for x in 1 %}{% endfor %}") ==
        "[template] line 3, for: 'int' object is not iterable");
  CHECK(test::render_error("{{ a }}\n{{ a.b.c }}") == "[template] line 2, .b: 'a' is undefined");
  CHECK(test::render_error("\n{{ 'x' | indent(none) }}") ==
        "[template] line 2, filter indent: width: expected an integer, found NoneType");
  CHECK(test::render_error("{{ raise_exception('no\nmore') }}") == "[template] line 1, raise_exception: no more");
  CHECK(test::render_error("\n\n{{ 1 + }}") == "[template] line 3, syntax: unexpected 'end of print statement'");
  CHECK(test::render_error("{% if 1 %}\n{% endfor %}")
            .starts_with("[template] line 2, if: Encountered unknown tag 'endfor'."));
}

TEST_CASE("one template renders on several threads") {
  const jinja::Template shared(
      "{% set ns = namespace(n=0) %}{% for x in range(1000) %}{% set ns.n = ns.n + x %}{% endfor %}"
      "{{ ns.n }} {{ name | upper }} {{ 'literal' }}");
  std::vector<std::thread> threads;
  std::vector<std::string> texts(8);
  for (size_t i = 0; i < texts.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) {
        texts[i] = shared.render({{"name", "t" + std::to_string(i)}}, test::recorded_time);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == "499500 T" + std::to_string(i) + " literal");
}

}  // namespace infer
