#!/usr/bin/env python3
"""Writes tests/data/jinja_cases.json: what the real Jinja2 renders from many small templates.

The template language of src/text/jinja must agree with it. Needs Jinja2 (Debian's python3-jinja2), set up as Hugging
Face transformers sets it up for chat templates.

    make_jinja_cases.py [--check]      --check: only says whether the file is up to date
"""

import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

OUT = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "jinja_cases.json"
NOW = datetime.datetime(2026, 1, 15, 10, 30, 0)


class Raised(Exception):
    """What raise_exception raises."""


class Generation(jinja2.ext.Extension):
    """{% generation %}: the body as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    def _pass(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Sandbox(jinja2.sandbox.SandboxedEnvironment):
    """Templates may change lists and dicts of their own, not those of the caller."""

    given = frozenset()  # id() of each list and dict that the caller gave

    def is_safe_attribute(self, obj, attr, value):
        if id(obj) in self.given and jinja2.sandbox.modifies_known_mutable(obj, attr):
            return False
        return super().is_safe_attribute(obj, attr, value)


def containers(value):
    """id() of the value's lists and dicts, at any depth."""
    if isinstance(value, (list, dict)):
        yield id(value)
        for item in value.values() if isinstance(value, dict) else value:
            yield from containers(item)


def environment():
    env = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def outcome(env, template, context):
    context = copy.deepcopy(context)
    env.given = frozenset(containers(context))
    try:
        return {"expected": env.from_string(template).render(**context)}
    except Raised as error:
        return {"error": str(error), "kind": "raised"}
    except jinja2.TemplateSyntaxError as error:
        return {"error": str(error.message), "kind": "syntax"}
    except Exception as error:  # whatever Python says
        return {"error": str(error), "kind": type(error).__name__}


# Each begins with a list `l` and a dict `m` of the template's own.
CHANGES = ["{% set l = [3, 1, 2] %}{% set m = {'a': 1, 'b': [2]} %}" + rest for rest in (
    "{{ l.append(4) }}{{ l }}", "{{ l.extend('xy') }}{{ l }}", "{{ l.extend(l) }}{{ l }}", "{{ l.extend(5) }}",
    "{{ l.insert(1, 'x') }}{{ l }}", "{{ l.insert(-1, 'x') }}{{ l }}", "{{ l.insert(99, 'x') }}{{ l.insert(-99, 'y') }}{{ l }}",
    "{{ l.pop() }}{{ l }}", "{{ l.pop(0) }}{{ l }}", "{{ l.pop(-2) }}{{ l }}", "{{ l.pop(3) }}", "{{ l.pop(-4) }}", "{{ [].pop() }}",
    "{{ l.remove(1) }}{{ l }}", "{{ l.remove(9) }}", "{{ l.reverse() }}{{ l }}", "{{ l.sort() }}{{ l }}",
    "{{ l.sort(reverse=true) }}{{ l }}", "{{ l.append('a') or l.sort() }}", "{{ l.clear() }}{{ l }}",
    "{% macro k(x) %}{{ -x }}{% endmacro %}{{ l.sort(key=k) }}{{ l }}", "{{ l.append() }}", "{{ l.append(1, 2) }}",
    "{% set c = l.copy() %}{{ c.append(4) }}{{ l }}{{ c }}", "{% set c = l %}{{ c.append(4) }}{{ l }}", "{{ (l | list).append(4) }}{{ l }}",
    "{% set c = l[:] %}{{ c.append(4) }}{{ l }}{{ c }}", "{% set c = l + [] %}{{ c.append(4) }}{{ l }}", "{{ l.append(l) }}{{ l }}",
    "{{ l.append(l) }}{{ l == l }}", "{{ l.append(l) }}{{ l | tojson }}", "{{ m.update(m=m) }}{{ m }}", "{{ l.append(m) or m.update(l=l) }}{{ l }}",
    "{% for x in l %}{% if x < 6 %}{{ l.append(x + 3) or '' }}{% endif %}{{ x }} {% endfor %}{{ l }}",
    "{% for x in l %}{{ x }}{{ loop.last }}{{ l.append(9) if loop.index < 3 else '' }} {% endfor %}",
    "{% for x in l %}{{ l.pop() }}{% endfor %}{{ l }}", "{% for x in l %}{{ loop.length }}{{ l.append(1) if loop.first }}{% endfor %}",
    "{{ m.update({'c': 3}) }}{{ m }}", "{{ m.update(a=5, d=6) }}{{ m }}", "{{ m.update([['x', 1], ('y', 2)]) }}{{ m }}", "{{ m.update(5) }}",
    "{{ m.update({}, {}) }}", "{{ m.update(m) }}{{ m }}", "{{ m.pop('a') }}{{ m }}", "{{ m.pop('z', 'none') }}{{ m }}", "{{ m.pop('z') }}",
    "{{ m.popitem() }}{{ m }}", "{{ {}.popitem() }}", "{{ m.setdefault('a', 9) }}{{ m.setdefault('z', 9) }}{{ m.setdefault('n') }}{{ m }}",
    "{{ m.setdefault('list', []).append(1) }}{{ m }}", "{{ m.clear() }}{{ m }}", "{% set c = m.copy() %}{{ c.update(z=1) }}{{ m }}{{ c }}",
    "{% set c = dict(m) %}{{ c.b.append(1) }}{{ c.update(q=1) }}{{ m }}", "{% for k in m %}{{ m.update({k ~ 'x': 1}) }}{% endfor %}",
    "{% for k, v in m.items() %}{{ m.pop(k) }}{% endfor %}", "{% for k in m %}{{ m.update({k: 'new'}) or '' }}{% endfor %}{{ m }}",
    "{% set v = m.keys() %}{{ m.update(z=1) or v | list }}", "{% set n = namespace(l=[]) %}{% for i in range(3) %}{% set _ = n.l.append(i) %}{% endfor %}{{ n.l }}",
    "{% set big = {} %}{% for i in range(40) %}{% set _ = big.update({i: i}) %}{% endfor %}{% for i in range(0, 40, 3) %}{% set _ = big.pop(i) %}{% endfor %}{{ big }}{{ 9 in big }}{{ 10 in big }}",
    "{{ d.append(1) }}", "{{ d.list.append(1) }}", "{{ d.update(a=1) }}", "{{ d.list.sort() }}", "{{ d.pop('t') }}", "{{ d.list.append is defined }}",
    "{% set x = [d.list] %}{{ x.append(1) }}{{ x[0].append(1) }}", "{% set x = d.list + [] %}{{ x.append(1) }}{{ x }}{{ d.list }}",
    "{% set x = dict(d) %}{{ x.pop('list') }}{{ 'list' in d }}", "{% set x = d.list[:2] %}{{ x.extend(d.list) }}{{ x }}", "{{ l['append'](7) }}{{ l }}",
    "{{ [{'a': [{'b': 1}]}, {'a': []}, {}, 5] | map(attribute='a.0.b', default='-') | list }}",
    "{{ [{'a': 'xy'}, {}] | map(attribute='a.0', default=['q']) | list }}", "{{ [{'a': {}}, {}] | map(attribute='a.b', default=none) | list }}",
    "{{ [{'n': {'k': 2}}, {}, {'n': {}}] | groupby('n.k', default=1) | list }}",
)]

WHITESPACE = []
for tag in ("{%{l} if true {r}%}", "{#{l} c {r}#}", "{{{l} 'v' {r}}}"):
    for left in ("", "-", "+"):
        for right in ("", "-", "+"):
            if right == "+" and tag.startswith("{{"):
                continue
            one = tag.replace("{l}", left).replace("{r}", right)
            end = "{% endif %}" if "if" in tag else ""
            for before, after in (("a", "b"), ("a ", " b"), ("a\n", "\nb"), ("a\n  ", "  \n  b"), ("  ", "\n\nb"),
                                  ("a\t\n\t", "\t\n\tb")):
                WHITESPACE.append(before + one + after + end)
