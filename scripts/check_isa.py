#!/usr/bin/env python3
"""Checks which instruction sets the object files of a build use.

The program must start on any machine of its architecture, so only objects of `kernels_<isa>.cpp` may contain instructions
beyond the baseline. Such an object may export nothing but its one table: an inline function shared with other
objects would be compiled with that instruction set, and the linker may use that copy everywhere.

    check_isa.py BUILD_DIR         exit code 1 when an object breaks a rule, or if there are no objects
    check_isa.py --self-test       compiles objects that break each rule and expects them to be found
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

# The levels whose units get flags beyond the baseline of their architecture (scalar and neon get none).
KERNELS = re.compile(r"^kernels_(avx2|avxvnni|avx512|avx512vnni|dotprod|i8mm)(_\w+)?\.")
# In 64-bit code a first byte of C4 or C5 is always VEX, and 62 always EVEX: AVX, AVX2, FMA, BMI, AVX-512.
X86_LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)$")
X86_PREFIXES = {"26", "2e", "36", "3e", "64", "65", "67"}
VECTOR_ENCODINGS = {"c4", "c5", "62"}
ARM_BEYOND_BASELINE = re.compile(r"\t(sdot|udot|usdot|sudot|smmla|ummla|usmmla|bfdot|bfmmla|fmlal2?|ptrue|whilelo)\t")
# The address of the C++ exception handler: the same data in every object that may unwind.
HARMLESS = {"DW.ref.__gxx_personality_v0"}
INLINE_DATA = "u"  # what nm calls inline constants: they hold no instructions


def disassemble(path, objdump):
    return subprocess.run([objdump, "-d", "-w", str(path)], stdout=subprocess.PIPE, check=True, text=True).stdout


def beyond_baseline(listing, machine):
    """The first instruction beyond the baseline in an objdump listing, or None."""
    for line in listing.splitlines():
        if machine == "aarch64":
            if ARM_BEYOND_BASELINE.search(line):
                return line.strip()
        elif match := X86_LINE.match(line):
            code = match[2].split()
            while code and code[0] in X86_PREFIXES:
                code.pop(0)
            if code and code[0] in VECTOR_ENCODINGS:
                return f"{match[1]}: {match[3]}"
    return None


def exported(path, nm):
    """(letter, name) of every symbol, except inline data, that an object defines for others."""
    command = [nm, "--defined-only", "--extern-only", str(path)]
    listing = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    symbols = [line.split()[-2:] for line in listing.splitlines() if line.strip()]
    return [(letter, name) for letter, name in symbols if name not in HARMLESS and letter != INLINE_DATA]


def machine_of(path):
    """The architecture in an ELF header (e_machine), None for other files."""
    with path.open("rb") as file:
        header = file.read(20)
    machine = int.from_bytes(header[18:20], "little") if header[:4] == b"\x7fELF" else None
    return {62: "x86_64", 183: "aarch64"}.get(machine)


def check_object(path):
    """Violations of one object file as lines without its name."""
    machine = machine_of(path)
    if machine is None:
        return ["not an object file of a known architecture"]
    prefix = "aarch64-linux-gnu-" if machine == "aarch64" and os.uname().machine != "aarch64" else ""
    if not KERNELS.match(path.name):
        found = beyond_baseline(disassemble(path, prefix + "objdump"), machine)
        return [f"instruction beyond the baseline: {found}"] if found else []
    symbols = exported(path, prefix + "nm")
    tables = [name for letter, name in symbols if letter in "RD"]
    violations = [f"exports more than its table: {letter} {name}" for letter, name in symbols if letter not in "RD"]
    if len(tables) > 1:
        violations.append(f"exports more than one table: {', '.join(tables)}")
    return violations


def check(folder):
    violations, n_kernels = [], 0
    objects = sorted(folder.rglob("*.o"))
    for path in objects:
        n_kernels += KERNELS.match(path.name) is not None
        violations += [f"{path.relative_to(folder)}: {line}" for line in check_object(path)]
    return violations, len(objects), n_kernels


def self_test():
    table = "extern const int table[1]; constinit const int table[1] = {1};\n"
    loop = "void f(float* p) { for (int i = 0; i < 64; ++i) p[i] = p[i] * 3.0f; }\n"
    local = "namespace { " + loop.replace("void", "[[gnu::used]] void") + "}\n"
    shared = "inline int g(int x) { return x * x; }\nnamespace { [[gnu::used]] int (*h)(int) = &g; }\n"
    cases = (  # file name, flags, source, expected to be found
        ("plain.cpp", ["-O2"], loop, False),
        ("vex.cpp", ["-O3", "-mavx2"], loop, True),
        ("evex.cpp", ["-O3", "-mavx512f", "-mprefer-vector-width=512"], loop, True),
        ("bmi.cpp", ["-O2", "-mbmi2"], "unsigned long f(unsigned long a, int n) { return a << n; }\n", True),
        ("kernels_scalar.cpp", ["-O3", "-mavx2"], table + loop, True),
        ("kernels_avx2.cpp", ["-O3", "-mavx2"], table + local, False),
        ("kernels_avx512.cpp", ["-O3", "-mavx512f"], table + loop, True),
        ("kernels_avxvnni.cpp", ["-O3", "-mavx2"], table + shared, True),
        ("kernels_avx512vnni.cpp", ["-O2"], table + table.replace("table", "other"), True),
    )
    if os.uname().machine == "x86_64":
        with tempfile.TemporaryDirectory() as folder:
            for name, flags, source, expected in cases:
                path = pathlib.Path(folder) / name
                path.write_text(source)
                built = path.with_name(name + ".o")
                subprocess.run(["g++", "-std=c++20", "-fPIC", *flags, "-c", str(path), "-o", str(built)], check=True)
                assert bool(check_object(built)) == expected, (name, check_object(built))
    assert beyond_baseline("   0:\t4e829420 \tsdot\tv0.4s, v1.16b, v2.16b\n", "aarch64")
    assert not beyond_baseline("   0:\t4e22dc20 \tfmul\tv0.4s, v1.4s, v2.4s\n", "aarch64")


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    violations, n_objects, n_kernels = check(pathlib.Path(arguments[0]))
    print("\n".join(violations), end="\n" if violations else "")
    print(f"instruction sets: {n_objects} objects, {n_kernels} of them with a set of their own, "
          f"{len(violations)} violations")
    return 1 if violations or n_objects == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
