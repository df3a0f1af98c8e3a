#!/usr/bin/env python3
"""Adds up the tests of one or more CTest reports.

    count_tests.py [--skip "NAME: REASON"] PLATFORM=REPORT.xml ...
    count_tests.py --self-test

Every test program ends with `NAME: P passed, F failed, S skipped` and reports skips as `skipped: NAME: REASON`.
A program that crashes or ends without that line counts as one failed test. The last line printed
is `N passed, N failed, N skipped`; the exit code is 1 if any failed or none passed.
"""

import re
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

COUNTS = re.compile(r"^(\S+): (\d+) passed, (\d+) failed, (\d+) skipped$", re.MULTILINE)
SKIPPED = re.compile(r"^skipped: (.+)$", re.MULTILINE)


def count_program(name, ended_well, output):
    """Returns (passed, failed, skipped, reason the program as a whole failed or None)."""
    lines = COUNTS.findall(output)
    passed, failed, skipped = (sum(int(line[i]) for line in lines) for i in (1, 2, 3))
    if not lines:
        return 0, 1, 0, "printed no count of its tests" if ended_well else "ended badly, without a count of its tests"
    if not ended_well and failed == 0:
        return passed, 1, skipped, "ended badly after its count"
    return passed, failed, skipped, None


def read_report(path):
    """Yields (name, ended well, output) of every program of a report."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        yield path, False, str(error)
        return
    for case in root.iter("testcase"):
        yield case.get("name"), case.get("status") == "run", case.findtext("system-out") or ""


def count(reports, outside_skips):
    """Prints the table; returns the totals (passed, failed, skipped)."""
    totals = [0, 0, len(outside_skips)]
    skips, failures = list(outside_skips), []
    print()
    for platform, path in reports:
        for name, ended_well, output in read_report(path):
            passed, failed, skipped, reason = count_program(name, ended_well, output)
            for i, value in enumerate((passed, failed, skipped)):
                totals[i] += value
            print(f"{platform} {name}: {passed} passed, {failed} failed, {skipped} skipped")
            skips += [f"{platform} {text}" for text in SKIPPED.findall(output)]
            if failed:
                failures.append(f"{platform} {name}: {reason or f'{failed} failed'}")
    for title, lines in (("Skipped:", skips), ("Failed:", failures)):
        if lines:
            print("\n  ".join([title, *lines]))
    print("{} passed, {} failed, {} skipped".format(*totals), flush=True)
    return totals


def self_test():
    good = "blah\nskipped: wiki: no file\nunit_x: 3 passed, 0 failed, 1 skipped\n"
    assert count_program("x", True, good) == (3, 0, 1, None)
    assert count_program("x", False, good)[1] == 1
    assert count_program("x", True, "no line")[1] == 1
    assert count_program("x", False, "x: 3 passed, 2 failed, 0 skipped")[:3] == (3, 2, 0)
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
        report.write('<testsuite><testcase name="a" status="run">'
                     '<system-out>a: 2 passed, 0 failed, 0 skipped</system-out></testcase>'
                     '<testcase name="b" status="fail"/><testcase name="c" status="notrun"/></testsuite>')
        report.flush()
        assert count([("here", report.name)], ["arm64: none"]) == [2, 2, 1]
    assert count([("here", report.name)], []) == [0, 1, 0], "a report that is not there is a failure"


def main(arguments):
    if arguments == ["--self-test"]:
        self_test()
        return 0
    reports, skips = [], []
    while arguments:
        argument = arguments.pop(0)
        if argument == "--skip":
            skips.append(arguments.pop(0))
        else:
            reports.append(argument.split("=", 1))
    passed, failed, _ = count(reports, skips)
    return 0 if passed > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
