"""Edge cases of the chat's slash commands, and hints that fit the situation."""

import json
import pathlib
import tempfile

from chatting import MODEL, answer_of, chat, command, ready, say
from harness import expect, expect_equal, main, run, test


@test
def a_file_too_long_for_the_context_is_refused():
    with tempfile.TemporaryDirectory() as folder, chat("-c", 128) as terminal:
        large, small = pathlib.Path(folder) / "large.txt", pathlib.Path(folder) / "small.txt"
        large.write_text("word " * 400)
        small.write_text("three\n")
        ready(terminal)
        first = say(terminal, "Hello")
        command(terminal, f"/read {large}", r"large.txt is too long\. The conversation needs [\d,]+ tokens.*holds 128\. "
                                            r"It was not added")
        # The chat continues as if the file had never been named.
        command(terminal, "/undo", "Removed: Hello")
        expect_equal(say(terminal, "Hello"), first, "the answer")
        command(terminal, "/reset", "was reset")
        command(terminal, f"/read {small}", "will precede your next message")
        command(terminal, f"/read {large}", "too long")
        whole = "small.txt:\n\nthree\n\nWhat is it?"
        expect(answer_of("-c", 128, prompt=whole).strip() in say(terminal, "What is it?"), "the small file is kept",
               terminal.text)


@test
def a_file_is_dropped_with_the_message_that_was_too_long_for_it():
    with tempfile.TemporaryDirectory() as folder, chat("-c", 128) as terminal:
        path = pathlib.Path(folder) / "some.txt"
        path.write_text("word " * 8)
        ready(terminal)
        command(terminal, f"/read {path}", "will precede your next message")
        command(terminal, "more " * 60, "The text of /read was dropped", "the context holds 128")
        expect(answer_of("-c", 128, prompt="Hello").strip() in say(terminal, "Hello"), "the chat is usable",
               terminal.text)


@test
def edit_keeps_a_slash_at_the_beginning():
    with chat() as terminal:
        ready(terminal)
        for typed, message in (("//etc is a folder", "/etc is a folder!"), ("///etc", "//etc!")):
            say(terminal, typed)
            terminal.line("/edit")
            terminal.expect(f"> {typed}$")
            answer = say(terminal, "!")
            expect(answer_of(prompt=message).strip() in answer, f"the answer to {message}", answer)
            command(terminal, "/reset", "was reset")


@test
def edit_with_an_editor_keeps_a_slash_at_the_beginning():
    with tempfile.TemporaryDirectory() as folder:
        editor = pathlib.Path(folder) / "editor"
        editor.write_text("#!/bin/sh\nsed -i 's/$/!/' \"$1\"\n")
        editor.chmod(0o755)
        with chat(env={"EDITOR": str(editor)}) as terminal:
            ready(terminal)
            say(terminal, "//etc")
            expect(answer_of(prompt="/etc!").strip() in say(terminal, "/edit"), "the answer", terminal.text)


@test
def edit_shows_a_line_that_would_begin_a_longer_message():
    with chat() as terminal:
        ready(terminal)
        say(terminal, '"""ends with \\"""')
        terminal.line("/edit")
        terminal.expect(r'> """ends with \\"""$')
        answer = say(terminal, "")
        expect(answer_of(prompt="ends with \\").strip() in answer, "the answer", answer)


@test
def save_replaces_this_chat_only():
    with tempfile.TemporaryDirectory() as folder:
        mine, other = pathlib.Path(folder) / "mine.json", pathlib.Path(folder) / "other.json"
        unrelated = {"notes.txt": "my notes\n", "data.json": '{"messages": [], "tools": []}', "list.json": "[]",
                     "binary": "\0\1"}
        for name, text in unrelated.items():
            (pathlib.Path(folder) / name).write_text(text)
        with chat() as terminal:
            ready(terminal)
            say(terminal, "Hello")
            for name, text in unrelated.items():
                path = pathlib.Path(folder) / name
                for save in ("/save", "/save --force"):
                    command(terminal, f"{save} {path}", f"{name} is not a saved chat and was not replaced")
                    expect_equal(path.read_text(), text, f"{name} after {save}")
            command(terminal, f"/save {folder}", "is a folder")
            command(terminal, f"/save {mine}", "2 messages saved")
            say(terminal, "Go on")
            command(terminal, f"/save {mine}", "4 messages saved")
            command(terminal, f"/save {other}", "4 messages saved")
        with chat() as terminal:
            ready(terminal)
            say(terminal, "Another chat")
            before = mine.read_text()
            command(terminal, f"/save {mine}", "contains another chat", "use /save --force FILE")
            expect_equal(mine.read_text(), before, "the chat of before")
            command(terminal, f"/save --force {mine}", "2 messages saved")
            expect_equal(len(json.loads(mine.read_text())["messages"]), 2, "messages")
            # A loaded chat may be saved to the file it came from.
            command(terminal, f"/load {other}", "4 messages loaded")
            command(terminal, "/undo", "Removed")
            command(terminal, f"/save {other}", "2 messages saved")


@test
def hints_for_a_script_name_flags_only():
    long = "word " * 100
    result = run(*MODEL, "-n", 8, "-c", 64, stdin=long)
    expect_equal((result.code, result.out), (2, ""), f"exit code and output of\n{result}\n")
    expect("the context holds 64. Shorten the prompt, or raise the limit with -c." in result.err, "what helps", result)
    for flags in ((), ("--context-overflow", "shift-turns")):
        result = run(*MODEL, "-n", 8, "-c", 64, *flags, stdin=long)
        for useless in ("/undo", "/reset", "/set", "shift-turns"):
            expect(useless not in result.err, f"no hint at {useless}", result)
    result = run(*MODEL, "--ignore-eos", "-c", 64, "-p", "Hello")
    expect("The context of 64 tokens is full; the answer ends here. Start with a larger -c.\n" in result.err,
           "no hint at turns to forget", result)


@test
def hints_in_a_chat_name_what_helps_there():
    flags = ("-c", 64, "--ignore-eos")
    with chat(*flags, n=-1) as terminal:
        ready(terminal)
        command(terminal, "word " * 100, r"the context holds 64\. Shorten the message, or start again with a larger -c")
        command(terminal, "Hello", "or continue with /set context-overflow shift-turns")
        shown = command(terminal, "Go on", "/undo, /reset or /set context-overflow shift-turns")
        expect("--context-overflow" not in shown, "a flag cannot be given any more", shown)
    with chat(*flags, "--context-overflow", "shift-turns", n=-1) as terminal:
        ready(terminal)
        shown = command(terminal, "word " * 100, "Shorten the message")
        shown += command(terminal, "Hello", "is full; the answer ends here")
        expect("shift-turns" not in shown, "what is set already is not suggested", shown)


main()
