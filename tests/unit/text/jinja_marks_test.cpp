// Bytes of a rendered text that come from the caller are marked, whatever the template did with them.
#include <doctest/doctest.h>

#include "src/text/jinja/builtins.h"
#include "tests/unit/text/jinja_support.h"

namespace infer {
namespace {

using nlohmann::ordered_json;

const ordered_json kVariables = {{"c", "caller"}, {"n", 5}, {"l", {"one", "two"}}, {"d", {{"key", "value"}}}};

// The text with {...} around the parts that come from the caller.
std::string marked(const std::string& source, const ordered_json& variables = kVariables) {
  const RenderedText rendered = jinja::Template(source).render_marked(variables, {{"bos", "<s>"}}, test::recorded_time);
  std::string out;
  size_t at = 0;
  for (const TextRange& range : rendered.from_caller) {
    CHECK(range.begin >= at);
    CHECK(range.end > range.begin);
    CHECK(range.end <= rendered.text.size());
    out += rendered.text.substr(at, range.begin - at) + "{" +
           rendered.text.substr(range.begin, range.end - range.begin) + "}";
    at = range.end;
  }
  return out + rendered.text.substr(at);
}

// Renders an expression over a caller's text that holds a control token. Wherever the token is in the result, it must
// be marked.
void check_control_token_is_marked(const std::string& expression) {
  static const std::string control = "<|end|>";
  static const ordered_json variables = {{"c", "ab <|end|> cd"}, {"u", "AB <|END|> CD"}, {"l", {"<|end|>", "x"}}};
  CAPTURE(expression);
  RenderedText rendered;
  try {
    rendered = jinja::Template("{{ " + expression + " }}")
                   .render_marked(variables, ordered_json::object(), test::recorded_time);
  } catch (const TemplateError&) {
    return;  // it does not accept such values
  }
  for (size_t at = 0; (at = rendered.text.find(control, at)) != std::string::npos; ++at) {
    const bool touched = std::any_of(rendered.from_caller.begin(), rendered.from_caller.end(),
                                     [&](TextRange r) { return r.begin < at + control.size() && r.end > at; });
    CHECK(touched);
  }
}

}  // namespace

TEST_CASE("the caller's text is marked, the template's is not") {
  CHECK(marked("<a>{{ c }}</a>") == "<a>{caller}</a>");
  CHECK(marked("{{ bos }}{{ 'x' ~ n }}{{ true }}") == "<s>x5True");
  CHECK(marked("{{ c }}{{ c }}") == "{callercaller}");
  CHECK(marked("{{ '[' + c + ']' ~ 1 ~ c }}") == "[{caller}]1{caller}");
  CHECK(marked("{{ bos }}", {{"bos", "mine"}}) == "{mine}");
}

TEST_CASE("marks stay with the parts of a text") {
  const std::string mixed = "{% set t %}  <a>{{ c }}</a> <b>  {% endset %}";
  CHECK(marked(mixed + "{{ t | trim }}") == "<a>{caller}</a> <b>");
  CHECK(marked(mixed + "{{ t.strip()[:5] }}|{{ t[-7:] }}") == "<a>{ca}|> <b>  ");
  CHECK(marked(mixed + "{{ t.split('<')[1] }}|{{ t.split()[0] }}|{{ t.rsplit('>', 2)[0] }}") ==
        "a>{caller}|<a>{caller}</a>|  <a>{caller}</a");
  CHECK(marked(mixed + "{{ t.partition('call')[2] }}|{{ t | replace('/a', c) | trim }}") ==
        "{er}</a> <b>  |<a>{caller}<{caller}> <b>");
  CHECK(marked("{{ c[2] }}{% for x in c %}{{ x }}-{% endfor %}") == "{lc}-{a}-{l}-{l}-{e}-{r}-");
  CHECK(marked("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(c) | trim }}{{ m('y') }}") == "<{caller}><y>");
  CHECK(marked("{% filter trim %} <{{ c }}> {% endfilter %}") == "<{caller}>");
  CHECK(marked("{% set ns = namespace(t='') %}{% set ns.t = ns.t + '<' + c %}{{ ns.t }}") == "<{caller}");
  CHECK(marked("{{ '<%s|%5s>' % (c, 'x') }}{{ '<{}|{:>8}>'.format('y', c) }}") == "<{caller}|    x><y|{  caller}>");
  CHECK(marked("{{ ['<', c, '>'] | join('-') }}{{ ','.join(l) }}") == "<-{caller}->{one},{two}");
  CHECK(marked("{{ [c, 'x'] }}{{ {'a': c} | tojson }}") == "[{'caller'}, 'x']{\"a\": {\"caller\"}}");
  CHECK(marked("{{ d | tojson }}{% for k, v in d | items %}<{{ k }}={{ v }}>{% endfor %}") ==
        "{{\"key\"}: {\"value\"}}<{key}={value}>");
  CHECK(marked("{{ ('a\\n' ~ c) | indent }}{{ c | indent(first=true) }}") == "a\n    {caller}    {caller}");
}

TEST_CASE("no filter launders a text") {
  for (const auto& filters : {jinja::value_filters(), jinja::sequence_filters(), jinja::select_filters(),
                              jinja::text_filters(), jinja::html_filters()}) {
    for (const jinja::Builtin& filter : filters) {
      for (const char* arguments :
           {"", "('a')", "('a', 'b')", "(c)", "('', c)", "(90)", "(3, 'x')", "(attribute=0)", "(false, 1, [c, c])"}) {
        for (const char* value : {"c", "u", "[c]", "l", "{'k': c}", "{c: 'k'}", "['%s', c]", "'%s'", "'a'"}) {
          const std::string filtered = std::string(value) + " | " + std::string(filter.name) + arguments;
          check_control_token_is_marked(filtered);
          check_control_token_is_marked("(" + filtered + ") | list | join");
          check_control_token_is_marked("(" + filtered + ") | first");
        }
      }
    }
  }
}

TEST_CASE("no method launders a text") {
  for (const auto& methods : {jinja::string_methods(), jinja::string_search_methods()}) {
    for (const jinja::Builtin& method : methods) {
      for (const char* arguments : {"", "'a'", "'a', 'b'", "c", "'', c", "90", "90, 'x'", "l", "{97: c}", "c, 'x'"}) {
        for (const char* value : {"c", "u", "' '", "'a'", "'{}'", "('x' + c)"}) {
          const std::string call = std::string(value) + "." + std::string(method.name) + "(" + arguments + ")";
          check_control_token_is_marked(call);
          check_control_token_is_marked("(" + call + ") | list | join");
        }
      }
    }
  }
}

TEST_CASE("no operator and no function launders a text") {
  for (const char* expression : {"c + 'x'",
                                 "c * 2",
                                 "c ~ 1",
                                 "c[::1]",
                                 "c[::-1][::-1]",
                                 "'%s' % c",
                                 "'%r' % [c]",
                                 "'%20s' % c",
                                 "'%(a)s' % {'a': c}",
                                 "'%.9s' % c[3:]",
                                 "'{0!r}'.format(c)",
                                 "[c]",
                                 "{'a': [c]}",
                                 "(c, 1)",
                                 "{c: 1}.keys()",
                                 "{1: c}.values()",
                                 "u.lower()",
                                 "u | lower",
                                 "strftime_now(c)",
                                 "dict(a=c)",
                                 "namespace(a=c)",
                                 "l | map('upper') | map('lower') | list",
                                 "c | e | replace('&lt;', '<') | replace('&gt;', '>')"}) {
    check_control_token_is_marked(expression);
  }
}

}  // namespace infer