WHITESPACE += [
    "\n", "\n\n", "", " ", "a\r\nb\rc\n", "{% if true %}\r\nx\r\n{% endif %}\r\n", "x{% raw %}\n {{ y }}\n{% endraw %}\nz",
    "x\n  {% raw -%}\n {{ y }} {%- endraw -%}\n z", "  {%- raw %} {# a #} {% endraw +%}\nb", "{% raw %}{% endraw %}",
    "{%- raw -%} a {%- endraw -%} b", "a\n   {% raw %}  b  {% endraw %}   \nc", "{# a #}\n{# b #}\nc", "{#- a -#} \n b",
    "a {#+ x #}b", "  {#+ x #}b", "{##}x", "a{# {{ b }} {% c %} #}d", "{{ '{{' }} {{ '}}' }} {{ '%}' }}",
    "{% if true -%}\n\n  x\n\n{%- endif %}\ny", "a\n\n{%- if true %}\nb{% endif %}", "\n  {% set x = 1 %}\n  {{ x }}\n",
    "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{-1}}", "{{- 1 -}}", "{{ 1 }}\n{{ 2 }}\n",
    "{% for x in [1,2] %}\n- {{ x }}\n{% endfor %}\nend", "{% for x in [1,2] -%}\n- {{ x }}\n{%- endfor %}\nend",
    "  {% for x in [1,2] %}  {{ x }}  {% endfor %}  ", "\u00a0{%- if 1 -%}\u2003x{% endif %}", "{%if true%}x{%endif%}",
    "{%  if   true  %}x{%\nendif\n%}", "{{\n1\n+\n2\n}}", "{", "{ {", "a{b}c", "}} %} #}", "{% if true %}{# x #}\n{% endif %}y",
]

EXPRESSIONS = """
1 + 2 * 3 - 4 / 2 ; 2 ** 3 ** 2 ; -2 ** 2 ; (-2) ** 2 ; 2 ** -1 ; 7 // 2 ; -7 // 2 ; 7 // -2 ; -7 % 3 ; 7 % -3 ; 7.5 // 2 ; -7.5 // 2
7.5 % 2 ; -7.5 % 2 ; 7.5 % -2 ; 1 / 3 ; 6 / 2 ; 1e308 * 10 ; 0.1 + 0.2 ; 1e16 ; 1e15 ; 123456789012345678 ; 1.5e-5 ; 1e-4 ; 1e22 ; 5e-324
100 * 1.1 ; 3.0 ; -0.0 ; 1_000 ; 0x1F ; 0b101 ; 0o17 ; 1_0.5 ; 1e3 ; 1E3 ; 1e+3 ; 00 ; 1.0e2 ; true + true ; true * 3 ; -true ; +true ; +3 ; - -3
1 < 2 < 3 ; 1 < 3 < 2 ; 1 == 1.0 ; 1 == true ; 'a' < 'b' ; 'a' < 'B' ; [1, 2] < [1, 3] ; [1] < [1, 0] ; (1, 2) == (1, 2) ; [1] == (1,) ; 'é' > 'z'
1 != 2 ; 'a' in 'abc' ; 'd' not in 'abc' ; 1 in [1, 2] ; 1 in (1, 2) ; 'a' in {'a': 1} ; 1 in {'a': 1} ; '' in 'a' ; 1.0 in [1] ; none in [none] ; [1] in [[1]]
3 in range(5) ; 5 in range(5) ; 2.0 in range(3) ; 'x' in undefined_thing ; undefined_thing == other_undefined ; undefined_thing == none ; none == none ; none == false
1 if true ; 1 if false ; (1 if false) is defined ; 1 if false else 2 ; 1 if true else 2 if true else 3 ; 'a' if 0 else 'b' if 0 else 'c'
true and 1 ; 0 and 1 ; 0 or 'x' ; '' or none ; not 1 ; not not 1 ; not '' and 1 ; 1 or 1 / 0 ; 0 and 1 / 0 ; (1 and 2) or 3 ; 1 and 2 or 3
'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ {'a': none} ; 'a' 'b' "c" ; 'a' * 3 ; 3 * 'ab' ; 'a' * 0 ; 'a' * -1 ; [1, 2] * 2 ; (1,) * 2 ; [1] + [2] ; (1,) + (2,)
'a' + 'b' ; [] ; () ; (1) ; (1,) ; (1, 2,) ; [1, 2,] ; {} ; {'a': 1,} ; {1: 2, 'a': [1], none: true, (1, 2): 3, 1.5: 'x'} ; {'a': 1, 'a': 2} ; {1: 'a', true: 'b', 1.0: 'c'}
[1, 'a', 2.5, none, true, [1], (1,), {'a': 'b'}] ; ['it\\'s', "say \\"hi\\"", "both ' and \\"", 'tab\\t', 'nl\\n', 'back\\\\slash', '\\x01', 'é', '\\u200b', '\\U0001F600', '\\x7f']
'\\a\\b\\f\\v\\0\\101\\x41\\u0041\\q' ; "\\"" ; '\\'' ; '\\u00e9' ; 'x'.upper() ; 'abc'[0] ; 'abc'[-1] ; 'abc'[5] ; 'abc'[1:] ; 'abc'[:-1] ; 'abc'[::-1] ; 'abc'[::2] ; 'abcdef'[1:5:2] ; 'abcdef'[5:1:-2] ; 'abcdef'[-3:]
'héllo wörld'[1] ; 'héllo wörld'[1:8] ; 'héllo'[::-1] ; '日本語'[-1] ; '日本語'[1:2] ; [1, 2, 3][1:] ; [1, 2, 3][-2:] ; [1, 2, 3][::-1] ; [1, 2, 3][10:] ; [1, 2, 3][-10:2] ; (1, 2, 3)[1:] ; range(10)[2:5] ; range(10)[3] ; range(10)[::3] | list ; range(10)[::-1] | list
[1, 2, 3][none:2] ; [1, 2, 3][true] ; {'a': 1}.a ; {'a': 1}['a'] ; {'a': 1}.b is defined ; {'items': 5}['items'] ; {'items': 5}.items() | list ; {'a': {'b': {'c': 3}}}.a.b.c ; [[1, 2], [3]].0.1 ; [1, 2].1 ; {1: 'x'}[1] ; {'1': 'x'}['1']
range(3) ; range(1, 3) ; range(1, 10, 2) ; range(5, 0, -1) | list ; range(0) | list ; range(3) == range(0, 3) ; range(5) | length ; range(3).start ; range(3).stop ; range(3).step ; range(5).index(3) ; range(5).count(3)
dict() ; dict(a=1) ; dict({'a': 1}, b=2) ; dict([('a', 1), ['b', 2]]) ; dict(a=1).items() ; dict(a=1).keys() ; dict(a=1).values() ; {'a': 1}.items() | list ; {'a': 1} | list ; {'b': 1, 'a': 2} | dictsort
namespace(a=1).a ; namespace() ; namespace(a=1, b='x') ; namespace({'a': 1}).a ; namespace(a=1).b is defined ; namespace(a=1)['a'] ; cycler(1, 2).next() ; cycler(1, 2).current ; joiner('x')() ; joiner()() == ''
1 is odd ; 2 is even ; 4 is divisibleby(2) ; 4 is divisibleby 3 ; 1 is number ; 1.0 is number ; true is number ; '1' is number ; 1 is integer ; true is integer ; 1.0 is integer ; 1.0 is float ; 1 is float ; true is boolean ; 1 is boolean ; true is true ; 1 is true ; false is false ; 0 is false
'a' is string ; 1 is string ; {} is mapping ; [] is mapping ; [] is sequence ; 'a' is sequence ; {} is sequence ; 1 is sequence ; none is sequence ; range(1) is sequence ; nope is sequence ; [] is iterable ; 1 is iterable ; nope is iterable ; none is iterable ; {}.keys() is sequence ; {}.items() is iterable
none is none ; nope is none ; nope is defined ; nope is undefined ; none is defined ; 'abc' is lower ; 'Abc' is lower ; 'ABC' is upper ; '123' is lower ; '' is upper ; 'A1' is upper ; 1 is lower ; 'ß' is lower
range is callable ; 'a'.upper is callable ; 1 is callable ; nope is callable ; 1 is sameas 1 ; 'a' is sameas 'b' ; none is sameas none ; true is sameas true ; [] is sameas [] ; 1 is sameas true ; 1 is eq 1 ; 1 is ne 2 ; 1 is lt 2 ; 1 is le 1 ; 2 is gt 1 ; 2 is ge 2 ; 1 is equalto 1 ; 2 is greaterthan 1 ; 1 is lessthan 2 ; 1 is not eq 2
1 is in [1] ; 1 is in([1]) ; 'a' is in 'abc' ; 'upper' is filter ; 'nope' is filter ; 'even' is test ; 'nope' is test ; '<' | e is escaped ; '<' is escaped ; 1 is not string ; not 1 is string ; 1 is string or true ; 1 is number and 2 is number ; (1 is number) == true ; 'x' is string and 'y' in 'xy'
nope ; [nope] ; nope ~ 'x' ; nope or 'd' ; nope | length ; nope | list ; nope | upper ; nope | default('x') ; nope | string ; nope | first is defined ; nope | join ; not nope ; nope == '' ; nope in [nope] ; nope | trim ; nope | e ; nope.x is defined
{}.x ; {}.x | default(1) ; [].x is defined ; [][0] is defined ; 'a'.nope is defined ; none.x is defined ; 1.5.x is defined ; 'abc'['upper']() ; {'a': 1}['get']('a') ; nope['x'] is defined
''.__class__ ; ''.__class__ is defined ; [].append is defined ; {}.update is defined ; {}.pop is defined ; [].copy() ; {'a': 1}.copy() ; [1, 2, 1].count(1) ; [1, 2].index(2) ; (1, 2).index(2) ; (1, 1).count(1) ; 5 .bit_length() ; 2.0.is_integer() ; 2.5.is_integer() ; 5 .real ; 1.5.imag ; (3).numerator
'%s' % 1 ; '%s %s' % (1, 'b') ; '%d' % 3.7 ; '%5d|%-5d|%05d' % (42, 42, 42) ; '%+d % d' % (5, 5) ; '%x %X %o %#x %#o' % (255, 255, 8, 255, 8) ; '%f %.2f %10.3f|%-10.1f|' % (1.5, 1.555, 3.14159, 2.25) ; '%e %.3E %g %G' % (12345.678, 0.00012, 1e20, 1e-10)
'%r %a' % ('é', 'é') ; '%%' % () ; '%(a)s %(b)d' % {'a': 1, 'b': 2} ; '%c%c' % (65, 'b') ; '%.3s|%5s|%-5s|' % ('abcdef', 'ab', 'ab') ; '%*d' % (5, 42) ; '%s' % [1, 2] ; '%s' % ((1, 2),) ; '%s' % {'a': 1} ; '%i' % true ; '%s' % none ; '%05.1f|%+.1f' % (2.55, 2.5) ; '%.0f %.0f' % (0.5, 1.5) ; '%d' % -5 ; '%05d' % -5 ; '%x' % -255 ; '%5s%%' % 10 ; '%.5d' % 42
'%s %s' | format(1, 2) ; '%(a)s' | format(a=1) ; '%s' | format(nope) ; 'a' | format ; '{}' .format(1) ; '{} {}'.format(1, 'a') ; '{1} {0}'.format(1, 2) ; '{a} {b}'.format(a=1, b=2) ; '{0[0]} {0[1]}'.format([1, 2]) ; '{d[x]} {d.x}'.format(d={'x': 5}) ; '{{}} {}'.format(1) ; '{!r} {!s} {!a}'.format('é', 'é', 'é')
'{:5}|{:<5}|{:>5}|{:^5}|'.format(1, 1, 'a', 'b') ; '{:*^7}|{:0>4}|{:05}|{:+}|{: }'.format('x', 7, 42, 5, 5) ; '{:x} {:X} {:o} {:b} {:#x} {:#b} {:08b}'.format(255, 255, 8, 5, 255, 5, 5) ; '{:,} {:_} {:,.2f}'.format(1234567, 1234567, 1234567.891) ; '{:.2f} {:.3e} {:g} {:%} {:.1%}'.format(3.14159, 12345.678, 0.0001, 0.5, 0.256)
'{:c} {:d} {:n}'.format(65, 42, 42) ; '{:.3}|{:10.3}|'.format('abcdef', 'abcdef') ; '{:{}}|'.format('a', 5) ; '{:{w}.{p}f}|'.format(3.14159, w=8, p=2) ; '{:s}'.format('x') ; '{:5}|'.format(true) ; '{}'.format(none) ; '{}'.format([1, 'a']) ; '{:010.2f}|{:<010}|'.format(-3.14159, 42) ; '{:>8,}'.format(12345) ; '{:e}'.format(0) ; '{:.0f} {:.0f} {}'.format(0.5, 2.5, 1e100) ; '{:011,}'.format(1234567) ; '{:+.1f} {:-}'.format(1.25, -3) ; '{a[b]}'.format(a={'b': 'c'}) ; '{:}'.format(5) ; '{:.4g} {:.3}'.format(123456.0, 3.14159)
"""

