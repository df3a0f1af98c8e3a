#!/usr/bin/env python3
"""Checks that no tracked file names a folder on someone's machine.

    check_paths.py            prints each place as FILE:LINE: TEXT, exit code 1 if there are any
    check_paths.py --self-test
"""

import pathlib
import re
import subprocess
import sys

# Each contains a character class, so that this file does not match itself.
PERSONAL = re.compile(rb"(?<![a-z0-9_.-])(/wor[k]/|/tm[p]/bash_jobs|/hom[e]/\w|/roo[t]/|/User[s]/\w)")


def personal_lines(content):
    """(line number, line) of every personal path; nothing in binary files."""
    if b"\0" in content:
        return []
    return [(n, line) for n, line in enumerate(content.splitlines(), 1) if PERSONAL.search(line)]


def self_test():
    for text in (b"-I/wor" + b"k/main", b"see /hom" + b"e/ann/x", b'"/tm' + b'p/bash_jobs.0"', b"/roo" + b"t/.cache"):
        assert len(personal_lines(b"first\n" + text)) == 1, text
    for text in (b"https://host/wor" + b"k/x", b"frame" + b"work/x", b"../shared", b"/tm" + b"p/out",
                 b"\0/hom" + b"e/ann"):
        assert not personal_lines(text), text


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(__file__).resolve().parents[1]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    paths = [p for p in listing.decode().split("\0") if p and (root / p).is_file()]
    n_found = 0
    for path in paths:
        for number, line in personal_lines((root / path).read_bytes()):
            n_found += 1
            print(f"{path}:{number}: {line.decode('utf-8', 'replace').strip()[:160]}")
    print(f"personal paths: {len(paths)} files, {n_found} found")
    return 1 if n_found or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
