"""The terminal chat, driven through a pseudo-terminal, and single answers in pipes."""

import json
import pathlib
import re
import tempfile

from chatting import COST, MODEL, answer_before_prompt, answer_of, chat, command, last_stats, ready, say
from harness import expect, expect_equal, main, run, test, test_each
from models import SPM, succeeded
from pseudo_terminal import Terminal


@test
def chat_begins_answers_and_ends():
    with chat() as terminal:
        ready(terminal)
        answer = say(terminal, "Hello there")
        expect(answer_of(prompt="Hello there").strip() in answer, "the answer of a run without a terminal", answer)
        terminal.type("\x04")
        expect_equal(terminal.wait(), 0, "exit code after Ctrl-D")
        expect(re.search(COST, terminal.text, re.MULTILINE), "what the answer cost", terminal.text)


@test
def prompt_flag_is_the_first_message():
    with chat("-p", "Hello there") as terminal:
        terminal.expect("> Hello there\n")
        answer = answer_before_prompt(terminal)
        expect_equal(answer.strip(), answer_of(prompt="Hello there").strip(), "the answer")
        terminal.line("/exit")
        expect_equal(terminal.wait(), 0, "exit code")


@test
def second_turn_computes_new_tokens_only_and_says_the_same():
    first, second = "My name is Ada.", "What is my name?"
    with chat("-q", n=20) as terminal, tempfile.TemporaryDirectory() as folder:
        terminal.expect("> ")
        say(terminal, first)
        n1, cached, computed, generated = last_stats(terminal)
        expect_equal((cached, computed), (0, n1), "cached and computed tokens of the first turn")
        say(terminal, second)
        n2, cached, computed, _ = last_stats(terminal)
        expect_equal(cached + computed, n2, "cached and computed tokens")
        path = pathlib.Path(folder) / "chat.json"
        command(terminal, f"/save {path}", "4 messages saved")
        terminal.line("/exit")
        expect_equal(terminal.wait(), 0, "exit code")
        messages = json.loads(path.read_text())["messages"]

        def prompt_tokens(conversation):
            """The number of tokens of a conversation as the template renders it."""
            file = pathlib.Path(folder) / "conversation.json"
            file.write_text(json.dumps({"messages": conversation, "add_generation_prompt": True}))
            text = succeeded(run("template", "--chat-template", "chatml", "--input", file)).out
            return json.loads(succeeded(run("tokenize", "-m", SPM, "--json", text)).out)["tokens"]

        # All but the last generated token was computed in the first turn. Tokens are recomputed where the tokenizer
        # spells the model's text differently than the model did.
        before, after = prompt_tokens(messages[:1]), prompt_tokens(messages[:3])
        expect_equal(len(after), n2, "tokens of the second prompt")
        expect(computed <= n2 - n1, f"{computed} of {n2} tokens computed, at most those after the first {n1}")
        expect(cached >= len(before), "the first prompt is kept", cached)

        # A fresh run over the whole conversation gives the same text.
        file = pathlib.Path(folder) / "whole.json"
        file.write_text(json.dumps({"messages": messages[:3]}))
        text = succeeded(run("template", "--chat-template", "chatml", "--input", file)).out
        fresh = succeeded(run("-m", SPM, "--temp", 0, "-n", 20, "-q", "--raw", "-p", text)).out
        expect_equal(messages[3]["content"], fresh, "the second answer")


@test
def help_lists_every_command():
    with chat() as terminal:
        ready(terminal)
        terminal.line("/help")
        shown = terminal.expect(r"(.*)Ctrl-C stops an answer").group(1)
        for command in ("/help", "/exit", "/clear", "/reset", "/regen", "/undo", "/edit", "/save FILE", "/load [FILE]",
                        "/system TEXT", "/set PARAM VALUE", "/show", "/stats", "/read FILE"):
            expect(re.search(rf"^  {re.escape(command)}\s+\S", shown, re.MULTILINE), f"{command} with a summary", shown)