METHODS = """
'aBc'.upper() ; 'aBc'.lower() ; 'straße'.upper() ; 'ǆ'.title() ; 'ΑΣ'.lower() ; 'ΑΣΑ'.lower() ; 'Straße'.casefold() ; 'ﬁ'.upper() ; 'İ'.lower() ; 'ñ'.upper() ; 'hello wORLD'.capitalize() ; 'ǆabc'.capitalize() ; "they're bill's 2nd x-y".title() ; 'aBc dE'.swapcase() ; 'ß'.swapcase() ; ''.upper()
'a1'.isalnum() ; ''.isalnum() ; 'a b'.isalnum() ; 'aé'.isalpha() ; 'a1'.isalpha() ; 'abc'.isascii() ; 'é'.isascii() ; ''.isascii() ; '12'.isdecimal() ; '²'.isdecimal() ; '²'.isdigit() ; '½'.isdigit() ; '½'.isnumeric() ; '五'.isnumeric() ; '-1'.isdigit() ; '1.5'.isdigit() ; '٣'.isdigit()
'abc'.isidentifier() ; '1a'.isidentifier() ; 'a-b'.isidentifier() ; 'abc'.islower() ; 'aBc'.islower() ; 'a1'.islower() ; '1'.islower() ; 'ABC'.isupper() ; 'ABC d'.isupper() ; 'abc\\n'.isprintable() ; 'abc é'.isprintable() ; ''.isprintable() ; ' \\t\\n'.isspace() ; ''.isspace() ; 'Ab Cd'.istitle() ; 'AB'.istitle() ; 'ab'.istitle() ; 'A1b'.istitle()
'abc'.center(9) + '|' ; 'abc'.center(8) + '|' ; 'ab'.center(5) + '|' ; 'ab'.center(5, '*') ; 'abc'.ljust(6) + '|' ; 'abc'.rjust(6, '.') ; 'abc'.rjust(2) ; '42'.zfill(5) ; '-42'.zfill(5) ; '+4'.zfill(4) ; 'ab'.zfill(1) ; 'é'.center(4, '日')
'  a b '.strip() + '|' ; '  a '.lstrip() + '|' ; ' a  '.rstrip() + '|' ; 'xxaxx'.strip('x') ; 'xyaxy'.strip('yx') ; 'xxaxx'.lstrip('x') ; 'xxaxx'.rstrip('x') ; '\\u2003a\\u00a0'.strip() ; 'éaé'.strip('é') ; 'abc'.strip('') ; 'abc'.strip(none) ; '日本日'.strip('日')
'a,b,c'.split(',') ; 'a,b,c'.split(',', 1) ; 'a,,c'.split(',') ; ' a  b '.split() ; ' a  b  c '.split(none, 1) ; ''.split() ; ''.split(',') ; 'a b c'.split(' ', 0) ; 'a--b--c'.split('--') ; 'aXbXc'.split(sep='X') ; 'a b c'.split(maxsplit=1) ; ' a b c '.split(maxsplit=0) ; 'a b c'.split(' ', maxsplit=1)
'a,b,c'.rsplit(',', 1) ; 'a,b,c'.rsplit(',') ; ' a  b c '.rsplit() ; ' a  b  c '.rsplit(none, 1) ; 'aaa'.rsplit('aa') ; 'aaa'.split('aa') ; 'aaaa'.rsplit('aa', 1) ; ' a b '.rsplit(maxsplit=0) ; 'a\\nb\\r\\nc\\rd'.splitlines() ; 'a\\n\\nb\\n'.splitlines() ; 'a\\nb'.splitlines(true) ; ''.splitlines() ; 'a\\x0bb\\x1cc\\u2028d'.splitlines() ; '\\n'.splitlines()
'a=b=c'.partition('=') ; 'abc'.partition('=') ; 'a=b=c'.rpartition('=') ; 'abc'.rpartition('=') ; 'abcabc'.find('b') ; 'abcabc'.find('b', 2) ; 'abcabc'.find('b', 2, 4) ; 'abc'.find('z') ; 'abc'.find('') ; 'abc'.find('', 3) ; 'abc'.find('', 4) ; 'éab'.find('b') ; 'abcabc'.rfind('b') ; 'abcabc'.rfind('b', 0, 3) ; 'abc'.rfind('') ; 'aaaa'.rfind('aa') ; 'abc'.index('c') ; 'abcb'.rindex('b') ; 'abc'.find('c', -1) ; 'abc'.find('a', -1)
'banana'.count('a') ; 'banana'.count('an') ; 'aaa'.count('aa') ; 'abc'.count('') ; 'banana'.count('a', 2) ; 'banana'.count('a', 2, 4) ; 'abc'.startswith('a') ; 'abc'.startswith(('x', 'a')) ; 'abc'.startswith('b', 1) ; 'abc'.startswith('') ; 'abc'.startswith('bc', 1, 3) ; 'abc'.endswith('c') ; 'abc'.endswith(('x', 'bc')) ; 'abc'.endswith('b', 0, 2) ; 'abc'.startswith(())
'aXbX'.replace('X', 'y') ; 'aaa'.replace('a', 'b', 2) ; 'abc'.replace('', '-') ; 'abc'.replace('', '-', 2) ; 'abc'.replace('b', '') ; 'é'.replace('', '.') ; 'aaa'.replace('aa', 'b') ; 'abc'.replace('z', 'y') ; 'prefix_x'.removeprefix('prefix_') ; 'x'.removeprefix('y') ; 'x_suffix'.removesuffix('_suffix') ; 'x'.removesuffix('') ; '-'.join(['a', 'b']) ; ''.join([]) ; ', '.join({'a': 1, 'b': 2}) ; '-'.join('abc') ; ''.join(('x',))
'a\\tb'.expandtabs() ; 'a\\tb'.expandtabs(4) ; 'ab\\tc\\n\\td'.expandtabs(tabsize=4) ; 'a\\tb'.expandtabs(0) ; 'abc'.translate({97: 'x', 98: none, 99: 100}) ; 'abc'.translate('abc'.maketrans('ab', 'xy')) ; 'abc'.translate('abc'.maketrans('ab', 'xy', 'c')) ; 'abc'.translate('x'.maketrans({'a': 'zz'})) ; '{a}'.format_map({'a': 1}) ; 'x'.format()
{'a': 1}.get('a') ; {'a': 1}.get('b') ; {'a': 1}.get('b', 2) ; {'a': 1}.get('b', none) ; {'a': 1, 'b': 2}.keys() ; {'a': 1}.values() ; {'a': 1}.items() ; {'a': 1}.keys() | list ; 'a' in {'a': 1}.keys() ; 1 in {'a': 1}.values() ; ('a', 1) in {'a': 1}.items() ; {'a': 1}.keys() == {'a': 2}.keys() ; {'a': 1}.items() | length ; {}.fromkeys(['a', 'b'], 1) ; {}.fromkeys('ab') ; {'a': 1} == {'a': 1.0} ; {'a': 1, 'b': 2} == {'b': 2, 'a': 1}
[3, 1].index(1) ; [1, 2, 3, 2].index(2, 2) ; ['a'].count('a') ; [[1], [1]].count([1]) ; (1, 2, 3).index(3) ; [] | length ; 'é日' | length ; {'a': 1} | count ; (1, 2) | count ; range(7) | count
"""

