"""No function or variable is defined twice in the libraries of the program: the linker would take either, without a
word, for callers of both."""

import collections
import pathlib
import re
import shutil
import subprocess

from harness import BINARY, expect, main, skip, test


def definitions(library):
    """(symbol, object, whether another definition may take its place) of all that an archive defines."""
    out = subprocess.run(["nm", "--defined-only", "-A", library], capture_output=True, text=True, check=True).stdout
    for place, kind, name in re.findall(r"^(.+):[0-9a-f]+ ([TDRBWVu]) (.+)$", out, re.M):
        yield name, place.removeprefix(f"{library.parent}/"), kind in "WVu"


@test
def nothing_is_defined_twice():
    libraries = sorted(pathlib.Path(BINARY).parent.glob("**/lib*.a"))
    if not libraries or not shutil.which("nm"):
        skip("the libraries of the build are not beside the program, or nm is missing")
    places = collections.defaultdict(lambda: ([], []))  # (the only one, one of several equal ones)
    for library in libraries:
        if "stand_in" not in library.name:  # the CUDA backend a second time, for tests
            for name, place, shared in definitions(library):
                places[name][shared].append(place)
    expect(len(places) > 1000, f"found {len(places)} symbols")
    wrong = [f"{name} in {', '.join(own + shared)}"
             for name, (own, shared) in places.items() if len(own) > 1 or own and shared]
    expect(not wrong, "defined once: " + "; ".join(wrong[:20]))


main()
