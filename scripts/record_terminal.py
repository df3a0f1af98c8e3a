#!/usr/bin/env python3
"""Records a short chat with the demo model as an animated SVG, docs/terminal.svg, for the README.

    usage: scripts/record_terminal.py [OUT.svg]      needs build/infer

The program runs on a pseudo-terminal, at its own speed. Keys are typed at a fixed pace, and pauses for reading are put
in between. A viewer that does not animate shows the last screen.
"""

import html
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
os.environ.setdefault("INFER_BINARY", str(ROOT / "build" / "infer"))

from pseudo_terminal import Terminal  # noqa: E402
from screen import Screen  # noqa: E402

ROWS, COLUMNS = 19, 96
MODEL = "models/infer-demo-5m-q8_0.gguf"
TYPED = ["Where does Mira live?", "Tell me about Nell.", "What is 25 + 31?", "/stats", "/exit"]
KEY, READING, END = 0.045, 1.1, 4.0  # seconds: per key, after an answer, before it starts again
LINE, WIDTH, MARGIN = 18, 8.43, 14   # pixels: height of a row, width of a character, border


class Recording:
    """What the screen shows over time: [(seconds, rows)], one entry per change."""

    def __init__(self, terminal, head):
        self.terminal, self.head = terminal, head
        self.start = time.monotonic()
        self.skipped = 0.0
        self.frames = [(0.0, (head,))]

    def now(self):
        return time.monotonic() - self.start - self.skipped

    def take(self):
        rows = (self.head, *self.terminal.screen.lines())[-ROWS:]
        if rows != self.frames[-1][1]:
            self.frames.append((self.now(), rows))

    def watch(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.terminal._read(min(0.02, max(0.0, end - time.monotonic())))
            self.take()

    def watch_until(self, text):
        """Waits for a row that begins with `text` at the end of the screen; the wait for a slow start is cut out."""
        while not (self.terminal.screen.lines() or [""])[-1].startswith(text):
            self.terminal._read(0.02)
            self.take()
        self.take()


def record():
    os.chdir(ROOT)
    with Terminal("run", "-m", MODEL, "--temp", "0", rows=ROWS, columns=COLUMNS) as terminal:
        terminal.screen = Screen(ROWS, COLUMNS)
        recording = Recording(terminal, f"$ infer {MODEL}")
        recording.watch_until(">")
        recording.watch(READING)
        for line in TYPED:
            for key in line:
                terminal.type(key)
                recording.watch(KEY)
            terminal.type("\r")
            if line == "/exit":
                break
            recording.watch(0.2)
            recording.watch_until(">")
            recording.watch(READING)
        recording.watch(0.3)
        return recording.frames, recording.now() + END


def intervals(frames, length):
    """[(row, text, from, to)]: when each row shows which text."""
    shown = []
    for row in range(ROWS):
        text, since = "", 0.0
        for seconds, rows in [*frames, (length, None)]:
            now = "" if rows is None else rows[row] if row < len(rows) else ""
            if rows is not None and now == text:
                continue
            if text:
                shown.append((row, text, since, seconds))
            text, since = now, seconds
    return shown


def draw(frames, length):
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
           f'height="{height}" role="img" aria-label="A chat with infer in a terminal">',
           "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d8dee9;"
           "white-space:pre}.p{fill:#7ec699}</style>",
           f'<rect width="100%" height="100%" rx="8" fill="#1b1f27"/>',
           f'<rect width="0" height="0"><animate id="t" attributeName="x" from="0" to="0" begin="0s;t.end" '
           f'dur="{length:.2f}s"/></rect>']
    for row, text, begin, end in intervals(frames, length):
        last = end >= length
        y = MARGIN + (row + 1) * LINE - 5
        content = html.escape(text)
        for prompt in ("$ ", "&gt; "):
            if content.startswith(prompt):
                content = f'<tspan class="p">{prompt}</tspan>{content[len(prompt):]}'
        states = []
        if last:  # visible without animation, so it must be hidden until its time
            if begin > 0:
                states.append(f'<set attributeName="visibility" to="hidden" begin="t.begin" dur="{begin:.2f}s"/>')
        else:
            states.append(f'<set attributeName="visibility" to="visible" begin="t.begin+{begin:.2f}s" '
                          f'dur="{end - begin:.2f}s"/>')
        hidden = "" if last else ' visibility="hidden"'
        out.append(f'<text x="{MARGIN}" y="{y}"{hidden} xml:space="preserve">{content}{"".join(states)}</text>')
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if len(sys.argv) > 2 or any(argument.startswith("-") for argument in sys.argv[1:]):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else ROOT / "docs" / "terminal.svg"
    if not pathlib.Path(os.environ["INFER_BINARY"]).exists():
        sys.exit("record_terminal.py: there is no build/infer; run make build first")
    frames, length = record()
    out.write_text(draw(frames, length), encoding="utf-8")
    print(f"{out}: {len(frames)} screens, {length:.1f} s, {out.stat().st_size} bytes")


main()