@test
def reset_forgets_and_keeps_the_system_prompt():
    with chat("-sys", "Be brief.") as terminal:
        ready(terminal)
        first = say(terminal, "Hello")
        say(terminal, "Once more")
        command(terminal, "/reset", "was reset.")
        expect_equal(say(terminal, "Hello"), first, "the answer in a new chat")
        command(terminal, "/system", "Be brief.")


@test
def regen_answers_again():
    with chat("--temp", 2, "--seed", 7, n=12) as terminal:
        ready(terminal)
        first = say(terminal, "Tell me")
        tokens = last_stats(terminal)[0]
        again = say(terminal, "/regen")
        expect(first.splitlines()[-1] != again.splitlines()[-1], "another answer", again)
        expect_equal(last_stats(terminal)[:3], (tokens, tokens - 1, 1), "all but one token from the cache")


@test
def undo_takes_back_a_turn():
    with chat() as terminal:
        ready(terminal)
        command(terminal, "/undo", "there is no message yet")
        say(terminal, "First")
        second = say(terminal, "Second")
        command(terminal, "/undo", "Removed: Second")
        expect_equal(say(terminal, "Second"), second, "the answer to the same message")


@test
def edit_changes_the_last_message_in_the_line():
    with chat() as terminal:
        ready(terminal)
        say(terminal, "Hello wordl")
        terminal.line("/edit")
        terminal.expect("> Hello wordl")
        answer = say(terminal, "\x7f\x7fld!")
        expect(answer_of(prompt="Hello world!").strip() in answer, "the answer to the changed message", answer)


@test
def edit_uses_the_users_editor():
    with tempfile.TemporaryDirectory() as folder:
        editor = pathlib.Path(folder) / "editor"
        editor.write_text("#!/bin/sh\nprintf 'line one\\nline two\\n' > \"$1\"\n")
        editor.chmod(0o755)
        with chat(env={"EDITOR": str(editor)}) as terminal:
            ready(terminal)
            say(terminal, "Hello")
            answer = say(terminal, "/edit")
            expect(answer_of(prompt="line one\nline two").strip() in answer, "the answer to the edited text", answer)


@test
def save_and_load_keep_the_conversation():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chat.json"
        with chat("-sys", "You are Bob.") as terminal:
            ready(terminal)
            say(terminal, "Grüße, 世界 \\ \"quoted\"")
            command(terminal, f"/save {path}", "2 messages saved")
            second = say(terminal, "And now?")
        saved = json.loads(path.read_text())["messages"]
        expect_equal([m["role"] for m in saved], ["system", "user", "assistant"], "roles")
        expect_equal(saved[1]["content"], "Grüße, 世界 \\ \"quoted\"", "the message")
        with chat() as terminal:
            ready(terminal)
            command(terminal, f"/load {path}", "2 messages loaded")
            expect_equal(say(terminal, "And now?"), second, "the answer after loading")
            command(terminal, "/load /nowhere/at/all.json", "No such file")
            command(terminal, "/save /nowhere/at/all.json", "No such file")
            path.write_text('{"messages": [{"role": 3}]}')
            command(terminal, f"/load {path}", "expected messages with role and content")
            # A wrong file changes nothing.
            command(terminal, "/undo", "Removed: And now")


@test
def set_changes_parameters():
    with chat() as terminal:
        ready(terminal)
        shown = command(terminal, "/set")
        for name in ("temp", "top-k", "top-p", "seed", "reasoning", "context-overflow"):
            expect(re.search(rf"\n  {name} ", shown), name, shown)
        command(terminal, "/set n-predict 3", "n-predict is 3")
        say(terminal, "Hello")
        expect_equal(last_stats(terminal)[3], 3, "generated tokens")
        for wrong in ("/set top-p", "/set top-p 7", "/set top-p abc", "/set nonsense 1", "/set n-predict -5"):
            command(terminal, wrong, r"/set|top_p|top-p")
        command(terminal, "/set show-stats on", "show-stats is on")
        terminal.line("Again")
        terminal.expect(r"prompt \d+ tokens, \d+ from the cache, \d+ computed")


