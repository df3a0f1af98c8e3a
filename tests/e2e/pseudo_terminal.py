"""A program on a pseudo-terminal: typing, waiting for what appears, resizing.

The transcript is kept with and without terminal sequences. Waits have limits far beyond what is needed, so that a
loaded machine does not fail a test.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import BINARY, PATIENCE, Failure

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]|\x07|\x0f")


def plain(text):
    """Text without terminal sequences and carriage returns."""
    return _SEQUENCE.sub("", text).replace("\r", "")


class Terminal:
    """Runs the program on its own terminal; leaving the `with` block ends it."""

    def __init__(self, *arguments, rows=30, columns=100, env=None, stdout=None):
        self.command = [BINARY, *map(str, arguments)]
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "INFER_HISTORY": "", **(env or {})}
        for name in ("VISUAL", "EDITOR", "NO_COLOR"):
            if name not in (env or {}):
                environment.pop(name, None)
        self._main, side = pty.openpty()
        self.resize(rows, columns, notify=False)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(side, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(self.command, stdin=side, stdout=stdout or side, stderr=side, env=environment,
                                        preexec_fn=take_terminal, close_fds=True)
        os.close(side)
        self.raw = b""
        self.screen = None  # a Screen that shows the output and answers the program's queries
        self.holds_replies = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._seen = 0  # characters of the plain transcript already matched by expect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)

    def resize(self, rows, columns, notify=True):
        if notify and self.screen:
            self._read(0)
            self.screen.resize(rows, columns)
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if notify:
            self.process.send_signal(signal.SIGWINCH)

    def signal_resize(self):
        """Signals a resize without one, and reads what there is to read."""
        self.process.send_signal(signal.SIGWINCH)
        self._read(0)

    @property
    def text(self):
        """The transcript so far, without terminal sequences."""
        return plain(self.raw.decode("utf-8", "replace"))

    def _read(self, seconds):
        ready, _, _ = select.select([self._main], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:  # the program has ended
            data = b""
        self.raw += data
        if self.screen:
            self.screen.feed(self._decoder.decode(data))
            self._reply()
        return bool(data)

    def _reply(self):
        if self.screen.replies and not self.holds_replies:
            os.write(self._main, self.screen.replies)
            self.screen.replies = b""

    def hold_replies(self):
        """The screen's replies to the program wait until release_replies()."""
        self.holds_replies = True

    def release_replies(self):
        self.holds_replies = False
        self._reply()

    def type(self, text):
        """Types text unchanged; a line ends with \\r. Reads at the same time, so that nothing blocks."""
        data = text.encode() if isinstance(text, str) else text
        while data:
            _, ready, _ = select.select([], [self._main], [], 0.05)
            if ready:
                # In few pieces: the program takes a paste that pauses for seconds as complete.
                data = data[os.write(self._main, data[:16384]):]
            self._read(0)

    def interrupt_until(self, text):
        """Sends interrupts without a pause until the text appears or the program ends."""
        while text not in self.text[self._seen:] and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self._read(0.0005)

    def line(self, text):
        self.type(text + "\r")

    def expect(self, pattern, timeout=PATIENCE):
        """Waits until the pattern appears after the last match; returns the match."""
        deadline = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.text[self._seen:], re.DOTALL)
            if found:
                self._seen += found.end()
                return found
            if time.monotonic() > deadline:
                raise Failure(f"{pattern!r} did not appear within {timeout} s after\n{self.text[-3000:]}")
            if not self._read(0.2) and self.process.poll() is not None and not self._read(0):
                raise Failure(f"the program ended ({self.process.returncode}) before {pattern!r} appeared:\n"
                              f"{self.text[-3000:]}")

    def until(self, holds, describe, timeout=PATIENCE):
        """Reads until `holds()` is true; on a timeout, `describe()` says what is missing."""
        deadline = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > deadline:
                raise Failure(f"within {timeout} s: {describe()}")
            self._read(0.2)

    def wait(self, timeout=PATIENCE):
        """Waits for the program to end; returns its exit code."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                raise Failure(f"the program did not end within {timeout} s:\n{self.text[-3000:]}")
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode
