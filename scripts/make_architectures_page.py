#!/usr/bin/env python3
"""Writes docs/architectures.md from what the program says about itself and about the reference models.

    make_architectures_page.py build/infer ../shared/goldens/arch tests/conformance/support.txt docs/architectures.md

Names come from `infer inspect --architectures`, caches and operations from `infer plan` of an architecture's reference
models, and what each backend computes from the support table of the conformance tests. Standard library only.
"""

import collections
import json
import pathlib
import subprocess
import sys

PAGE = """# Architectures

`infer` reads GGUF files of these architectures (`general.architecture`; `infer inspect FILE` shows it). A file with a
hyper-parameter or tensor that is not implemented is refused by name, never run wrongly. Written by
`scripts/make_architectures_page.py`.

- **Caches**: what a sequence keeps. *full*: keys and values of every position; *window*: those that a later token can
  still see; *latent*: one compressed vector per position; *state*: a recurrent state of fixed size. An encoder keeps
  nothing.
- **On a GPU (Vulkan)**: the operations that the CPU computes for a layer on the GPU. Without one, the GPU computes all.

A mixture of experts can keep its experts on the CPU with `--cpu-moe`. [performance.md](performance.md) says how fast
the shapes measured so far are.

| Architecture | Models | Caches | On a GPU, the CPU computes |
| --- | --- | --- | --- |
"""


def output_of(*command):
    return json.loads(subprocess.run([str(part) for part in command], check=True, capture_output=True).stdout)


def supported_by(backend, table):
    """The names of the operations in the section of a backend."""
    section = table.split(f"[{backend}]\n")[1].split("\n[")[0]
    return {line.split(":")[0] for line in section.splitlines() if ":" in line}


def plans(binary, folder):
    """{architecture: the plans of its reference models}."""
    found = collections.defaultdict(list)
    known = {entry["name"] for entry in output_of(binary, "inspect", "--architectures", "--json")["architectures"]}
    for path in sorted(folder.glob("*.json")):
        recorded = json.loads(path.read_text())
        if recorded["architecture"] in known:
            plan = output_of(binary, "plan", "-m", path.with_suffix(".gguf"), "--device", "cpu", "--json")
            plan["encodes"] = "embedding" in recorded
            found[recorded["architecture"]].append(plan)
    return found


def main():
    binary, folder, table, page = sys.argv[1:]
    on_gpu = supported_by("vulkan", pathlib.Path(table).read_text())
    by_name = plans(binary, pathlib.Path(folder))
    rows = []
    for entry in output_of(binary, "inspect", "--architectures", "--json")["architectures"]:
        its_plans = by_name[entry["name"]]
        kinds = {cache["kind"] for plan in its_plans for cache in plan["caches"]}
        caches = ", ".join(kind for kind in ("full", "window", "latent", "state") if kind in kinds)
        if all(plan["encodes"] for plan in its_plans):
            caches = "none (encoder)"
        on_cpu = sorted({name for plan in its_plans for name in plan["operations"]} - on_gpu)
        rows.append(f"| {entry['name']} | {entry['models']} | {caches} | {', '.join(on_cpu)} |\n")
    pathlib.Path(page).write_text(PAGE + "".join(rows))


main()