@test
def show_and_stats_tell_what_runs():
    with chat("-t", 2) as terminal:
        ready(terminal)
        command(terminal, "/show", r"model: random weights, llama, .*template: chatml\n.*sampling: temp 0, .*"
                                   r"context: no messages yet, of 512; when full: stop")
        command(terminal, "/show template", "<\\|im_start\\|>")
        command(terminal, "/show weather", "cannot show weather")
        say(terminal, "Hello")
        command(terminal, "/show context", r"context: \d+ tokens")
        command(terminal, "/stats", "1 answer: ", r"cpu: \d+ layers, weights [\d.]+ MB, cache [\d.]+ MB",
                r"KV: \d+ of \d+ blocks")


@test
def system_prompt_can_be_changed():
    with chat() as terminal:
        ready(terminal)
        command(terminal, "/system", "no system prompt")
        command(terminal, "/system You are a pirate.", "is set")
        answer = say(terminal, "Hello")
        expected = answer_of("-sys", "You are a pirate.", prompt="Hello")
        expect(expected.strip() in answer, "the answer with that system prompt", answer)
        command(terminal, '/system ""', "was removed")


@test
def read_puts_a_file_before_the_next_message():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "notes.txt"
        path.write_text("three\nlines\nhere\n")
        with chat() as terminal:
            ready(terminal)
            command(terminal, f"/read {path}", "17 bytes of .* will precede your next message")
            answer = say(terminal, "What is it?")
            whole = "notes.txt:\n\nthree\nlines\nhere\n\nWhat is it?"
            expect(answer_of(prompt=whole).strip() in answer, "the answer to file and message", answer)
            command(terminal, "/read /nowhere", "No such file")


@test
def unknown_commands_are_refused_and_two_slashes_are_text():
    with chat() as terminal:
        ready(terminal)
        command(terminal, "/nonsense", "Unknown command /nonsense. /help lists")
        command(terminal, "/exit now", "takes no argument")
        answer = say(terminal, "//etc is a folder")
        expect(answer_of(prompt="/etc is a folder").strip() in answer, "the answer to the text", answer)


@test
def context_overflow_stops():
    with chat("-c", 64, "--ignore-eos", n=-1) as terminal:
        ready(terminal)
        answer = say(terminal, "Hello")
        expect("The context of 64 tokens is full; the answer ends here" in answer, "said so", answer)
        answer = say(terminal, "Go on")
        expect("the context holds 64." in answer, "said so", answer)
        command(terminal, "/undo", "Removed: Hello")
        answer = say(terminal, "word " * 60)
        expect("the context holds 64." in answer, "said so", answer)


@test
def context_overflow_forgets_the_oldest_turns():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chat.json"
        with chat("-c", 400, "--context-overflow", "shift-turns", "-sys", "Be kind.", n=20) as terminal:
            ready(terminal)
            forgot = 0
            for i in range(8):
                forgot += "forgotten." in say(terminal, f"Message number {i}")
            expect(forgot > 0, "turns were forgotten", terminal.text)
            command(terminal, "/undo", "Removed")
            command(terminal, f"/save {path}", "saved")
        kept = json.loads(path.read_text())["messages"]
        expect_equal(kept[0], {"role": "system", "content": "Be kind."}, "the system prompt is kept")
        expect("Message number 6" in kept[-2]["content"], "the newest turn is kept", kept)
        expect("Message number 0" not in kept[1]["content"], "the oldest turn is gone", kept)


