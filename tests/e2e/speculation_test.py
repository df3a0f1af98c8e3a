"""infer run with a draft model and with look-up: the same text, and one clear line for what is not possible.

INFER_TEST_FULL=1 takes all temperatures and numbers of layers on a Vulkan device instead of a few.
"""

import functools
import re

from accelerators import FULL
from harness import expect, expect_equal, main, run, test, test_each
from models import DATA, DEMO_DRAFT, DEMO_DRAFT_F16, DEMO_TARGET, on_one_thread, succeeded
from vulkan_devices import on_device

PROMPT = "Once upon a time there was a robot. Once upon a time"
KINDS = {"draft": ["-md", DEMO_DRAFT_F16], "lookup": ["--spec", "lookup"],
         "both": ["-md", DEMO_DRAFT, "--spec", "lookup", "--draft-max", 4]}


@functools.cache
def outcome(*flags, n=120):
    """(text, hash of the last logits)"""
    reply = succeeded(run("run", "-m", DEMO_TARGET, "--raw", "-p", PROMPT, "-n", n, "--ignore-eos", "--seed", 5, "-v",
                          *on_one_thread(flags)))
    return reply.out, re.search(r"logits ([0-9a-f]{16})", reply.err)[1]


@test_each(*[(t, kind) for t in (0, 0.7, 1) for kind in KINDS])
def drafts_change_no_text(case):
    temperature, kind = case
    flags = ("--temp", temperature)
    expect_equal(outcome(*flags, *KINDS[kind]), outcome(*flags), "text and logits")


CHAINS = {
    "penalties": ["--repeat-penalty", 1.2, "--presence-penalty", 0.3, "--frequency-penalty", 0.1],
    "biases": ["--top-k", 0, *[f"--logit-bias={token}-100" for token in range(300, 400)]],
    "dry": ["--dry-multiplier", 0.8, "--typical", 0.9],
    "mirostat": ["--mirostat", 2],
}


@test_each(*CHAINS)
def drafts_change_no_text_of_any_chain(name):
    flags = ("--temp", 0.9, *CHAINS[name])
    expected = outcome(*flags)
    expect(expected != outcome("--temp", 0.9), "the chain matters", expected)
    for kind, drafts in KINDS.items():
        expect_equal(outcome(*flags, *drafts), expected, f"text and logits, {kind}")


@test
def drafts_beyond_a_stop_string_are_not_printed():
    plain = outcome("--temp", 0)[0]
    words = plain.split()
    stop = next(" ".join(pair) for pair in zip(words[25:], words[26:]) if plain.count(" ".join(pair)) == 1)
    expected = succeeded(run("run", "-m", DEMO_TARGET, "--raw", "-p", PROMPT, "-n", 120, "--temp", 0, "--ignore-eos",
                             "-t", 1, "--stop", stop)).out
    expect(plain.startswith(expected.rstrip()) and stop not in expected, "it ends before the stop string", expected)
    for kind, drafts in KINDS.items():
        found = succeeded(run("run", "-m", DEMO_TARGET, "--raw", "-p", PROMPT, "-n", 120, "--temp", 0, "--ignore-eos",
                              "-t", 2, "--stop", stop, *drafts)).out
        expect_equal(found, expected, f"text, {kind}")


@test_each(*[(t, kind, n) for n in ((1, 3, "all") if FULL else (3,)) for t in ((0, 0.7, 1) if FULL else (0.7,))
             for kind in KINDS])
def drafts_change_no_text_on_a_vulkan_device(case):
    """The draft's layers are on the device too."""
    temperature, kind, n_layers = case
    flags = (*on_device(n_layers), "--deterministic", "--temp", temperature)
    expect_equal(outcome(*flags, *KINDS[kind], n=40), outcome(*flags, n=40), "text and logits")


def refused(*flags):
    reply = run("run", "-m", DEMO_TARGET, "-p", "x", "-n", 1, *flags)
    expect(reply.code != 0, "a non-zero exit", reply)
    lines = reply.err.strip().splitlines()
    expect_equal(len(lines), 1, "lines of the message")
    return lines[0]


@test
def impossible_drafts_are_refused_in_one_line():
    expect("is not smaller than the model" in refused("-md", DEMO_TARGET), "a draft as large as the model")
    expect("missing.gguf" in refused("-md", "missing.gguf"), "no such file")
    expect("--draft-min 5 is more than --draft-max 3" in refused("-md", DEMO_DRAFT_F16, "--draft-min", 5,
                                                                 "--draft-max", 3), "limits that contradict")
    expect("--draft-model" in refused("--draft-min", 2), "limits of a draft that is not there")
    expect("off" in refused("--spec", "ngram"), "an unknown source")


@test_each("glm4moe-nextn", "qwen35-nextn", "deepseek2-nextn")
def a_prediction_layer_changes_no_text(name):
    model = DATA / "arch" / f"{name}.gguf"
    args = ("run", "-m", model, "--raw", "-p", "a b c d", "-n", 60, "--temp", 0, "-t", 1)
    expected = succeeded(run(*args, "--spec", "off")).out
    for source in ("auto", "mtp", "lookup"):
        expect_equal(succeeded(run(*args, "--spec", source)).out, expected, f"the text with --spec {source}")
    expect("drafted" in succeeded(run(*args, "--spec", "mtp", "--stats")).err, "drafts are reported")


@test
def a_model_without_a_prediction_layer_says_so():
    result = run("run", "-m", DATA / "arch" / "qwen3moe.gguf", "--raw", "-p", "a", "-n", 2, "--spec", "mtp")
    expect_equal((result.code, result.out), (1, ""), f"refused\n{result}")
    expect("no prediction layer" in result.err and result.err.count("\n") == 1, "one line", result)


main()
