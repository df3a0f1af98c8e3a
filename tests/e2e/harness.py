"""Shared by the end-to-end tests: running the program, checking its output, counting.

A test file defines functions marked with @test and ends with `main()`. Only the standard library is used. A failure
prints the command that reruns only that test:

    from harness import expect, main, run, shared, test

    @test
    def version_is_printed():
        result = run("--version")
        expect(result.code == 0, "exit code", result)

    main()

The program is $INFER_BINARY, else build/infer. Reference data is in $INFER_SHARED, else ../shared.
"""

import functools
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("INFER_BINARY", str(SOURCE_DIR / "build" / "infer"))

# How many seconds a program may take before it counts as hung: an overloaded machine is slow, and no test measures
# speed.
PATIENCE = 900

# A test that names no device uses the CPU, even on a machine with a GPU.
os.environ.setdefault("INFER_DEVICE", "cpu")

_tests = []


class Failure(Exception):
    """An expectation that did not hold."""


class Skip(Exception):
    """The test cannot run here; the message says why."""


class Result:
    """The result of a finished program: exit code (negative: the signal that ended it), output as text and as bytes."""

    def __init__(self, command, code, out_bytes, err_bytes):
        self.command = command
        self.code = code
        self.out_bytes = out_bytes
        self.out = out_bytes.decode("utf-8", "replace")
        self.err = err_bytes.decode("utf-8", "replace")

    def __str__(self):
        command = " ".join(shlex.quote(str(part)) for part in self.command)
        return f"$ {command}\n-> {self.code}\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"


def test(function):
    """Marks a function as a test; its name is the test's name."""
    _tests.append(function)
    return function


def test_each(*values):
    """Marks a function of one argument as a test per value, named `function.value`."""
    def mark(function):
        for value in values:
            one = functools.partial(function, value)
            one.__name__ = f"{function.__name__}.{value}"
            _tests.append(one)
        return function
    return mark


def run(*arguments, stdin="", env=None, timeout=PATIENCE, program=None):
    """Runs the program until it ends, with `stdin` (str or bytes) and extra environment; a timeout fails the test."""
    command = [program or BINARY, *map(str, arguments)]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=timeout, check=False,
                              env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{shlex.join(command)} did not end within {timeout} s") from error
    return Result(command, done.returncode, done.stdout, done.stderr)


def pauses(seconds, pause):
    """Sleeps between its values until it has slept that long. A clock would also count the time in which a busy machine let
    neither the test nor the program run."""
    for _ in range(round(seconds / pause)):
        yield
        time.sleep(pause)


class Background:
    """A program that keeps running, such as a server; leaving the `with` block interrupts it and waits for its end.

    Afterwards `code` is its exit code and `err` its whole standard error.
    """

    def __init__(self, *arguments, env=None):
        self.command = [BINARY, *map(str, arguments)]
        self._env = {**os.environ, **(env or {})}
        self.code = None
        self.err = ""

    def __enter__(self):
        # A file, not a pipe: nobody reads it while the program runs, and a full pipe would block the program.
        self._log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
                                        env=self._env)
        return self

    def wait_until(self, ready, timeout=PATIENCE):
        """Polls `ready()` until it is true; fails if the program ends first or the time is up."""
        for _ in pauses(timeout, 0.05):
            ended = self.process.poll() is not None  # asked first: what it did just before its end counts
            if ready():
                return
            if ended:
                raise Failure(f"{shlex.join(self.command)} ended with {self.process.returncode}: {self.log()}")
        raise Failure(f"{shlex.join(self.command)} was not ready after {timeout} s: {self.log()}")

    def log(self):
        """What it has printed so far, both streams."""
        return os.pread(self._log.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            self.process.wait()
            message = f"{shlex.join(self.command)} did not end within {PATIENCE} s of an interrupt: {self.log()}"
            raise Failure(message) from error
        finally:
            self.err = self.log()
            self._log.close()


def expect(condition, what, detail=""):
    """Fails the test unless the condition holds; `detail` (for example a Result) is printed with the failure."""
    if not condition:
        raise Failure(f"{what}\n{detail}" if detail else what)


def expect_equal(found, expected, what="value"):
    expect(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def skip(reason):
    """Ends the test as skipped."""
    raise Skip(reason)


def shared_folder():
    """The folder of reference data, or None if it is missing."""
    folder = pathlib.Path(os.environ.get("INFER_SHARED", SOURCE_DIR.parent / "shared"))
    return folder if (folder / "goldens").is_dir() else None


def shared(*parts):
    """A path below the folder of reference data; skips the test if that folder is missing."""
    folder = shared_folder() or skip("no reference data (../shared or $INFER_SHARED)")
    return folder.joinpath(*parts)


def main():
    """Runs the tests named on the command line, or all; prints the counts and exits with 1 if any failed.

    INFER_TEST_SHARE=2/8: only every eighth of them, from the second on.
    """
    script = pathlib.Path(sys.argv[0])
    named = [t for t in _tests if len(sys.argv) == 1 or t.__name__ in sys.argv[1:]]
    share, shares = map(int, os.environ.get("INFER_TEST_SHARE", "1/1").split("/"))
    chosen = named[share - 1::shares]
    passed = failed = skipped = 0
    if not os.access(BINARY, os.X_OK):
        print(f"no program at {BINARY} (make build makes it, $INFER_BINARY names another)")
        named, chosen, failed = [], [], 1
    for one in chosen:
        try:
            one()
            passed += 1
        except Skip as reason:
            skipped += 1
            print(f"skipped: {script.stem}.{one.__name__}: {reason}")
        except Exception as error:  # any error of a test is a failure of that test, not of the others
            failed += 1
            text = str(error) if isinstance(error, Failure) else traceback.format_exc()
            print(f"FAILED {one.__name__}: {text}\nrerun: INFER_BINARY={BINARY} python3 {script} {one.__name__}")
    print(f"{script.stem}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    sys.exit(1 if failed or not named else 0)