FILTERS = """
-5 | abs ; 5.5 | abs ; true | abs ; [1, 2, 3, 4, 5] | batch(2) | list ; [1, 2, 3] | batch(2, 'x') | list ; [] | batch(2) | list ; 'abcde' | batch(2) | list ; [1, 2, 3] | batch(linecount=2, fill_with=0) | list ; [1, 2, 3, 4, 5] | slice(2) | list ; [1, 2, 3, 4, 5] | slice(3, 'x') | list ; [] | slice(2) | list ; [1, 2] | slice(4) | list
'hello wORLD' | capitalize ; 'é' | capitalize ; 1 | capitalize ; none | capitalize ; 'abc' | center(9) ~ '|' ; 'a' | center ~ '|' ; 12 | center(5) ~ '|' ; 'abc' | center(width=7) ~ '|' ; nope | d('x') ; nope | default ; '' | default('x') ; '' | default('x', true) ; false | default('x', true) ; none | default('x') ; none | default('x', boolean=true) ; 0 | d(5, true) ; nope | default(default_value='y') ; {'a': 1}.b | default('z')
{'b': 1, 'A': 2, 'c': 0} | dictsort ; {'b': 1, 'A': 2} | dictsort(true) ; {'b': 1, 'a': 2} | dictsort(by='value') ; {'b': 1, 'a': 2} | dictsort(false, 'value', true) ; {'b': 1, 'a': 2} | dictsort(reverse=true) ; {'b': 'X', 'a': 'y'} | dictsort(by='value') ; '<a href="x">\\'&' | e ; '<' | escape ; 1 | e ; none | e ; ('<' | e) | e ; ('<' | e) | forceescape ; '<' | forceescape ; [1] | e ; ('<' | e) ~ '<' ; ('<' | e) + '<' ; '<' + ('<' | e) ; ['<' | e] ; ('a<' | e) | upper ; ('<' | e) * 2 ; ('%s<' | safe) % '<' ; ('{}' | safe).format('<') ; '<b>' | safe ; ('<b>' | safe).upper() ; ('<b>' | safe) is escaped ; ('<' | safe) == '<'
1000 | filesizeformat ; 1 | filesizeformat ; 0 | filesizeformat ; 999 | filesizeformat ; 1500 | filesizeformat ; 1000000 | filesizeformat ; 1024 | filesizeformat(true) ; 1048576 | filesizeformat(binary=true) ; 1234567890 | filesizeformat ; '5000' | filesizeformat ; 1.5 | filesizeformat ; 1e25 | filesizeformat ; 1e30 | filesizeformat
[1, 2] | first ; 'abc' | first ; {'a': 1} | first ; [] | first ; range(3) | first ; [1, 2] | last ; 'abc' | last ; {'a': 1, 'b': 2} | last ; [] | last is defined ; '3.5' | float ; 'x' | float ; 'x' | float(1.5) ; 3 | float ; none | float ; '1e3' | float ; ' 2 ' | float ; 'inf' | float ; '1_0' | float ; true | float ; '' | float ; [1] | float(default=2)
'42' | int ; '42.9' | int ; 'x' | int ; 'x' | int(7) ; 3.9 | int ; -3.9 | int ; true | int ; none | int ; ' 5 ' | int ; '0x1F' | int(base=16) ; '1F' | int(0, 16) ; '0b11' | int(0, 2) ; '0x1F' | int(base=0) ; '12' | int(base=8) ; '1e3' | int ; '1_000' | int ; '' | int ; [] | int ; '-7' | int ; '+7' | int ; '٣' | int(9) is number ; 'z' | int(default=3) ; '9' | int(base=8)
[{'k': 'b', 'v': 1}, {'k': 'a', 'v': 2}, {'k': 'b', 'v': 3}] | groupby('k') ; [{'k': 'B'}, {'k': 'a'}, {'k': 'b'}] | groupby('k') | list ; [{'k': 'B'}, {'k': 'b'}] | groupby('k', case_sensitive=true) ; [{'k': 1}, {}] | groupby('k', default=0) ; [('a', 1), ('b', 2), ('a', 3)] | groupby(0) ; [{'a': {'b': 1}}, {'a': {'b': 2}}] | groupby('a.b') ; ([{'k': 1}] | groupby('k'))[0].grouper ; ([{'k': 1}] | groupby('k'))[0].list ; [] | groupby('x')
'a\\nb' | indent ; 'a\\nb' | indent(2) ; 'a\\n\\nb' | indent(2, blank=true) ; 'a\\nb' | indent(2, true) ; 'a\\nb' | indent('>>') ; 'a\\nb\\n' | indent(2) ~ '|' ; '' | indent(2) ~ '|' ; '' | indent(2, true) ~ '|' ; 'a\\r\\nb' | indent(1) ; 'a' | indent(width=3, first=true) ; 'a\\n\\n\\nb' | indent(1) ; '\\na' | indent(2)
[1, 2, 3] | join ; [1, 2] | join(', ') ; ['a', none, true, 1.5] | join('-') ; [{'a': 1}, {'a': 2}] | join(',', attribute='a') ; [{'a': {'b': 1}}] | join(attribute='a.b') ; [[1, 2], [3, 4]] | join('-', attribute=1) ; 'abc' | join('.') ; {'a': 1, 'b': 2} | join ; [] | join('x') ; [1] | join(d='-') ; ['<', '>' | e] | join('<') ; [nope, 1] | join('-') ; [1, 2] | join(0)
'abc' | length ; [1, [2, 3]] | length ; {} | length ; 'a b' | list ; {'a': 1} | list ; (1, 2) | list ; range(3) | list ; 'ABC' | lower ; 1 | lower ; none | upper ; 'äß' | upper ; [1, 'a'] | upper ; {'a': 1, 'b': 2} | items | list ; {} | items | list ; nope | items | list
[1, 2, 3] | map('string') | list ; ['a', 'b'] | map('upper') | join ; [{'a': 1}, {'a': 2}] | map(attribute='a') | list ; [{'a': 1}, {}] | map(attribute='a', default=0) | list ; [{'a': {'b': 1}}] | map(attribute='a.b') | list ; [[1, 2], [3, 4]] | map(attribute=1) | list ; [[1, 2], [3, 4]] | map(attribute='0') | list ; ['1', 'x'] | map('int', 9) | list ; ['a-b'] | map('replace', '-', '+') | list ; [[3, 1], [2]] | map('sort') | list ; none | map('upper') | list ; [] | map('nope') | list ; ['a'] | map('center', width=3) | list ; [1, 2, 3] | map('float') | sum ; [{'a': 'x'}] | map(attribute='b') | list ; ['x'] | map('default', 'y') | list ; [[1], []] | map('first') | map('default', 0) | list ; {'a': 1}.items() | map('last') | list ; [[1, 2], [3]] | map('length') | list ; ['a b', 'c'] | map('wordcount') | sum
[3, 1, 2] | max ; [3, 1, 2] | min ; ['b', 'A'] | max ; ['b', 'A'] | min ; ['b', 'A'] | min(true) ; [{'v': 1}, {'v': 3}] | max(attribute='v') ; [] | max is defined ; 'hello' | max ; [1, 2.5] | max ; [[1, 2], [1, 3]] | max ; {'a': 1, 'b': 2} | max ; ['a', 'B'] | max(case_sensitive=true)
[1, 2] | pprint ; {'b': 1, 'a': [1, 2]} | pprint ; 'a' | pprint ; none | pprint ; {'name': 'a very long value that goes on and on and on', 'other': ['list', 'of', 'many', 'items', 'in', 'it']} | pprint ; range(40) | list | pprint ; ('a',) | pprint ; [] | pprint ; {'k': {'nested': {'deeper': 'value value value value value value', 'x': 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyy'}}} | pprint ; [['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'], ['c']] | pprint ; 'word word word word word word word word word word word word word word word word word word' | pprint
[0, 1, '', 'a', none, []] | reject | list ; [1, 2, 3] | reject('odd') | list ; [1, 2, 3] | reject('gt', 1) | list ; [{'a': 1}, {'a': 0}, {}] | rejectattr('a') | list ; [{'a': 1}, {'a': 2}] | rejectattr('a', 'eq', 1) | list ; [{'a': none}, {}] | rejectattr('a', 'none') | list ; 'aXbX' | replace('X', 'y') ; 'aaa' | replace('a', 'b', 2) ; 'aaa' | replace('a', 'b', count=1) ; 123 | replace(2, 'x') ; 'abc' | replace('', '-') ; none | replace('N', 'n') ; 'a' | replace(old='a', new='b')
'abc' | reverse ; [1, 2, 3] | reverse | list ; (1, 2) | reverse | list ; {'a': 1, 'b': 2} | reverse | list ; range(3) | reverse | list ; 'é日' | reverse ; '' | reverse ; [1, 2] | map('string') | reverse ; 3.14159 | round ; 3.14159 | round(2) ; 2.5 | round ; 3.5 | round ; -2.5 | round ; 2.675 | round(2) ; 42.55 | round(1, 'floor') ; 42.51 | round(1, 'ceil') ; 42 | round ; 42 | round(1) ; 1234.5678 | round(-2) ; 1250 | round(-2) ; 1350 | round(-2) ; 15 | round(-1) ; 42 | round(method='ceil') ; 42.2 | round(method='ceil') ; -42.2 | round(0, 'floor') ; 0.5 | round ; 1e20 | round(2) ; 2.5 | round(precision=0) | int ; 5 | round(-1) ; -15 | round(-1) ; 149.99 | round(-2) ; 50.0 | round(-2) ; 150.0 | round(-2)
[0, 1, '', 'a', none, [], nope] | select | list ; [1, 2, 3, 4] | select('even') | list ; [1, 2, 3] | select('divisibleby', 3) | list ; ['a', 1] | select('string') | list ; [1, 2, 3] | select('in', [1, 3]) | list ; [none, 1] | select('none') | list ; [{'a': 1}, {'a': 0}, {}] | selectattr('a') | list ; [{'a': 1}, {'a': 2}] | selectattr('a', 'eq', 2) | list ; [{'a': 1}, {'a': 2}] | selectattr('a', '==', 2) | list ; [{'a': 1}, {}] | selectattr('a', 'defined') | list ; [{'a': {'b': 1}}, {'a': {'b': 0}}] | selectattr('a.b') | list ; [(1, 2), (0, 3)] | selectattr(0) | list ; none | select | list ; {'a': 1, 'b': 2} | select('eq', 'a') | list ; [1, 2] | select('equalto', 1) | first ; [1, 2] | select('sameas', 2) | list ; 'abc' | select('in', 'ab') | join ; [[1], []] | select | list ; ['a', 'B'] | select('lower') | list
[3, 1, 2] | sort ; ['b', 'A', 'c'] | sort ; ['b', 'A', 'c'] | sort(case_sensitive=true) ; [3, 1, 2] | sort(true) ; [3, 1, 2] | sort(reverse=true) ; [{'a': 2}, {'a': 1}] | sort(attribute='a') ; [{'a': 1, 'b': 2}, {'a': 1, 'b': 1}, {'a': 0, 'b': 9}] | sort(attribute='a,b') ; [[2, 'b'], [1, 'a']] | sort ; {'b': 1, 'a': 2} | sort ; 'hello' | sort | join ; [1, 2.5, true] | sort ; [(2, 'a'), (1, 'b')] | sort(attribute=1) ; [{'a': {'b': 2}}, {'a': {'b': 1}}] | sort(attribute='a.b') ; ['b', 'B', 'a', 'A'] | sort ; ['b', 'B', 'a', 'A'] | sort(reverse=true) ; [] | sort
1 | string ; none | string ; [1, 'a'] | string ; 'a' | string ; 1.0 | string | length ; true | string ; '<b>x</b>' | striptags ; 'a  <b>b</b>\\n c' | striptags ; '&lt;a&gt; &amp; &quot;' | striptags ; '<!-- x -->y' | striptags ; 'a < b' | striptags ; 1 | striptags ; [1, 2, 3] | sum ; [1.5, 2] | sum ; [] | sum ; [{'a': 1}, {'a': 2}] | sum(attribute='a') ; [1, 2] | sum(start=10) ; [[1], [2]] | sum(start=[]) ; [true, true] | sum ; [{'a': 1}] | sum('a', 5) ; range(5) | sum
'hello world-wide (web) [x] {y} <z>' | title ; "it's o'neill" | title ; 'HELLO' | title ; '1abc' | title ; 'a\\tb\\nc' | title ; 'ß' | title ; ' a ' | trim ~ '|' ; 'xxaxx' | trim('x') ; ' a ' | trim(none) ; 5 | trim ; 'abc' | trim(chars='ac') ; 'one two three' | truncate(9) ; 'one two three four' | truncate(9) ; 'one two three four' | truncate(9, true) ; 'one two three four' | truncate(9, false, '…') ; 'one two three four' | truncate(11, false, '..', 0) ; 'onetwothreefour' | truncate(8, leeway=0) ; 'abc' | truncate ; 'x' * 300 | truncate | length ; ('x y ' * 100) | truncate ; 'one two' | truncate(length=3, leeway=0) ; 'hello' | truncate(5, end='')
[1, 2, 1] | unique | list ; ['a', 'A', 'b'] | unique | list ; ['a', 'A'] | unique(true) | list ; [{'a': 1}, {'a': 1}, {'a': 2}] | unique(attribute='a') | list ; 'hello' | unique | join ; [1, 1.0, true] | unique | list ; [] | unique | list ; [none, none] | unique | list ; [(1, 2), (1, 2)] | unique | list ; 'abc' | upper ; 'a b&c/d?é=~' | urlencode ; {'a': 1, 'b c': 'd&e'} | urlencode ; [('a', 1), ('b', '/ x')] | urlencode ; 5 | urlencode ; '' | urlencode ; 'a b c' | wordcount ; '' | wordcount ; "it's x-y_z 1" | wordcount ; 'é 日本' | wordcount
'the quick brown fox jumps over the lazy dog' | wordwrap(10) ; 'aaaaaaaaaaaaaaaa bb' | wordwrap(5) ; 'aaaaaaaaaaaaaaaa bb' | wordwrap(5, false) ; 'well-known self-evident' | wordwrap(8) ; 'well-known self-evident' | wordwrap(8, break_on_hyphens=false) ; 'a b c d' | wordwrap(3, wrapstring='|') ; 'a\\n\\nb c d e' | wordwrap(3) ; '' | wordwrap(5) ; '  lead and trail  ' | wordwrap(6) ; 'one -- two---three a--b' | wordwrap(5) ; 'x' * 20 | wordwrap(7) ; 'ab cd  ef   gh' | wordwrap(6) ; 'foo-bar-baz-qux' | wordwrap(6) ; '--option -x a-1 b-2-c' | wordwrap(4) ; 'word, word; (word) "word"' | wordwrap(8)
{'class': 'a', 'id': none, 'x': '<'} | xmlattr ; {'a': 1} | xmlattr(false) ; {} | xmlattr ; {'a': nope, 'b': true} | xmlattr(autospace=false) ; {'a': 1} | attr('keys') is callable ; {'a': 1} | attr('a') is defined ; 'x' | attr('upper') is callable ; ns | attr('x') is defined ; 'abc' | attr('__class__') is defined
{'a': [1, 2.5, true, none, 'é"\\n']} | tojson ; [] | tojson ; {} | tojson ; [[], {}] | tojson(indent=2) ; {'b': {'y': 1, 'x': 2}, 'a': 1} | tojson(sort_keys=true) ; {'a': [1, {'b': 2}]} | tojson(indent=4) ; {'a': 1} | tojson(indent=0) ; {'a': 1, 'b': 2} | tojson(indent='--') ; [1, 2] | tojson(separators=(',', ':')) ; {'a': [1]} | tojson(indent=2, separators=(',', ' : ')) ; 'é日😀' | tojson(ensure_ascii=true) ; '\\x00\\x1f\\x7f\\u2028' | tojson ; {1: 2, none: 3, true: 4, 1.5: 5} | tojson ; (1, 2) | tojson ; 1e20 | tojson ; 'inf' | float | tojson ; '<>&\\'' | tojson ; 1.0 | tojson ; -0.0 | tojson ; '/' | tojson ; {'a': {}} | tojson(indent=2) ; [1, [2, [3]]] | tojson(indent=1) ; 'x' | tojson | length ; '\\\\' | tojson ; ['a' | e] | tojson ; 10 | tojson(true)
('a' | upper) | lower ; 'a' | upper | replace('A', 'b') | center(5) ; 1 + 2 | string ; (1 + 2) | string ~ 'x' ; -1 | abs ; - 1 | abs ; 2 ** 2 | string ; not 'a' | upper ; 'a' in 'A' | lower ; 'a' ~ 'b' | upper ; [1, 2] | join ~ 'x' ; 'x' if 'a' | upper == 'A' else 'y' ; 'a' | upper if true else 'b' ; 'a,b' | upper .lower is defined ; ('a,b' | upper).split(',') ; 'abc' | list | length ; 'a b'.split() | map('upper') | join('-') ; [1, 2, 3] | map('string') | join | int + 1
"""

