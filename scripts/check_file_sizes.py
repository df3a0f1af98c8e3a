#!/usr/bin/env python3
"""Checks the size of files and functions. A file is about one thing: above 500 lines it is reported, above 800 it
fails. A function in C++ or GLSL fails above 60 lines, counted from the first line of its declaration to its closing
brace. Data tables (*_data.*) are exempt.

    check_file_sizes.py            checks the files git tracks
    check_file_sizes.py --self-test
"""

import pathlib
import re
import subprocess
import sys
import tempfile

WARN, FAIL, FAIL_FUNCTION = 500, 800, 60
CODE = re.compile(r"\.(c|cc|cpp|h|hpp|inc|cu|cuh|comp|glsl|py|mjs|js|sh|cmake)$|(^|/)(Makefile|CMakeLists\.txt)$")
HAS_BRACES = re.compile(r"\.(c|cc|cpp|h|hpp|inc|cu|cuh|comp|glsl)$")
EXEMPT = re.compile(r"_data\.[^/]*$")

# Numbers are matched too, because the quote in 1'000 does not begin a character literal.
COMMENT_OR_LITERAL = re.compile(
    r"""(?P<number>\b\d[\w.']*)|(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)"""
    r"""|(?:u8|[uUL])?R"(?P<end>[^(\n]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
# What comes before the opening brace of a function: its parameters, and what may follow them; or the last {} of a
# constructor's member initializers; or the captures of a lambda without parameters.
FUNCTION_HEAD = re.compile(
    r"(\)(\s*(const|noexcept|override|final|mutable|try|&&?|\b[A-Z_]+\b|->[\w\s:<>,*&\[\]]+))*|\{\}"
    r"|(^|[=,(])\s*\[[^\[\]]*\])\s*$")
NAMESPACE_HEAD = re.compile(r"\bnamespace\b|\bextern\s*\"\"\s*$")
ACCESS = re.compile(r"\s*(public|private|protected)\s*:\s*")


def newlines(match):
    return "\n" * match.group().count("\n")


def only_code(source):
    """The source without comments, literals and directives; every line keeps its number."""
    def emptied(match):
        if match["number"]:
            return match.group()
        return (" " if match["comment"] else '""') + newlines(match)
    return DIRECTIVE.sub(newlines, COMMENT_OR_LITERAL.sub(emptied, source))


class Brace:
    """An open brace: what it encloses, and the declaration that is being read inside it."""

    def __init__(self, kind, line):
        self.kind, self.head, self.first_line = kind, "", line

    def read(self, code, line):
        if not self.head.strip():
            self.first_line = line
        self.head += code
        if ACCESS.fullmatch(self.head):
            self.head = ""

    def kind_of_next(self):
        """A function, a namespace, or data, which includes the body of a class."""
        if self.kind == "function" or FUNCTION_HEAD.search(self.head):
            return "function"
        return "namespace" if NAMESPACE_HEAD.search(self.head) else "data"


def function_lengths(source):
    """[(first line, number of lines)] of every function and every macro.

    A lambda in a table is a function. Lambdas and classes inside a function are part of it. Raises ValueError when the
    braces do not match.
    """
    lengths = [(source.count("\n", 0, m.start()) + 1, m.group().count("\n") + 1) for m in DIRECTIVE.finditer(source)]
    stack = [Brace("namespace", 1)]
    for number, line in enumerate(only_code(source).splitlines(), 1):
        for piece in re.findall(r"[{};]|[^{};]+", line + " "):
            if piece == "{":
                stack.append(Brace(stack[-1].kind_of_next(), number))
            elif piece == "}":
                closed = stack.pop()
                if not stack:
                    raise ValueError(f"line {number} closes a brace that was never opened")
                outer = stack[-1]
                if closed.kind == "function" and outer.kind != "function":
                    lengths.append((outer.first_line, number - outer.first_line + 1))
                outer.head = outer.head + "{}" if closed.kind == "data" else ""
            elif piece == ";":
                stack[-1].head = ""
            else:
                stack[-1].read(piece, number)
    if len(stack) > 1:
        raise ValueError(f"{len(stack) - 1} braces are never closed")
    return lengths


def check_functions(path, source):
    """The failures of one file."""
    try:
        return [f"{path}:{line}: {n_lines} lines in a function or macro, at most {FAIL_FUNCTION}: split it"
                for line, n_lines in function_lengths(source) if n_lines > FAIL_FUNCTION]
    except ValueError as error:
        return [f"{path}: functions cannot be counted: {error}"]


def check(root, paths):
    """Returns (failures, warnings), each a list of lines."""
    failures, warnings = [], []
    for path in paths:
        if not CODE.search(path) or EXEMPT.search(path) or not (root / path).is_file():
            continue
        source = (root / path).read_bytes()
        n_lines = source.count(b"\n")
        if HAS_BRACES.search(path):
            failures += check_functions(path, source.decode())
        if n_lines > FAIL:
            failures.append(f"{path}: {n_lines} lines, at most {FAIL}: split it")
        elif n_lines > WARN:
            warnings.append(f"{path}: {n_lines} lines, more than {WARN}: is it about one thing?")
    return failures, warnings


EXAMPLE = r'''
#include "it's.h"
#define SUM(a, b) \
  ((a) + (b))
namespace infer {
struct Table : Base {
 public:
  explicit Table(int n) : n_(n), rows_{1} {
    if (n > 1'000) text_ = "}";  // } is not a brace
  }
  int n_, rows_[2];
};
const Row kRows[] = {
    {"first", [](int n) {
       return n ? R"({"} )" : "{";
     }},
    {"second", nullptr},
};
template <typename T>
auto find(const std::vector<T>& all)
    -> std::optional<T> {
  struct Local {
    int n() { return 0; }
  };
  for (const T& one : all) { if (one == '{') return [&] { return one; }(); }
  return {};
}
}  // namespace infer
layout(binding = 0) buffer Out { float y[]; };
void main() { y[0] = 0.0; }
'''


def self_test_functions():
    found = sorted(function_lengths(EXAMPLE))
    assert found == [(2, 1), (3, 2), (8, 3), (14, 3), (19, 9), (30, 1)], found
    for source in ("void f() {\n", "void f() {}\n}\n"):
        assert check_functions("a.cpp", source), source
    body = "void f() {\n" + "  g();\n" * 58
    assert not check_functions("a.cpp", body + "}\n")
    assert check_functions("a.cpp", body + "  g();\n}\n")[0].startswith("a.cpp:1: 61 lines in a function"), body


def self_test():
    self_test_functions()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        sizes = {"a.cpp": 801, "b.cpp": 800, "c.h": 500, "unicode_data.cpp": 5000, "text.md": 5000}
        for name, n_lines in sizes.items():
            (root / name).write_text("\n" * n_lines)
        failures, warnings = check(root, sorted(p.name for p in root.iterdir()))
        assert len(failures) == 1 and failures[0].startswith("a.cpp: 801"), failures
        assert len(warnings) == 1 and warnings[0].startswith("b.cpp"), warnings


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(__file__).resolve().parents[1]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    paths = [p for p in listing.decode().split("\0") if p]
    failures, warnings = check(root, paths)
    for line in warnings:
        print(f"note: {line}")
    for line in failures:
        print(line)
    print(f"file sizes: {len(paths)} files, {len(failures)} too long")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
