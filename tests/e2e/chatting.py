"""Helpers for tests of the chat: starting one on a pseudo-terminal, sending messages and commands."""

import re

from harness import expect, run
from models import SPM, succeeded
from pseudo_terminal import Terminal

# The model's weights are random: its text is meaningless, but always the same.
MODEL = ("-m", SPM, "--chat-template", "chatml", "--temp", 0)


def chat(*flags, n=8, **terminal):
    return Terminal(*MODEL, "-n", n, *flags, **terminal)


def ready(terminal):
    terminal.expect(r"Ctrl-D leaves\.\n> ")


COST = r"\nprompt \d+ tokens?(?: \(\d+ cached\))?, [\d.]+/s · answer \d+ tokens?, [\d.]+/s$"


def answer_before_prompt(terminal):
    """Waits for the next prompt; returns what was written before it, without the line that says what an answer cost."""
    return re.sub(COST, "", terminal.expect(r"(.*)\n> ").group(1))


def say(terminal, message):
    """Sends a message and waits for the next prompt; returns the answer."""
    terminal.line(message)
    return answer_before_prompt(terminal)


def command(terminal, line, *patterns):
    """Types a command; each pattern must appear in its output, before the next prompt."""
    terminal.line(line)
    shown = terminal.expect(r"(.*)\n> ").group(1)
    for pattern in patterns:
        expect(re.search(pattern, shown, re.DOTALL), f"{line}: {pattern!r}", shown)
    return shown


def answer_of(*flags, prompt, n=8):
    """The answer of one run without a terminal."""
    return succeeded(run(*MODEL, "-n", n, "-q", *flags, "-p", prompt)).out


def last_stats(terminal):
    """(prompt tokens, from the cache, computed, generated) of the last answer, by /stats."""
    terminal.line("/stats")
    numbers = terminal.expect(r"last answer: prompt (\d+) tokens, (\d+) from the cache, (\d+) computed, "
                              r"[\d.]+ tokens/s \| generated (\d+) tokens").groups()
    terminal.expect("> ")
    return tuple(map(int, numbers))