STATEMENTS = [
    "{{ 'a\\\nb' }}", "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{{ '\\\\' | tojson }}", "{{ ('x' * 300) | truncate | length }}", "{{ ('x' * 20) | wordwrap(7) }}",
    "{% if 1 %}a{% elif 2 %}b{% else %}c{% endif %}", "{% if 0 %}a{% elif 0 %}b{% else %}c{% endif %}", "{% if 0 %}a{% endif %}",
    "{% if nope %}a{% elif nope2 is undefined %}b{% endif %}", "{% if [] %}a{% elif {} %}b{% elif '' %}c{% elif 0.0 %}d{% else %}e{% endif %}",
    "{% if 1, 2 %}a{% endif %}", "{% if (0 if 1 else 2) %}a{% else %}b{% endif %}", "{% if x is defined and x %}a{% else %}b{% endif %}",
    "{% for x in [1, 2, 3] %}{{ x }}{% endfor %}", "{% for x in [] %}a{% else %}b{% endfor %}", "{% for x in nope %}a{% else %}b{% endfor %}",
    "{% for x in [1] %}a{% else %}b{% endfor %}", "{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
    "{% for x in [1, 2, 3] %}{% if x == 1 %}{% break %}{% endif %}{% else %}e{% endfor %}|",
    "{% for x in range(5) %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{{ loop.index }} {% endfor %}",
    "{% for x in range(3) if x != 1 %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in range(3) if x > 5 %}a{% else %}none{% endfor %}", "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }} {% endfor %}",
    "{% for k in {'a': 1} %}{{ k }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3)), [4, [5, 6]]] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "{% for x in 'héy' %}{{ x }}-{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [3, 4] %}{{ loop.index }}{{ x }}{{ y }} {% endfor %}{{ loop.index }}|{% endfor %}",
    "{% for x in [1, 2] %}{% set o = loop %}{% for y in 'ab' %}{{ o.index }}{{ loop.index0 }}{{ o.last }} {% endfor %}{% endfor %}",
    "{% for x in 'abc' %}{{ loop.first }}{{ loop.last }}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in 'abc' %}{{ loop.previtem }}<{{ loop.nextitem }} {% endfor %}", "{% for x in [1] %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}", "{% for x in [1, 2, 3] %}{{ loop.changed(x % 2, 'a') }} {% endfor %}",
    "{% for x in [1, 2, 3] %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 2] %}{{ loop }} {% endfor %}", "{{ loop is defined }}",
    "{% for x in [[1, [2, [3]]], [4]] recursive %}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}",
    "{% for x in [{'n': 'a', 'c': [{'n': 'b'}, {'n': 'c', 'c': [{'n': 'd'}]}]}] recursive %}{{ '  ' * loop.depth0 }}{{ x.n }}\n{% if x.c %}{{ loop(x.c) }}{% endif %}{% endfor %}",
    "{% for x in [1, 2] | map('string') %}{{ x }}{{ loop.length }}{{ loop.last }} {% endfor %}", "{% set g = [1, 2, 3] | map('string') %}{{ g | first }}{{ g | list }}{{ g | list }}",
    "{% set g = [1, 2] | select %}{% if g %}yes{% endif %}{{ g | list | length }}", "{% for x in [1, 2, 3] | select('odd') %}{{ x }}{% endfor %}",
    "{% for x in range(3) %}{% set y = x %}{% endfor %}{{ y is defined }}", "{% set y = 0 %}{% for x in range(3) %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}",
    "{% set x = 5 %}{% for x in range(2) %}{{ x }}{% endfor %}{{ x }}", "{% for x in range(2) %}{{ x }}{% endfor %}{{ x is defined }}",
    "{% set g = 'abc' | items %}{{ g is defined }}{% if g %}y{% endif %}", "{% set g = [1] | map('nope') %}{{ g is iterable }}", "{{ ['1', 'x'] | map('int') | map('abs') | first }}",
    "{% set ns = namespace(c=0) %}{% for x in range(4) %}{% set ns.c = ns.c + x %}{% endfor %}{{ ns.c }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = [2] %}{{ ns.a }}{{ ns.b }}",
    "{% set ns = namespace(l=[]) %}{% for x in 'ab' %}{% set ns.l = ns.l + [x] %}{% endfor %}{{ ns.l }}", "{% set ns = namespace(a=1) %}{{ ns }}",
    "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}", "{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns }}",
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set a, b = 'xy' %}{{ a }}{{ b }}", "{% set (a, b), c = [1, 2], 3 %}{{ a }}{{ b }}{{ c }}", "{% set a = 1, 2 %}{{ a }}",
    "{% set a = 1 if true else 2 %}{{ a }}", "{% set a %}x{{ 1 }}y{% endset %}{{ a }}{{ a | length }}", "{% set a | upper | replace('X', 'z') %}x{% endset %}{{ a }}", "{% set a %}\n  x\n{% endset %}[{{ a }}]",
    "{% set x = 1 %}{% set a %}{% set x = 2 %}{{ x }}{% endset %}{{ a }}{{ x }}", "{% if true %}{% set z = 1 %}{% endif %}{{ z }}", "{% set x = x + 1 %}{{ x }}", "{% set true_ = true %}{{ true_ }}",
    "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}", "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with a, b = 1, 2 %}{{ a }}{% endwith %}", "{% with (a, b) = (1, 2) %}{{ a }}{{ b }}{% endwith %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(a=5) }} {{ m(b=1, a=2) }}", "{% macro m() %}x{% endmacro %}{{ m() ~ m() }}", "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=x) %}{{ a }}{% endmacro %}{% set x = 3 %}{{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, a=3) }}", "{% macro m(a) %}{{ a }}{{ varargs | length }}{{ kwargs | length }}{% endmacro %}{{ m(1, 2, 3, b=1) }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m(x) %}<{{ caller(x, y=2) }}>{% endmacro %}{% call(a, y, z=3) m(1) %}{{ a }}{{ y }}{{ z }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}",
    "{% macro m() %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}", "{% macro m(a, b=1) %}{{ kwargs }}{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}{{ m }}", "{% macro f(n) %}{{ n }}{{ f(n - 1) if n > 0 }}{% endmacro %}{{ f(4) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}", "{% for i in range(2) %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}",
    "{% macro m() %}{% set x = 9 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}", "{% macro m(l) %}{% for x in l %}{{ x }}{{ loop.index }}{% endfor %}{% endmacro %}{{ m('ab') }}", "{% macro m(a) -%}\n  {{ a }}\n{%- endmacro %}\n{{ m(1) }}", "{% macro m(*a) %}{% endmacro %}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}{{ m(*(3,)) }}", "{% set f = 'abc'.upper %}{{ f() }}", "{% set d = {'f': range} %}{{ d.f(2) | list }}", "{% macro m() %}a{% endmacro %}{% set d = {'m': m} %}{{ d.m() }}{{ [m][0]() }}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}a c{% endfilter %}", "{% filter trim %}  x  {% endfilter %}|", "{% set x = 1 %}{% filter upper %}{% set x = 'y' %}{{ x }}{% endfilter %}{{ x }}", "{% filter indent(2) %}a\nb{% endfilter %}",
    "{% block a %}x{% endblock %}", "{% block a %}x{% endblock a %}y", "{% set x = 1 %}{% block a %}{{ x }}{% endblock %}", "{% for i in [1] %}{% block a scoped %}{{ i }}{% endblock %}{% endfor %}", "{% for i in [1] %}{% block a %}{{ i is defined }}{% endblock %}{% endfor %}",
    "{% autoescape true %}{{ '<' }}{{ '<' | safe }}{{ '<' ~ '>' }}{{ ['<'] | join('>') }}{% endautoescape %}{{ '<' }}", "{% autoescape false %}{{ '<' }}{% endautoescape %}", "{% print 1 %}", "{% print 'a', 2 %}", "{% generation %}a{{ 1 }}{% endgeneration %}", "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
    "{% for x in [1, 2] %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %A %b %B %j %U %W %w %u %y %p %I %e %-d %-m %F %T %D %R %% %V %G %C %h %n%t|%c|%x|%X|%r|%f|%Z%z|%s|%q') }}",
    "{{ strftime_now('%-H %_d %k %l %^a %10Y %E') }}", "{{ strftime_now('') }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set j = joiner('|') %}{% for x in 'abc' %}{{ j() }}{{ x }}{% endfor %}",
    "{{ raise_exception('no') }}", "{{ raise_exception('a' ~ 1) }}", "{% if false %}{{ raise_exception('x') }}{% endif %}ok", "{{ 'x' if true else raise_exception('y') }}", "{{ raise_exception(none) }}", "{{ raise_exception('a\nb') }}",
    "{% if x is defined %}{{ x | nope }}{% endif %}ok", "{{ 1 if true else (2 | nope) }}", "{% if 1 %}{% for i in [1] %}{{ i }}{% endfor %}{% endif %}", "{% set loop = 5 %}{{ loop }}", "{% for loop_ in [1] %}{{ loop.index }}{% endfor %}", "{% set range = 3 %}{{ range }}", "{{ True }}{{ False }}{{ None }}", "{% set messages = [{'role': 'user', 'content': 'hi'}] %}{% for message in messages %}{{ message['role'] ~ ': ' ~ message.content }}{% endfor %}",
    "{% for a in [1, 2, 3, 4] %}{% if loop.index is divisibleby 2 %}{{ a }}{% endif %}{% endfor %}", "{% set x = [1, 2, 3] %}{% set x = x[1:] %}{{ x }}{{ x[-1:][0] }}", "{{ [1, 2] == [1, 2] and {'a': [1]} == {'a': [1]} }}", "{{ messages | selectattr('role', 'equalto', 'user') | list | last }}", "{% for m in messages[::-1] %}{{ m.content }}{% endfor %}", "{{ messages[0] }}", "{{ messages | map(attribute='role') | join(',') }}", "{{ messages | tojson }}", "{{ messages[1]['content'] is string and not (messages[1].content.startswith('<') and messages[1].content.endswith('>')) }}",
    "{% set ns = namespace(i=messages | length - 1) %}{% for m in messages[::-1] %}{% set index = messages | length - 1 - loop.index0 %}{{ index }}{{ m.role }} {% endfor %}", "{{ x.y.z }}", "{{ d }}", "{{ d.list[0] }}{{ d.list | first }}{{ d['list'][-1] }}", "{{ d.none is none }}{{ d.float }}{{ d.big }}{{ d.neg }}{{ d.t }}", "{{ d | tojson(indent=2) }}", "{{ d.keys() | list }}", "{{ d | length }}", "{% for k, v in d | dictsort %}{{ k }},{% endfor %}", "{{ 'a' if d.list else 'b' }}", "{{ d.s | upper }}{{ d.s | length }}{{ d.s[1:3] }}",
    "{%- for message in messages -%}\n{{- '<|' + message.role + '|>\\n' + message.content | trim + '<|end|>\\n' -}}\n{%- endfor -%}\n{%- if add_generation_prompt -%}\n{{- '<|assistant|>\\n' -}}\n{%- endif -%}",
    "{% macro render(v, depth=0) %}{% if v is mapping %}{% for k, x in v.items() %}{{ '  ' * depth }}{{ k }}:\n{{ render(x, depth + 1) }}{% endfor %}{% elif v is sequence and v is not string %}{% for x in v %}{{ render(x, depth + 1) }}{% endfor %}{% else %}{{ '  ' * depth }}{{ v }}\n{% endif %}{% endmacro %}{{ render(d) }}",
    "{% for x in [3, 1] %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{{ (messages | first).role }}{{ (messages | last)['content'] }}", "{% set a = {'x': 1} %}{% set b = dict(a, y=2) %}{{ b }}{{ a }}", "{{ {'a': 1}.items() | sort }}{{ [('b', 1), ('a', 2)] | sort }}", "{{ ('a', 'b') | join }}", "{% set content %}{{ 'x' }}{% endset %}{{ content == 'x' }}{{ content is string }}",
    "{{ 'abc'|upper|lower|title }}", "{{ 5|string|int + 1 }}", "{{ [1,2,3]|length > 2 and 'yes' or 'no' }}", "{{ 'a' ~ ('b' if false) ~ 'c' }}", "{{ [nope, 1] }}", "{{ {'a': nope} }}", "{{ (nope,) }}", "{{ [('x', 1)] | map('join', '-') | list }}", "{{ not nope is defined }}", "{{ nope is not defined }}",
]

