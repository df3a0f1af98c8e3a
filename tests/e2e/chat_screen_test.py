"""What a user sees while typing in the chat: wide characters, long lines, resizing, the history."""

import pathlib
import re
import tempfile
import time

from chatting import answer_of, chat, ready, say
from harness import expect, main, test, test_each
from screen import Screen, width

LEFT, UP, HOME, END = "\x1b[D", "\x1b[A", "\x01", "\x05"
WIDE = "世界你好" * 4
EMOJI = "🙂🚀🎉🐙" * 4
COMBINING = "e\u0301a\u0308o\u0302" * 8


def on_screen(rows=12, columns=20, rewraps=True, answers=True, **how):
    terminal = chat("-q", rows=rows, columns=columns, **how)
    terminal.screen = Screen(rows, columns, rewraps, answers)
    return terminal


def wrapped(text, columns=20):
    """The rows of a line after the prompt."""
    rows, used = [""], 0
    for character in text:
        n = width(character)
        if used + n > columns:
            rows.append("")
            used = 0
        rows[-1] += character
        used += n
    return [row.rstrip() for row in rows]


def expect_line(terminal, text, columns=20, above=()):
    """The screen shows only the line being edited and the rows `above`."""
    rows = [*above, *wrapped("> " + text, columns)]
    terminal.until(lambda: terminal.screen.lines() == rows, lambda: f"expected {rows}, found {terminal.screen.lines()}")


@test_each("plain", "wide", "emoji", "combining")
def text_inserted_before_wrapped_characters(kind):
    text = {"plain": "abcdefgh" * 4, "wide": WIDE, "emoji": EMOJI, "combining": COMBINING}[kind]
    with on_screen() as terminal:
        terminal.expect("> ")
        terminal.type(text)
        expect_line(terminal, text)
        terminal.type(HOME)
        before = ""
        for typed in "xy世é":
            terminal.type(typed)
            before += typed
            expect_line(terminal, before + text)
        for _ in range(2):
            terminal.type("\x7f")
            before = before[:-1]
            expect_line(terminal, before + text)
        terminal.type(END + LEFT * 3 + "中z")
        expect_line(terminal, before + text[:-3] + "中z" + text[-3:])
        terminal.type(LEFT * 6 + "\x0b")  # to the end of the line
        whole = before + text[:-3] + "中z" + text[-3:]
        cut = whole[:len(whole) - 3 - 6]
        expect_line(terminal, cut)
        terminal.type("\r")
        terminal.until(lambda: terminal.screen.lines()[len(wrapped("> " + cut)):], lambda: "an answer")
        expect(terminal.screen.lines()[:len(wrapped("> " + cut))] == wrapped("> " + cut), "the line stays",
               terminal.screen.lines())


@test
def cursor_is_where_the_next_character_goes():
    with on_screen() as terminal:
        terminal.expect("> ")
        for text, place in (("abc", (0, 5)), ("d" * 15, (1, 0)), ("世" * 9 + "e", (1, 19)), ("世", (2, 2)),
                            ("e\u0301", (2, 3))):
            terminal.type(text)
            terminal.until(lambda place=place: terminal.screen.cursor() == place,
                           lambda place=place: f"expected {place}, found {terminal.screen.cursor()}")
        terminal.type(LEFT * 3)  # the mark, its letter, the wide character
        terminal.until(lambda: terminal.screen.cursor() in ((1, 19), (2, 0)),
                       lambda: f"found {terminal.screen.cursor()}")


@test_each("rewraps", "cuts", "does_not_answer")
def resizing_while_typing(kind):
    text = "The 世界 is wide and the 🙂 is " + "e\u0301" * 5 + " and more words follow here"
    with on_screen(rows=24, rewraps=kind == "rewraps", answers=kind != "does_not_answer") as terminal:
        terminal.expect("> ")
        terminal.line("/system")
        terminal.expect("no system prompt.\n> ")

        def expect_shown(line, columns):
            """The line is there once and complete, and what was above it is unchanged."""
            rows = wrapped("> " + line, columns)
            terminal.until(lambda: terminal.screen.lines()[-len(rows):] == rows,
                           lambda: f"expected {rows} at the end of {terminal.screen.lines()}")
            above = terminal.screen.lines()[:-len(rows)]
            expect(above[0].startswith("> /system") and above[1].startswith("There is") and
                   not any(row[:3] in ("> T", "> x") for row in above), f"what is above at {columns} columns", above)

        def resize(line, columns):
            """Waits until the program has handled it: a key is drawn only after that."""
            terminal.resize(24, columns)
            for typed, shown in (("q", line + "q"), ("\x7f", line)):
                terminal.type(typed)
                expect_shown(shown, columns)

        terminal.type(text)
        expect_shown(text, 20)
        for columns in (13, 31, 9, 60, 20):
            resize(text, columns)
        terminal.type(HOME + "x" + END)
        expect_shown("x" + text, 20)
        resize("x" + text, 33)
        terminal.type(END + "y")
        expect_shown("x" + text + "y", 33)


