"""An answer's text is the same everywhere: `infer run`, the chat in the terminal, and the server, whole and
streamed. The model randomly generates reasoning tags, incomplete UTF-8, parts of stop strings, and its end."""

import json
import pathlib
import re
import struct
import tempfile

from harness import expect, expect_equal, main, run, test
from models import SPM, succeeded
from pseudo_terminal import Terminal
from serving import Server

PROMPT = "Well?"
STOPS = ["DDDE", "aaa", "D</think>a"]
CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
TEMPLATES = {"chatml": CHATML, "begins with reasoning": CHATML + "<think>\n"}
SEEDS = range(20)


def with_tags(model):
    """The model with <think> and </think> in its vocabulary, in place of words of the same length."""
    for word, tag in ((" girl", "<think>"), (" named", "</think>")):
        old, new = word.replace(" ", "▁").encode(), tag.encode()
        model = model.replace(struct.pack("<Q", len(old)) + old, struct.pack("<Q", len(new)) + new, 1)
    return model


def vocabulary(model):
    """{text of a token: id}"""
    at = model.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens") + 8
    count, = struct.unpack_from("<Q", model, at)
    at += 8
    ids = {}
    for i in range(count):
        length, = struct.unpack_from("<Q", model, at)
        ids.setdefault(model[at + 8:at + 8 + length], i)
        at += 8 + length
    return ids


def biases(model):
    """{token: bias} that leaves a dozen tokens to choose from."""
    ids = vocabulary(model)
    common = {"<think>": 42, "</think>": 42, "E": 43, "N": 43, "D": 43, "a": 43, "<0xC3>": 44, "<0xA9>": 44, "<0x0A>": 42,
              "▁": 42, "</s>": 40}
    return {ids[text.encode()]: bias for text, bias in common.items()}


def flags(path, template, seed, stops):
    return ["-m", path, "-t", 1, "--chat-template", template, "--temp", 1, "-n", 40, "-s", seed, "-q",
            *[f"--logit-bias={token}+{bias}" for token, bias in biases(path.read_bytes()).items()],
            *[f"--stop={stop}" for stop in stops]]


def shown_by_run(content, reasoning):
    """The output of a run for an answer, not on a terminal."""
    text = f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""
    return text + content + ("" if not content or content.endswith("\n") else "\n")


def chat_in_terminal(folder, arguments):
    """(content, reasoning) of the first answer, from the file that /save writes."""
    saved = folder / "chat.json"
    saved.unlink(missing_ok=True)
    with Terminal(*arguments) as terminal:
        terminal.expect("> ")
        terminal.line(PROMPT)
        terminal.expect(r"(.*)\n> ")
        terminal.line(f"/save {saved}")
        terminal.expect("2 messages saved")
        terminal.line("/exit")
        expect_equal(terminal.wait(), 0, "exit code")
    message = json.loads(saved.read_text())["messages"][-1]
    return message["content"], message.get("reasoning_content", "")


def answers_of_server(server, path, seed, stops):
    """(content, reasoning), whole and streamed."""
    body = {"messages": [{"role": "user", "content": PROMPT}], "temperature": 1, "max_tokens": 40, "seed": seed,
            "stop": stops, "logit_bias": {str(t): b for t, b in biases(path.read_bytes()).items()}}
    message = server.answer("/v1/chat/completions", body)["choices"][0]["message"]
    deltas = [c["delta"] for chunk in server.stream("/v1/chat/completions", body) for c in chunk["choices"]]
    streamed = tuple("".join(d.get(name, "") for d in deltas) for name in ("content", "reasoning_content"))
    return (message["content"], message.get("reasoning_content", "")), streamed


@test
def an_answer_reads_the_same_everywhere():
    seen = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "tags.gguf"
        path.write_bytes(with_tags(SPM.read_bytes()))
        for template_name, source in TEMPLATES.items():
            template = folder / "template.jinja"
            template.write_text(source)
            with Server(path, "-t", 1, "--chat-template", template) as server:
                for seed in SEEDS:
                    stops = STOPS if seed % 2 else []
                    arguments = flags(path, template, seed, stops)
                    whole, streamed = answers_of_server(server, path, seed, stops)
                    case = f"{template_name}, seed {seed}"
                    expect_equal(streamed, whole, f"streamed, {case}")
                    printed = succeeded(run(*arguments, "--reasoning-display", "show", "-p", PROMPT)).out
                    expect_equal(printed, shown_by_run(*whole), f"printed by a run, {case}")
                    if seed < 4:
                        expect_equal(chat_in_terminal(folder, arguments), whole, f"chat in the terminal, {case}")
                    seen.append(whole)
    together = "".join(content + reasoning for content, reasoning in seen)
    expect("\u00e9" in together and "\ufffd" in together, "whole and broken characters occur", together)
    expect(any(r and c for c, r in seen) and any(c and not r for c, r in seen), "reasoning and none", seen)
    expect(re.search("</?think>", together), "tags in the answer proper are text", together)


@test
def a_completion_reads_the_same_everywhere():
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "tags.gguf")
        path.write_bytes(with_tags(SPM.read_bytes()))
        logit_bias = biases(path.read_bytes())
        with Server(path, "-t", 1) as server:
            for seed in SEEDS:
                stops = STOPS if seed % 2 else []
                body = {"temperature": 1, "max_tokens": 40, "seed": seed, "stop": stops,
                        "logit_bias": {str(t): b for t, b in logit_bias.items()}}
                text = server.complete(PROMPT, **body)["choices"][0]["text"]
                printed = succeeded(run("-m", path, "-t", 1, "--raw", "--temp", 1, "-n", 40, "-s", seed, "-q", "-p", PROMPT,
                                        *[f"--logit-bias={t}+{b}" for t, b in logit_bias.items()],
                                        *[f"--stop={stop}" for stop in stops])).out
                expect_equal(printed, text, f"seed {seed}")


main()
