"""infer run with a draft model and with look-up: the same text, and one clear line for what cannot be."""

import re

from harness import expect, expect_equal, main, run, test, test_each
from models import DEMO_DRAFT_F16, DEMO_DRAFT, DEMO_TARGET

PROMPT = "Once upon a time there was a robot. Once upon a time"


def text_of(*flags, model=DEMO_TARGET):
    reply = run("run", "-m", model, "--raw", "-p", PROMPT, "-n", 120, "--ignore-eos", "--seed", 5, *flags)
    expect_equal(reply.code, 0, "exit code")
    return reply


@test_each(*[(t, kind) for t in (0, 0.7, 1) for kind in ("draft", "lookup", "both")])
def drafts_change_no_text(case):
    temperature, kind = case
    flags = {"draft": ["-md", DEMO_DRAFT_F16], "lookup": ["--spec", "lookup"],
             "both": ["-md", DEMO_DRAFT, "--spec", "lookup", "--draft-max", 4]}[kind]
    plain = text_of("--temp", temperature)
    drafted = text_of("--temp", temperature, *flags)
    expect_equal(drafted.out, plain.out, "the text")
    hashes = [re.search(r"logits ([0-9a-f]{16})", r.err)[1] for r in (plain, drafted)]
    expect_equal(hashes[1], hashes[0], "hash of the last logits")


def refused(*flags):
    reply = run("run", "-m", DEMO_TARGET, "-p", "x", "-n", 1, *flags)
    expect(reply.code != 0, "a non-zero exit", reply)
    lines = reply.err.strip().splitlines()
    expect_equal(len(lines), 1, "lines of the message")
    return lines[0]


@test
def drafts_that_cannot_be_are_refused_in_one_line():
    expect("is not smaller than the model" in refused("-md", DEMO_TARGET), "a draft as large as the model")
    expect("missing.gguf" in refused("-md", "missing.gguf"), "no such file")
    expect("--draft-min 5 is more than --draft-max 3" in refused("-md", DEMO_DRAFT_F16, "--draft-min", 5,
                                                                 "--draft-max", 3), "limits that contradict")
    expect("--draft-model" in refused("--draft-min", 2), "limits of a draft that is not there")
    expect("off" in refused("--spec", "ngram"), "an unknown source")


main()