@test
def signals_do_not_lose_queries():
    """A resize may interrupt the program while it asks where the cursor is. If a query is lost, later replies are taken
    for earlier ones, and the next line is not drawn where it belongs."""
    with on_screen(rows=24) as terminal:
        terminal.expect("> ")
        for _ in range(2000):
            terminal.signal_resize()
        terminal.line("/system")
        terminal.expect("no system prompt.\n> ")
        text = "The quick brown fox jumps over the lazy dog"
        terminal.type(text)
        rows = wrapped("> " + text)
        terminal.until(lambda: terminal.screen.lines()[-len(rows):] == rows, lambda: f"{terminal.screen.lines()}")
        terminal.resize(24, 13)
        terminal.type("q")
        rows = wrapped("> " + text + "q", 13)
        terminal.until(lambda: terminal.screen.lines()[-len(rows):] == rows, lambda: f"{terminal.screen.lines()}")
        above = terminal.screen.lines()[:-len(rows)]
        expect(not any(row.startswith("> T") for row in above), "the line is there once", above)


@test
def a_late_reply_is_not_echoed():
    """A line may be entered while the program waits for the cursor's position. The reply that follows belongs neither
    on the screen nor into the next line."""
    with on_screen(rows=24, n=300) as terminal:
        terminal.expect("> ")
        terminal.hold_replies()
        terminal.signal_resize()
        terminal.until(lambda: terminal.screen.replies, lambda: "the program does not ask for the cursor's position")
        shown = len(terminal.text)
        terminal.type("hello\rab")
        until = time.monotonic() + 0.5
        while time.monotonic() < until and len(terminal.text) < shown + len("hello\nanswer"):
            terminal.signal_resize()
        terminal.release_replies()
        terminal.expect("\n> ab$")
        expect("^[" not in terminal.text, "no reply on the screen", terminal.text)


@test
def a_line_longer_than_the_screen():
    text = "".join(f"{i:03} " for i in range(100))
    with on_screen(rows=6) as terminal:
        terminal.expect("> ")
        terminal.type(text)
        terminal.until(lambda: terminal.screen.lines() == wrapped("> " + text)[-6:],
                       lambda: f"the last rows, found {terminal.screen.lines()}")
        terminal.type(HOME)
        terminal.until(lambda: terminal.screen.lines() == wrapped("> " + text)[:6],
                       lambda: f"the first rows, found {terminal.screen.lines()}")
        terminal.type(END + "x")
        terminal.until(lambda: terminal.screen.lines() == wrapped("> " + text + "x")[-6:],
                       lambda: f"the last rows again, found {terminal.screen.lines()}")


@test
def messages_of_several_lines_come_back_whole():
    with tempfile.TemporaryDirectory() as folder:
        env = {"INFER_HISTORY": str(pathlib.Path(folder) / "history")}
        pathlib.Path(env["INFER_HISTORY"]).write_text("an older line\n")
        with chat(env=env) as terminal:
            ready(terminal)
            terminal.line("one\\")
            terminal.expect(r"\. $")
            say(terminal, "two")
            say(terminal, "/reset")
            terminal.line('"""three')
            terminal.expect(r"\. $")
            say(terminal, 'four"""')
            say(terminal, "/reset")
            terminal.type("\x1b[200~five\rsix\x1b[201~")
            terminal.expect(r"\[paste 1: 2 lines")
            say(terminal, "")
        for _ in range(2):  # in a run with that history, and in the next one
            with on_screen(env=env) as terminal:
                terminal.expect("> ")
                for rows in (["> five", "six"], ["> /reset"], ["> three", "four"], ["> /reset"],
                             ["> one", "two"], ["> an older line"]):
                    terminal.type(UP)
                    terminal.until(lambda rows=rows: terminal.screen.lines() == rows,
                                   lambda rows=rows: f"expected {rows}, found {terminal.screen.lines()}")
        with chat(env=env) as terminal:
            ready(terminal)
            terminal.type(UP)
            terminal.expect("five\nsix$")
            answer = say(terminal, "!")
            expect(answer_of(prompt="five\nsix!").strip() in answer, "the answer to the whole message", answer)


@test
def edit_changes_a_message_of_several_lines_in_the_line():
    with chat() as terminal:
        ready(terminal)
        terminal.line("one\\")
        terminal.expect(r"\. $")
        say(terminal, "two")
        terminal.line("/edit")
        terminal.expect("> one\ntwo$")
        answer = say(terminal, "!")
        expect(answer_of(prompt="one\ntwo!").strip() in answer, "the answer", answer)


@test
def searching_the_history_shows_what_is_found():
    with on_screen(columns=40) as terminal:
        terminal.expect("> ")
        say(terminal, "find me")
        terminal.type("\x12fin")
        terminal.until(lambda: any(re.search("find me", line) for line in terminal.screen.lines()[-3:]) and
                       any("bck:fin" in line for line in terminal.screen.lines()), lambda: f"{terminal.screen.lines()}")


@test
def a_terminal_without_cursor_movement_still_chats():
    with chat(env={"TERM": "dumb"}) as terminal:
        ready(terminal)
        answer = say(terminal, "Hello")
        expect(answer_of(prompt="Hello").strip() in answer, "the answer", answer)


main()
