#!/usr/bin/env python3
"""Checks that a program for Linux needs nothing but glibc, and no newer one than named.

    check_program.py PROGRAM [--glibc 2.31]      prints what it needs, exit code 1 if that is too much
    check_program.py --self-test
"""

import argparse
import re
import subprocess
import sys

GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt|ld-linux[\w-]*)\.so\.\d+")


def needed(dynamic_section):
    """The shared objects that `readelf -d` names."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic_section)


def glibc_versions(symbols):
    """The versions of glibc's symbols that `objdump -T` lists as undefined, as tuples."""
    found = set()
    for line in symbols.splitlines():
        match = re.search(r"\*UND\*.*\(?GLIBC_(\d[\d.]*)", line)
        if match:
            found.add(tuple(map(int, match[1].split("."))))
    return found


def problems(objects, versions, newest):
    result = [f"needs {name}, which is not part of glibc" for name in objects if not GLIBC.fullmatch(name)]
    result += [f"needs glibc {'.'.join(map(str, version))}" for version in sorted(versions) if version > newest]
    return result


def self_test():
    section = " 0x01 (NEEDED)  Shared library: [libc.so.6]\n 0x01 (NEEDED)  Shared library: [libssl.so.3]\n"
    symbols = ("0000 DF *UND* 0000 (GLIBC_2.2.5) memcpy\n0000 DF *UND* 0000 GLIBC_2.34 pthread_create\n"
               "0000 g DF .text 0000 Base main\n")
    assert needed(section) == ["libc.so.6", "libssl.so.3"]
    assert glibc_versions(symbols) == {(2, 2, 5), (2, 34)}
    assert problems(["libc.so.6", "ld-linux-aarch64.so.1"], {(2, 2, 5), (2, 31)}, (2, 31)) == []
    assert len(problems(["libssl.so.3"], {(2, 34)}, (2, 31))) == 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--glibc", default="2.31")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return 0

    def output(*command):
        return subprocess.run([*command, options.program], stdout=subprocess.PIPE, text=True, check=True).stdout

    objects = needed(output("readelf", "-dW"))
    versions = glibc_versions(output("objdump", "-T"))
    found = problems(objects, versions, tuple(map(int, options.glibc.split("."))))
    newest = ".".join(map(str, max(versions, default=(0,))))
    print(f"{options.program}: needs {' '.join(objects)}; glibc {newest}")
    for problem in found:
        print(f"{options.program}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
