"""Typing in the chat: lines of several kinds, keys, Ctrl-C, history, pasting, colours."""

import json
import os
import pathlib
import tempfile

from chatting import MODEL, answer_of, chat, command, ready, say
from harness import expect, expect_equal, main, run, test
from models import DEMO_TARGET
from pseudo_terminal import Terminal


@test
def messages_of_several_lines():
    with chat() as terminal:
        ready(terminal)
        terminal.line("one\\")
        terminal.expect(r"\. $")
        answer = say(terminal, "two")
        expect(answer_of(prompt="one\ntwo").strip() in answer, "backslash", answer)
        command(terminal, "/reset", "was reset.")
        terminal.line('"""')
        terminal.expect(r"\. $")
        terminal.line("one")
        terminal.expect(r"\. $")
        terminal.line("")
        terminal.expect(r"\. $")
        terminal.line("two")
        terminal.expect(r"\. $")
        answer = say(terminal, '"""')
        expect(answer_of(prompt="one\n\ntwo").strip() in answer, "quotes", answer)


@test
def ctrl_c_stops_the_answer_and_never_leaves_during_one():
    with chat("--ignore-eos", "-c", 65536, n=-1) as terminal:  # long enough that it cannot end by itself
        ready(terminal)
        terminal.line("Go on for ever")
        terminal.expect(r"Go on for ever\n.{3,}")
        terminal.type("\x03")
        terminal.expect(r"\(stopped\)\n(.*)\n> ")
        # The partial answer is kept, and the chat continues.
        command(terminal, "/undo", "Removed: Go on for ever")
        terminal.line("Again")
        terminal.expect(r"Again\n.{3,}")
        # Pressed in quick succession, for example by someone who sees no reaction: none of them leaves.
        terminal.type("\x03\x03\x03")
        terminal.expect(r"\(stopped\)\n.*\n> ")
        terminal.line("/regen")
        terminal.expect(r"/regen\n.{3,}")
        terminal.type("\x03")
        terminal.expect(r"\(stopped\)\n.*\n> ")
        terminal.type("\x03")
        terminal.expect("Ctrl-C again leaves, as /exit does.\n> ")
        terminal.type("\x03")
        expect_equal(terminal.wait(), 0, "exit code")


@test
def ctrl_c_between_an_answer_and_the_prompt_does_not_kill():
    for _ in range(5):
        with chat("--ignore-eos", "-c", 65536, n=-1) as terminal:
            ready(terminal)
            terminal.line("Go on for ever")
            terminal.expect(r"Go on for ever\n.{3,}")
            terminal.interrupt_until("(stopped)")
            # At the prompt, two presses leave.
            expect(terminal.process.poll() in (None, 0), "not killed", terminal.text)


@test
def ctrl_c_at_the_prompt_drops_the_line():
    with chat() as terminal:
        ready(terminal)
        terminal.type("half a li")
        terminal.expect("half a li")
        terminal.type("\x03")
        terminal.expect(r"\^C\n> ")
        terminal.type("\x03")
        terminal.expect("Ctrl-C again leaves, as /exit does.\n> ")
        say(terminal, "Hello")
        terminal.type("\x03")
        terminal.expect("Ctrl-C again leaves, as /exit does.\n> ")
        terminal.type("\x03")
        expect_equal(terminal.wait(), 0, "exit code")


@test
def resizing_redraws_the_line():
    with chat(columns=100) as terminal:
        ready(terminal)
        terminal.type("word " * 10)
        terminal.expect("word word $")
        terminal.resize(24, 30)
        terminal.expect("word")
        answer = say(terminal, "end")
        expect(answer_of(prompt="word " * 10 + "end").strip() in answer.replace("\n", ""), "the answer", answer)


@test
def a_character_after_the_window_narrows_stays_in_its_row():
    """Fails where libedit writes it at the cursor's old column. A row of 30 columns has 31 wchar_t, and place 34 is the
    size of the heap block behind it. No block has the size of an "h", so freeing it aborts."""
    with chat(columns=100) as terminal:
        ready(terminal)
        terminal.type("x" * 32)
        terminal.expect("x{32}$")
        terminal.resize(24, 30)
        terminal.expect("x{32}$")
        terminal.type("h")
        terminal.expect("h$")
        terminal.resize(24, 100)
        terminal.expect("x{32}h$")
        expect(say(terminal, "end"), "an answer")


@test
def utf8_is_edited_by_character():
    with chat() as terminal:
        ready(terminal)
        answer = say(terminal, "héllo wörld 世界🙂\x7f\x7f\x7fx")
        expect(answer_of(prompt="héllo wörld x").strip() in answer, "three characters taken back", answer)
        # Split within a character, and invalid bytes.
        terminal.type("é".encode()[:1])
        terminal.type("é".encode()[1:])
        terminal.type(b"\xff ok\r")
        answer = terminal.expect(r"ok\n(.*)\n> ").group(1)
        expect(answer, "an answer")


def paste(text):
    return "\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~"


@test
def ten_kilobytes_can_be_pasted():
    one_line = "abcdefghi " * 1024
    several = "some words in a line\n" * 500
    with chat("-c", 30000, n=2) as terminal, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chat.json"
        ready(terminal)
        for text, sign in ((one_line, "1 line, 10240 bytes"), (several, "500 lines, 10500 bytes")):
            terminal.type("See: " + paste(text))
            terminal.expect(rf"\[paste 1: {sign}\]")
            terminal.line(" done")
            terminal.expect(r" done\n.*\n> ")
        # As typed, without the markers that terminals put around a paste.
        terminal.line("x" + one_line)
        terminal.expect(r"abcdefghi.*\n.*\n> ")
        command(terminal, f"/save {path}", "6 messages saved")
        messages = json.loads(path.read_text())["messages"]
        expect_equal(messages[0]["content"], "See: " + one_line + " done", "the first message")
        expect_equal(messages[2]["content"], "See: " + several + " done", "the second message")
        expect_equal(messages[4]["content"], "x" + one_line, "the third message")


