"""The models that ship with the program answer as recorded, and match their manifest."""

import functools
import hashlib
import json
import re

from accelerators import FULL
from harness import SOURCE_DIR, expect, expect_equal, main, run, test, test_each
from models import DEMO, DEMO_DRAFT, DEMO_DRAFT_F16, DEMO_PREDICTING, DEMO_TARGET, logprobs, succeeded

ANSWERS = {entry["name"]: entry for entry in json.loads((SOURCE_DIR / "tests/data/demo_answers.json").read_text())}
MOST_BYTES = 16_000_000
DRAFT_DEPTH = 4
LEAST_ACCEPTANCE = 0.6


def tokens_of(model, text):
    return json.loads(succeeded(run("tokenize", "-m", model, "--json", text)).out)["tokens"]


@test_each(*ANSWERS)
def answer_is_the_recorded_one(name):
    """The prompts are already rendered by the chat template, so this test needs no template. Every fifth answer also on two
    threads, and all of them with INFER_TEST_FULL=1."""
    entry = ANSWERS[name]
    for threads in (1, 2) if FULL or list(ANSWERS).index(name) % 5 == 0 else (1,):
        result = succeeded(run("run", "-m", DEMO_TARGET, "--raw", "--temp", 0, "-n", 200, "-t", threads, "--quiet",
                               "-p", entry["prompt"]))
        expect(result.out == entry["answer"], f"-t {threads}: expected {entry['answer']!r}", result)


@test
def answers_cover_every_skill():
    skills = {"addition", "subtraction", "multiplication", "numbers", "words", "lists", "reading", "memory", "world",
              "knowledge", "itself", "manners", "system prompt", "story", "verse", "plain text", "json", "tool call",
              "tool answer", "thinking"}
    expect_equal(skills - {entry["skill"] for entry in ANSWERS.values()}, set(), "skills without a prompt")
    expect(len(ANSWERS) >= 30, "at least 30 prompts")


@test
def manifest_names_the_files():
    rows = re.findall(r"^\| `(\S+\.gguf)` \| ([\d,]+) \| `([0-9a-f]{64})` \|", (DEMO / "MANIFEST.md").read_text(), re.M)
    expect_equal(sorted(name for name, _, _ in rows), sorted(path.name for path in DEMO.glob("*.gguf")), "files")
    for name, size, digest in rows:
        content = (DEMO / name).read_bytes()
        expect_equal(len(content), int(size.replace(",", "")), f"bytes of {name}")
        expect_equal(hashlib.sha256(content).hexdigest(), digest, f"sha256 of {name}")
    expect(sum(path.stat().st_size for path in DEMO.glob("*.gguf")) < MOST_BYTES, "small enough to ship")


@test
def widths_are_multiples_of_256():
    """Rows must fit every quantized type."""
    for model in (DEMO_TARGET, DEMO_PREDICTING, DEMO_DRAFT, DEMO_DRAFT_F16):
        tensors = json.loads(succeeded(run("inspect", model, "--tensors", "--json")).out)["tensors"]
        matrices = [tensor for tensor in tensors if len(tensor["shape"]) > 1]
        expect(matrices, f"{model.name} has matrices")
        for tensor in matrices:
            expect(row_length(tensor["shape"]) % 256 == 0, f"{model.name}: {tensor['name']} {tensor['shape']}")


def row_length(shape):
    """The fastest dimension, which `inspect` prints last."""
    return shape[-1]


@test
def draft_and_target_have_one_vocabulary():
    text = "<|im_start|>user\nWhere does Mira live? 12 + 7 = \u017c\u00f3\u0142w \U0001f422\t<tool_call><think>\r\n"
    tokens = tokens_of(DEMO_TARGET, text)
    for model in (DEMO_DRAFT, DEMO_DRAFT_F16):
        expect_equal(tokens_of(model, text), tokens, f"tokens of {model.name}")


@test
def the_target_with_a_prediction_layer_computes_the_same():
    entry = ANSWERS["home"]
    ids = ",".join(map(str, tokens_of(DEMO_TARGET, entry["prompt"] + entry["answer"])))
    plain, predicting = (succeeded(run("logprobs", "-m", model, "--tokens", ids, "--json")).out
                         for model in (DEMO_TARGET, DEMO_PREDICTING))
    expect_equal(predicting, plain, "log-probabilities")


@functools.cache
def likeliest(model, tokens):
    """The likeliest next token after each of the tokens."""
    return [max(position, key=position.get) for position in logprobs(model, tokens, top=1)]


def accepted(draft, prompt, answer):
    """(accepted, drafted) when the draft guesses up to DRAFT_DEPTH tokens of the answer at a time."""
    guesses = likeliest(draft, tuple(prompt + answer))[len(prompt) - 1:]
    right = [guess == token for guess, token in zip(guesses, answer)]
    n_accepted = n_drafted = 0
    at = 1  # the target's own prompt step gives the first token
    while at < len(answer):
        ahead = right[at:at + DRAFT_DEPTH]
        n_right = ahead.index(False) if False in ahead else len(ahead)
        n_accepted, n_drafted, at = n_accepted + n_right, n_drafted + len(ahead), at + n_right + 1
    return n_accepted, n_drafted


@test_each(DEMO_DRAFT.name, DEMO_DRAFT_F16.name)
def most_drafted_tokens_are_accepted(name):
    counts = []
    for entry in ANSWERS.values():
        prompt = tokens_of(DEMO_TARGET, entry["prompt"])
        counts.append(accepted(DEMO / name, prompt, tokens_of(DEMO_TARGET, entry["answer"])))
    n_accepted, n_drafted = (sum(column) for column in zip(*counts))
    expect(n_accepted >= LEAST_ACCEPTANCE * n_drafted, f"{n_accepted} of {n_drafted} drafted tokens are accepted")


main()
