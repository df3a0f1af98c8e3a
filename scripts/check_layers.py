#!/usr/bin/env python3
"""Checks which folder includes which.

    ggml-like  <-  backends  <-  src/engine  <-  src/server  <-  tools  <-  src/main.cpp
        ^                            ^
        +--- src/model --------------+       (src/model also reads src/text/vocabulary.h)
        +--- src/text: only ggml-like/error.h, message.h and bytes_text.h
        +--- src/hub (below tools): these and printable.h
    src/tls: nothing of ours; for src/hub and src/server

A backend's folder may include ggml-like and itself. Only backends/registry.cpp may include all; layers above backends/
may include only the files directly in it. Quoted includes are relative to the root and must exist; the headers of
instruction sets and GPUs may be used only below backends/; there are no cycles.

    check_layers.py [ROOT]        prints each violation as FILE:LINE: REASON, exit code 1 if there are any
    check_layers.py --self-test
"""

import pathlib
import re
import sys
import tempfile

FOLDERS = ("ggml-like", "backends", "src", "tools")
SUFFIXES = {".h", ".hpp", ".inc", ".cpp", ".cu", ".cuh"}
QUOTED = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
ANGLED = re.compile(r"^\s*#\s*include\s*<([^>]+)>")
MACHINE_HEADERS = re.compile(
    r"(\w*mmintrin|x86intrin|arm_neon|arm_sve|cpuid|cblas|cuda\w*|cooperative_groups|mma|sys/auxv|asm/hwcap)(\.h|$)"
    r"|vulkan/")

# The includes a file may use; the first pattern that matches the file's path applies.
ABOVE_BACKENDS = r"ggml-like/|backends/[^/]+$|src/model/|src/text/|src/engine/"
RULES = [(re.compile(own), re.compile(allowed)) for own, allowed in (
    (r"ggml-like/", r"ggml-like/"),
    (r"backends/registry\.cpp$", r"ggml-like/|backends/"),
    (r"backends/[^/]+$", r"ggml-like/|backends/[^/]+$"),
    (r"backends/", r"ggml-like/"),  # and its own folder, see `allowed`
    (r"src/text/", r"ggml-like/(bytes_text|error|message)\.h$|src/text/"),
    (r"src/hub/", r"ggml-like/(bytes_text|error|message|printable)\.h$|src/hub/|src/tls/"),
    (r"src/tls/", r"src/tls/"),
    (r"src/model/", r"ggml-like/|src/text/vocabulary\.h$|src/model/"),
    (r"src/engine/", ABOVE_BACKENDS),
    (r"src/server/", ABOVE_BACKENDS + r"|src/server/|src/tls/"),
    (r"tools/", ABOVE_BACKENDS + r"|src/server/|src/hub/|tools/"),
    (r"src/main\.cpp$", ABOVE_BACKENDS + r"|src/server/|tools/"),
)]


def allowed(path, included):
    if path.startswith("backends/") and path.count("/") > 1:
        own_folder = "/".join(path.split("/")[:2]) + "/"
        if included.startswith(own_folder):
            return True
    for own, may in RULES:
        if own.match(path):
            return may.match(included) is not None
    return False


def find_cycle(graph):
    """One include cycle as a list of files, or None. `graph`: file -> files it includes."""
    done, path = set(), []
    for start in sorted(graph):
        stack = [(start, iter(sorted(graph[start])))] if start not in done else []
        path = [start]
        while stack:
            file, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(file)
                stack.pop()
                path.pop()
            elif following in path:
                return path[path.index(following):] + [following]
            elif following not in done and following in graph:
                stack.append((following, iter(sorted(graph[following]))))
                path.append(following)
    return None


def check(root):
    violations, graph = [], {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            graph[path] = set()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if match := QUOTED.match(line):
                    included = match[1]
                    if not (root / included).is_file():
                        violations.append(f'{path}:{number}: "{included}" is not a file relative to the root')
                    elif not allowed(path, included):
                        violations.append(f'{path}:{number}: must not include "{included}"')
                    else:
                        graph[path].add(included)
                elif path.startswith("backends/"):
                    continue
                elif (match := ANGLED.match(line)) and MACHINE_HEADERS.match(match[1]):
                    violations.append(f"{path}:{number}: <{match[1]}> belongs below backends/")
    if cycle := find_cycle(graph):
        violations.append(f"{cycle[0]}:1: include cycle: {' -> '.join(cycle)}")
    return violations, len(graph)


def self_test():
    def violations_of(files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, included in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("".join(f"#include {name}\n" for name in included))
            return check(root)[0]

    leaves = {name: [] for name in (
        "ggml-like/error.h", "ggml-like/tensor.h", "backends/registry.h", "backends/cpu/cpu.h", "backends/cuda/cuda.h",
        "src/hub/h.h", "src/model/m.h", "src/text/vocabulary.h", "src/text/t.h", "src/engine/e.h", "src/server/s.h", "tools/run.h")}
    good = (("ggml-like/a.cpp", '"ggml-like/tensor.h"'), ("backends/registry.cpp", '"backends/cuda/cuda.h"'),
            ("backends/cpu/a.cpp", '"backends/cpu/cpu.h"'), ("backends/cpu/a.cpp", "<immintrin.h>"),
            ("src/model/a.cpp", '"src/text/vocabulary.h"'), ("src/text/a.cpp", '"ggml-like/error.h"'),
            ("src/engine/a.cpp", '"backends/registry.h"'), ("src/engine/a.cpp", '"src/text/t.h"'),
            ("tools/a.cpp", '"src/server/s.h"'), ("tools/a.cpp", '"src/hub/h.h"'),
            ("src/hub/a.cpp", '"ggml-like/error.h"'), ("src/main.cpp", '"tools/run.h"'))
    bad = (("ggml-like/a.cpp", '"backends/registry.h"'), ("backends/cpu/a.cpp", '"backends/cuda/cuda.h"'),
           ("backends/registry.h", '"backends/cpu/cpu.h"'), ("src/model/a.cpp", '"backends/registry.h"'),
           ("src/model/a.cpp", '"src/text/t.h"'), ("src/text/a.cpp", '"ggml-like/tensor.h"'),
           ("src/engine/a.cpp", '"backends/cpu/cpu.h"'), ("src/engine/a.cpp", '"src/server/s.h"'),
           ("src/server/a.cpp", '"tools/run.h"'), ("src/server/a.cpp", '"src/hub/h.h"'),
           ("src/hub/a.cpp", '"ggml-like/tensor.h"'), ("src/hub/a.cpp", '"src/text/t.h"'), ("src/engine/a.cpp", "<immintrin.h>"),
           ("tools/a.cpp", "<cuda_runtime.h>"), ("tools/a.cpp", '"run.h"'),
           ("src/other/a.cpp", '"ggml-like/error.h"'), ("src/text/t.h", '"src/text/t.h"'))
    for path, included in good:
        assert not violations_of({**leaves, path: [included]}), (path, included)
    for path, included in bad:
        assert len(violations_of({**leaves, path: [included]})) == 1, (path, included)
    ring = {f"ggml-like/{one}.h": [f'"ggml-like/{other}.h"'] for one, other in ("ab", "bc", "ca")}
    assert any("cycle" in line for line in violations_of(ring))


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[1]
    violations, n_files = check(root)
    print("\n".join(violations), end="\n" if violations else "")
    print(f"layers: {n_files} files, {len(violations)} violations")
    return 1 if violations or n_files == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