ERRORS = [
    "{{ 1 + 'a' }}", "{{ 'a' + 1 }}", "{{ [1] + 'a' }}", "{{ [1] + (1,) }}", "{{ none + 1 }}", "{{ 1 < 'a' }}", "{{ none < 1 }}", "{{ [] < 1 }}", "{{ {} < {} }}", "{{ -'a' }}", "{{ +[] }}", "{{ 'a' * 'b' }}", "{{ 'a' * 1.5 }}", "{{ 'a' - 'b' }}", "{{ 1 / 0 }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ 1.0 / 0 }}", "{{ 1.0 // 0 }}", "{{ 1.0 % 0 }}", "{{ 0 ** -1 }}",
    "{{ nope.x }}", "{{ nope.x.y }}", "{{ nope['x'] }}", "{{ nope() }}", "{{ nope + 1 }}", "{{ 'a' + nope }}", "{{ nope < 1 }}", "{{ -nope }}", "{{ {}.x.y }}", "{{ [][0].x }}", "{{ none.x.y }}", "{{ none() }}", "{{ 1() }}", "{{ 'a'() }}", "{{ {}.x() }}", "{{ none.strip() }}", "{{ [1].append(2) }}", "{{ {}.update({}) }}", "{{ {}.pop('a') }}", "{{ ''.__class__.x }}", "{{ ''.__class__.__mro__ }}", "{{ nope | int }}", "{{ nope | float }}", "{{ nope | abs }}", "{{ nope | round }}", "{{ nope | tojson }}",
    "{{ 1 in 1 }}", "{{ 1 in 'a' }}", "{{ 'a' in none }}", "{{ {[]: 1} }}", "{{ {{}: 1} }}", "{% for x in 1 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% set a, b = 1 %}", "{% set a, b = 'abc' %}", "{% set x = 1 %}{% set x.y = 2 %}", "{% set nope.y = 2 %}",
    "{{ range(100001) }}", "{{ range(1000000000) }}", "{{ range('a') }}", "{{ range(1, 2, 0) }}", "{{ range() }}", "{{ range(1.5) }}", "{{ 'abc'.nope() }}", "{{ 'abc'.split('') }}", "{{ 'abc'.index('z') }}", "{{ [1].index(2) }}", "{{ 'a'.center() }}", "{{ 'a'.center('b') }}", "{{ 'a'.join([1]) }}", "{{ 'a'.replace('b') }}", "{{ 'a'.upper(1) }}", "{{ 'a'.startswith(1) }}", "{{ 'a'.strip(1) }}", "{{ 'a'.zfill('x') }}", "{{ 'a'.ljust(5, 'ab') }}", "{{ {}.get() }}", "{{ {'a': 1}.get([]) }}",
    "{{ 'a' | nope }}", "{{ 'a' is nope }}", "{{ [1] | map('nope') | list }}", "{{ [1] | map | list }}", "{{ [1] | select('nope') | list }}", "{{ [1] | selectattr | list }}", "{{ [1] | map(attribute='a', x=1) | list }}", "{{ 1 | length }}", "{{ none | length }}", "{{ 1 | list }}", "{{ none | list }}", "{{ 1 | first }}", "{{ 1 | join }}", "{{ 1 | sort }}", "{{ [1, 'a'] | sort }}", "{{ [none, 1] | max }}", "{{ [[]] | unique | list }}", "{{ ['a'] | sum }}", "{{ 'a' | abs }}", "{{ 'a' | round }}", "{{ 1.5 | round(1, 'x') }}", "{{ 1 | items | list }}", "{{ [] | dictsort }}", "{{ {} | dictsort(by='x') }}", "{{ 'a' | truncate(1) }}", "{{ 'a' | indent(none) }}", "{{ 1 | indent }}", "{{ 'a' | replace('b') }}", "{{ 'a' | replace }}", "{{ 'a' | upper(1) }}", "{{ 'a' | center(1, 2) }}", "{{ 'a' | default(1, 2, 3) }}", "{{ 'a' | default(x=1) }}", "{{ [1, 2] | map('upper') | length }}", "{{ ([1] | map('string'))[0].x }}", "{{ [1] | select | tojson }}", "{{ range | tojson }}", "{{ {(1, 2): 3} | tojson }}", "{{ [1] | batch }}", "{{ [1] | slice(0) | list }}", "{{ 'inf' | float | int }}", "{{ 'x' | attr('a').b }}", "{{ {'a b': 1} | xmlattr }}", "{{ [1] | last(1) }}", "{{ [1] | map('string') | last }}",
    "{{ '%d' % 'a' }}", "{{ '%s %s' % 1 }}", "{{ '%s' % (1, 2) }}", "{{ '%(a)s' % 1 }}", "{{ '%(a)s' % {} }}", "{{ '%y' % 1 }}", "{{ '%' % 1 }}", "{{ 'a' % 1 }}", "{{ '%c' % 'ab' }}", "{{ '%x' % 1.5 }}", "{{ '%f' % 'a' }}", "{{ '{}'.format() }}", "{{ '{a}'.format() }}", "{{ '{'.format() }}", "{{ '}'.format() }}", "{{ '{0} {}'.format(1, 2) }}", "{{ '{:d}'.format('a') }}", "{{ '{:s}'.format(1) }}", "{{ '{:y}'.format(1) }}", "{{ '{:.2d}'.format(1) }}", "{{ '{!x}'.format(1) }}", "{{ '{:,}'.format('a') }}", "{{ '{:5}'.format([1]) }}", "{{ '{:=5}'.format('a') }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}", "{% macro m(a, a2=1, b) %}{% endmacro %}", "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}", "{% for x in [1] %}{{ loop(x) }}{% endfor %}", "{% for x in [1] %}{{ loop.nope.x }}{% endfor %}", "{{ loop.index }}", "{% for x in [1] %}{{ loop.cycle() }}{% endfor %}", "{{ cycler() }}", "{{ dict(1) }}", "{{ dict([1]) }}", "{{ dict({}, {}) }}", "{{ namespace(1) }}", "{{ joiner(1, 2) }}", "{{ dict(**nope) }}", "{{ dict(*1) }}", "{{ dict(a=1, **{'a': 2}) }}", "{{ strftime_now() }}", "{{ strftime_now(1) }}", "{{ raise_exception() }}",
    "{{ x[1:] }}", "{{ d[1:] }}", "{{ (messages | map('string'))[1:] }}", "{{ [1][::0] }}", "{{ messages['a':] }}", "{{ 'abc'[1.5].x }}", "{{ {}[1:2].x }}", "{{ 'a'.b.c }}",
    "{% if %}{% endif %}", "{% if 1 %}", "{% for x in y %}", "{% endif %}", "{% endfor %}", "{% else %}", "{% nope %}", "{% if 1 %}{% endfor %}", "{{ }}", "{{ 1", "{{ 1 }", "{% if 1", "{# a", "{% raw %}a", "{{ 'a }}", "{{ \"a }}", "{{ a b }}", "{{ 1 2 }}", "{{ a. }}", "{{ a.1b }}", "{{ a[ }}", "{{ (1 }}", "{{ [1 }}", "{{ {1 }}", "{{ {1: } }}", "{{ ) }}", "{{ (] }}", "{{ a | }}", "{{ a is }}", "{{ | a }}", "{{ a is b is c }}", "{{ $ }}", "{{ a ! b }}", "{{ a & b }}", "{{ a = 1 }}", "{{ a; b }}", "{{ ** }}", "{{ f(a=1, 2) }}", "{{ f(*a, *b) }}", "{{ f(**a, b) }}", "{{ f(a b) }}", "{{ f(,) }}", "{{ not }}", "{{ 1 + }}", "{{ 1 if }}", "{{ '\\x4' }}", "{{ '\\u12' }}",
    "{% set %}", "{% set a %}", "{% set 1 = 2 %}", "{% set a.b.c = 1 %}", "{% set a = %}", "{% set a[0] = 1 %}", "{% set none = 1 %}", "{% set true = 1 %}", "{% set (a = 1 %}", "{% for in x %}{% endfor %}", "{% for x y in z %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for 1 in x %}{% endfor %}", "{% macro %}{% endmacro %}", "{% macro m %}{% endmacro %}", "{% macro m(1) %}{% endmacro %}", "{% call x %}{% endcall %}", "{% filter %}{% endfilter %}", "{% filter nope %}{% endfilter %}", "{% with a %}{% endwith %}", "{% with a = 1 b = 2 %}{% endwith %}", "{% break %}", "{% continue %}", "{% do x %}", "{% trans %}x{% endtrans %}", "{% debug %}", "{% block %}{% endblock %}", "{% block a-b %}{% endblock %}", "{% block a required %}x{% endblock %}", "{% autoescape %}{% endautoescape %}", "{% if 1 %}{% else %}{% else %}{% endif %}", "{% if 1 %}{% else %}{% elif 2 %}{% endif %}", "{% 1 %}", "{% %}", "{% if 1 %}{% generation %}{% endif %}{% endgeneration %}", "{% for x in [1] %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% raw %}{% endraw", "{% endraw %}",
]

