#!/usr/bin/env python3
"""A file is about one thing: past 500 lines it is named, past 800 it fails. Data tables (*_data.*) are exempt.

    check_file_sizes.py            checks the files git tracks
    check_file_sizes.py --self-test
"""

import pathlib
import re
import subprocess
import sys
import tempfile

WARN, FAIL = 500, 800
CODE = re.compile(r"\.(c|cc|cpp|h|hpp|inc|cu|cuh|comp|glsl|py|mjs|js|sh|cmake)$|(^|/)(Makefile|CMakeLists\.txt)$")
EXEMPT = re.compile(r"_data\.[^/]*$")


def check(root, paths):
    """Returns (failures, warnings), each a list of lines."""
    failures, warnings = [], []
    for path in paths:
        if not CODE.search(path) or EXEMPT.search(path) or not (root / path).is_file():
            continue
        n_lines = (root / path).read_bytes().count(b"\n")
        if n_lines > FAIL:
            failures.append(f"{path}: {n_lines} lines, at most {FAIL}: split it")
        elif n_lines > WARN:
            warnings.append(f"{path}: {n_lines} lines, more than {WARN}: is it about one thing?")
    return failures, warnings


def self_test():
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