@test
def an_answer_goes_on_after_turns_are_forgotten():
    with chat("-c", 200, "--context-overflow", "shift-turns", n=20) as terminal:
        ready(terminal)
        say(terminal, "First message of some length")
        say(terminal, "Second message of some length")
        command(terminal, "/set n-predict 140", "is 140")
        answer = say(terminal, "Third")
        expect("forgotten." in answer, "turns were forgotten within or before the answer", answer)
        expect(last_stats(terminal)[3] > 20, "a long answer", terminal.text)


def thinking_template(folder):
    """A template whose prompt ends with an opening tag, so that a model without one is reasoning all the time."""
    path = pathlib.Path(folder) / "thinking.jinja"
    path.write_text("{{ messages[-1].content }}{{ extra }}{% if add_generation_prompt %}<think>{% endif %}\n")
    return path


@test
def reasoning_is_dimmed_shown_or_hidden():
    with tempfile.TemporaryDirectory() as folder:
        flags = ("-m", SPM, "--temp", 0, "-n", 8, "--chat-template", thinking_template(folder), "-p", "Hello")
        expect_equal(succeeded(run(*flags, "-q")).out, "", "a pipe gets the answer only")
        expect_equal(succeeded(run(*flags, "-q", "--reasoning-display", "hide")).out, "", "hidden")
        shown = succeeded(run(*flags, "-q", "--reasoning-display", "show")).out
        expect(re.fullmatch(r"<think>\n.+\n</think>\n\n", shown, re.DOTALL), "shown with its tags", shown)
        thought = shown.split("\n")[1]
        with Terminal(*flags) as terminal:
            terminal.expect("\n> ")
            terminal.expect("\n> ")
            expect(thought in terminal.text, "the reasoning on a terminal", terminal.text)
            expect(b"\x1b[2m" in terminal.raw, "dimmed", terminal.raw)
            command(terminal, "/set reasoning-display hide")
            answer = say(terminal, "Hello")
            expect(thought not in answer and "thinking ..." in answer, "hidden on a terminal", answer)


@test
def reasoning_is_turned_off_or_limited():
    with tempfile.TemporaryDirectory() as folder:
        path = thinking_template(folder)
        flags = ("-m", SPM, "--temp", 0, "-n", 24, "-q", "--chat-template", path, "-p", "Hello", "--reasoning-display",
                 "show")
        whole = succeeded(run(*flags)).out
        expect("</think>" not in whole.removesuffix("</think>\n\n"), "a model that only reasons", whole)
        for budget in ("3", "8"):
            limited = succeeded(run(*flags, "--reasoning-budget", budget)).out
            thought, answer = limited.removeprefix("<think>\n").split("</think>")
            expect(whole.removeprefix("<think>\n").startswith(thought.strip()) and answer.strip(), "cut off", limited)
            expect_equal(limited, succeeded(run(*flags, "--reasoning-budget", budget, "--spec", "lookup")).out, "drafts")
        off = succeeded(run(*flags, "--reasoning-budget", 0)).out
        expect(off.strip() and "<think>" not in off, "no reasoning", off)
        expect_equal(succeeded(run(*flags, "--reasoning", "off")).out, off, "--reasoning off")
        path.write_text("{{ messages[-1].content }}{% if enable_thinking %} long{% else %} short{% endif %}\n")
        said = ("--reasoning", "on"), ("--reasoning", "off"), ("--reasoning", "auto")
        with_flag = [succeeded(run(*flags, *flag)).out for flag in said]
        by_hand = [succeeded(run(*flags, "--jinja-vars", f'{{"enable_thinking": {value}}}')).out
                   for value in ("true", "false", "true")]
        expect_equal(with_flag, by_hand, "enable_thinking")
        expect(with_flag[0] != with_flag[1], "the variable matters", with_flag)


@test
def templates_from_a_file_or_as_text():
    text = "{{ messages[-1].content }} and{% if add_generation_prompt %} so{% endif %}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "chatml"
        path.write_text(text)
        flags = ("-m", SPM, "--temp", 0, "-n", 8, "-q", "-p", "Hello")
        from_file = succeeded(run(*flags, "--chat-template-file", path)).out
        expect_equal(succeeded(run(*flags, "--chat-template", text)).out, from_file, "the text")
        expect(succeeded(run(*flags, "--chat-template", "chatml")).out != from_file, "the built-in one")


@test
def template_variables_are_passed_on():
    with tempfile.TemporaryDirectory() as folder:
        flags = ("-m", SPM, "--temp", 0, "-n", 8, "-q", "--chat-template", thinking_template(folder),
                 "--reasoning-display", "show")
        given = succeeded(run(*flags, "--jinja-vars", '{"extra": " world"}', "-p", "Hello")).out
        expect_equal(given, succeeded(run(*flags, "-p", "Hello world")).out, "the answer")


@test
def a_template_without_system_role_still_gets_the_system_prompt():
    flags = ("-m", SPM, "--temp", 0, "-n", 8, "-q", "--chat-template", "gemma")
    with_system = succeeded(run(*flags, "-sys", "Be kind.", "-p", "Hello")).out
    expect_equal(with_system, succeeded(run(*flags, "-p", "Be kind.\n\nHello")).out, "the answer")


@test
def stop_texts_end_the_answer():
    whole = answer_of(prompt="Hello", n=30)
    stop = whole[5:8]
    expect_equal(answer_of("--stop", stop, prompt="Hello", n=30), whole[:whole.index(stop)] + "\n", "the text before it")
    raw = ("-m", SPM, "--raw", "--temp", 0, "-n", 30, "-q", "-p", "Hello")
    whole = succeeded(run(*raw)).out
    stop = whole[5:8]
    expect_equal(succeeded(run(*raw, "--stop", stop)).out, whole[:whole.index(stop)], "in a completion")


@test
def single_turn_ends_on_a_terminal_too():
    with chat("--single-turn", "-p", "Hello") as terminal:
        expect_equal(terminal.wait(), 0, "exit code")
        expect(answer_of(prompt="Hello").strip() in terminal.text, "the answer", terminal.text)


@test
def an_answer_into_a_file_ends_the_chat():
    with tempfile.TemporaryFile() as file, chat("-p", "Hello", stdout=file) as terminal:
        expect_equal(terminal.wait(), 0, "exit code")
        file.seek(0)
        expect_equal(file.read().decode(), answer_of(prompt="Hello"), "the file")


@test
def piped_input_joins_the_prompt():
    piped = succeeded(run(*MODEL, "-n", 8, "-q", "-p", "Review this", stdin="some text")).out
    expect_equal(piped, answer_of(prompt="Review this\n\nsome text"), "the answer")


@test
def raw_means_plain_completion():
    text = succeeded(run("template", "--chat-template", "chatml", "--context", "/dev/stdin",
                         stdin=json.dumps({"messages": [{"role": "user", "content": "Hello"}],
                                           "add_generation_prompt": True}))).out
    raw = succeeded(run("-m", SPM, "--raw", "--temp", 0, "-n", 8, "-q", "-p", text)).out
    expect_equal(answer_of(prompt="Hello"), raw + "\n", "the template applied by hand")


@test_each("--chat-template nonsense", "--chat-template /nowhere.jinja", "--jinja-vars [1]", "--jinja-vars {",
           "--raw --chat-template chatml", "--raw --system-prompt x", "--reasoning loud", "--context-overflow maybe",
           "-sysf /nowhere", "-n -3", "--chat-template broken", "--stop=")
def wrong_use_is_one_line(flags):
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder) / "broken.jinja"
        broken.write_text("{% if %}")
        arguments = flags.replace("broken", str(broken)).split()
        result = run("-m", SPM, "-p", "x", *arguments)
        expect(result.code in (1, 2), "a failure", result)
        expect_equal(result.err.count("\n"), 1, f"lines of {result}")
        expect_equal(result.out, "", "standard output")


main()