CONTEXT = {
    "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Grüße 👋"}, {"role": "assistant", "content": "<ok>"}],
    "add_generation_prompt": True,
    "d": {"list": [1, "two", None], "none": None, "float": 1.50, "big": 9007199254740993, "neg": -1, "t": True, "s": "héllo", "nested": {"a": [{"b": 1}]}},
    "x": 5, "ns": {"y": 1},
}


def expressions(text):
    """One expression per semicolon between blanks."""
    for line in text.strip().split("\n"):
        for one in line.split(" ; "):
            if one.strip():
                yield "{{ " + one.strip().replace("\\\\", "\\") + " }}"


def cases():
    for name, templates in (("whitespace", WHITESPACE), ("expression", expressions(EXPRESSIONS)),
                            ("method", expressions(METHODS)), ("filter", expressions(FILTERS)),
                            ("statement", STATEMENTS), ("error", ERRORS), ("change", CHANGES)):
        for number, template in enumerate(templates):
            yield f"{name} {number}", template


def main():
    env = environment()
    rows = []
    for name, template in cases():
        rows.append({"name": name, "template": template, **outcome(env, template, CONTEXT)})
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    text = (f'{{\n"engine": "Jinja2 {jinja2.__version__}",\n"context": {json.dumps(CONTEXT)},\n"cases": [\n{lines}\n]\n}}\n')
    if "--check" in sys.argv[1:]:
        same = OUT.read_text() == text
        print("up to date" if same else f"{OUT} is not what this Jinja2 makes")
        return 0 if same else 1
    OUT.write_text(text)
    print(f"{len(rows)} cases, {sum('error' in row for row in rows)} of them errors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
