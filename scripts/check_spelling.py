#!/usr/bin/env python3
"""Checks that codespell finds no misspelling in tracked text files.

    check_spelling.py            prints each place as FILE:LINE: WORD ==> CORRECTION, exit code 1 if there are any
    check_spelling.py --self-test

scripts/spelling_ignore.txt lists words that are correct in this tree, one per line in lowercase.
"""

import pathlib
import subprocess
import sys
import tempfile

IGNORED_WORDS = pathlib.Path(__file__).resolve().parent / "spelling_ignore.txt"
# Data rather than prose: recorded results, models, images, deliberately wrong inputs.
DATA_SUFFIXES = {".gguf", ".json", ".svg"}
DATA_FOLDERS = ("tests/regress/", "tests/fuzz/")


def is_prose(path):
    return pathlib.PurePosixPath(path).suffix not in DATA_SUFFIXES and not path.startswith(DATA_FOLDERS)


def misspellings(paths, folder, ignored=IGNORED_WORDS):
    """The lines that codespell prints for these files, relative to `folder`."""
    # --config: ignore the caller's setup.cfg; --quiet-level 3: no notes on encodings and binary files.
    command = ["codespell", "--config", "/dev/null", "--quiet-level", "3"]
    if ignored:
        command += ["--ignore-words", str(ignored)]
    result = subprocess.run(command + paths, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = result.stdout.splitlines()
    # 65 (EX_DATAERR) or, in older versions, the number of findings; anything on stderr means that it failed to run.
    if result.stderr or (result.returncode != 0) != bool(lines):
        raise SystemExit(f"codespell failed with {result.returncode}: {result.stderr.strip()}")
    return lines


def self_test():
    assert is_prose("src/main.cpp") and is_prose("docs/README.md")
    assert not is_prose("tests/data/a.json") and not is_prose("tests/regress/gguf/case")
    with tempfile.TemporaryDirectory() as folder:
        bad = pathlib.Path(folder, "bad.cpp")
        # Split, so that this file does not match itself.
        bad.write_text("// First line.\n// Tokens are seper" + "ated by spaces.\n")
        pathlib.Path(folder, "good.cpp").write_text("// Tokens are separated by spaces.\n")
        lines = misspellings(["bad.cpp", "good.cpp"], folder)
        assert len(lines) == 1 and "bad.cpp:2" in lines[0], lines
        # Each ignored word would be found if it were not ignored.
        words = [word for word in IGNORED_WORDS.read_text().split() if word]
        assert words
        for word in words:
            bad.write_text(f"{word}\n")
            assert misspellings(["bad.cpp"], folder, ignored=None), f"codespell does not know '{word}': remove it"
            assert not misspellings(["bad.cpp"], folder), word


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(__file__).resolve().parents[1]
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    tracked = [p for p in listing.decode().split("\0") if p and (root / p).is_file()]
    paths = [p for p in tracked if is_prose(p) and p != IGNORED_WORDS.relative_to(root).as_posix()]
    lines = misspellings(paths, root) if paths else []
    for line in lines:
        print(line)
    print(f"spelling: {len(paths)} files, {len(lines)} found")
    return 1 if lines or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