@test
def history_is_kept_and_recalled():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "state" / "history"
        env = {"INFER_HISTORY": str(path)}
        with chat(env=env) as terminal:
            ready(terminal)
            say(terminal, "remember me")
            terminal.type("\x1b[A")
            terminal.expect("remember me$")
            terminal.line("")
            terminal.expect("\n> ")
            terminal.line("/exit")
            terminal.wait()
        expect_equal(path.stat().st_mode & 0o777, 0o600, "nobody else reads the history")
        with chat(env=env) as terminal:
            ready(terminal)
            terminal.type("\x1b[A\x1b[A")
            terminal.expect("remember me$")


@test
def keys_are_bound_as_the_user_says():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / ".editrc").write_text('infer:bind -s "^T" "from my editrc"\n')
        with chat(env={"HOME": folder}) as terminal:
            ready(terminal)
            terminal.type("\x14")
            terminal.expect("from my editrc$")


@test
def a_chat_is_kept_for_the_next_run():
    with tempfile.TemporaryDirectory() as folder:
        env = {"INFER_HISTORY": f"{folder}/state/history"}
        with chat(env=env) as terminal:
            ready(terminal)
            command(terminal, "/load", "no earlier chat was kept")
            say(terminal, "keep me")
            terminal.process.kill()
            terminal.process.wait()
        kept = pathlib.Path(folder, "state", "last-chat.json")
        expect_equal(kept.stat().st_mode & 0o777, 0o600, "nobody else reads the chat")
        expect_equal(json.loads(kept.read_text())["messages"][0]["content"], "keep me", "the first message")
        with chat(env=env) as terminal:
            ready(terminal)
            command(terminal, "/load", "2 messages loaded from")
            command(terminal, "/undo", "Removed: keep me")
            say(terminal, "again")
            terminal.line("/exit")
            terminal.expect("The chat is kept; /load continues it")
            expect_equal(terminal.wait(), 0, "exit code")


@test
def a_chat_without_history_is_kept_nowhere():
    with tempfile.TemporaryDirectory() as folder:
        with chat(env={"XDG_STATE_HOME": folder, "INFER_HISTORY": ""}) as terminal:
            ready(terminal)
            say(terminal, "hello")
            terminal.line("/exit")
            expect_equal(terminal.wait(), 0, "exit code")
            expect("is kept" not in terminal.text, "no note", terminal.text)
        expect_equal(os.listdir(folder), [], "files")


@test
def every_answer_is_followed_by_its_cost():
    with chat() as terminal:
        ready(terminal)
        terminal.line("Hello")
        terminal.expect(r"\nprompt \d+ tokens, [\d.]+/s · answer \d+ tokens?, [\d.]+/s\n> ")
        terminal.line("Again")
        terminal.expect(r"\nprompt \d+ tokens \(\d+ cached\), [\d.]+/s · answer \d+ tokens?, [\d.]+/s\n> ")
    with chat("-q") as terminal:
        terminal.expect("> ")
        terminal.line("Hello")
        terminal.expect(r"\n> ")
        expect(" · answer" not in terminal.text, "-q", terminal.text)


@test
def a_long_prompt_shows_its_progress():
    prompt = "word " * 3000
    slow = ("-m", DEMO_TARGET, "--device", "ref", "-c", 8192, "--ubatch-size", 32, "-n", 1, "-p", prompt)
    for flags in ((), ("--raw",)):
        with Terminal("run", *slow, *flags) as terminal:
            terminal.expect(r"prompt: +\d+ % of \d,\d{3} tokens, \d+ tokens/s, \d+ (s|min) left")
    expect("% of" not in run("run", *slow[:-2], "-p", "word " * 40).err, "nothing without a terminal")


@test
def clear_forgets_the_chat_and_clears_the_screen():
    with chat() as terminal:
        ready(terminal)
        say(terminal, "Hello")
        seen = len(terminal.raw)
        command(terminal, "/clear", "was reset")
        expect(b"\x1b[2J" in terminal.raw[seen:], "the screen is cleared", terminal.raw[seen:])
        command(terminal, "/undo", "no message yet")


@test
def tab_lists_what_is_ambiguous():
    with chat() as terminal:
        ready(terminal)
        terminal.type("/s\t")
        terminal.expect(r"/s\n/save  /system  /set  /show  /stats\n> /s$")
        terminal.type("av\t")
        terminal.expect("ave $")


@test
def tab_completes_commands():
    with chat() as terminal:
        ready(terminal)
        terminal.type("/he\t\r")
        terminal.expect("Show this list")


@test
def colours_only_where_they_can_be_seen():
    with chat() as terminal:
        ready(terminal)
        expect(b"\x1b[1;32m" in terminal.raw, "a coloured prompt")
    with chat(env={"NO_COLOR": "1"}) as terminal:
        ready(terminal)
        expect(b"\x1b[1;32m" not in terminal.raw, "no colours with NO_COLOR")
    result = run(*MODEL, "-n", 8, "-p", "Hello")
    expect(b"\x1b" not in result.out_bytes + result.err.encode(), "no terminal sequences in a pipe", result)


main()
