"""Trained models continue prompts as llama.cpp and its relatives do."""

import json

from completions import RECORDED, expect_recorded_text, expect_recorded_tokens, recorded
from harness import expect_equal, main, run, test_each
from models import cpu_levels, succeeded


def ways_to_run():
    """(flags, environment): the reference device, and the CPU at every level."""
    return [(("--device", "ref"), {})] + [((), {"INFER_CPU": level}) for level in cpu_levels()]


@test_each(*RECORDED)
def prompt_has_the_recorded_tokens(case):
    model, completion = recorded(case)
    tokens = json.loads(succeeded(run("tokenize", "-m", model, "--json", completion["prompt"])).out)["tokens"]
    expect_equal(tokens, completion["prompt_tokens"], "tokens of the prompt")


@test_each(*RECORDED)
def recorded_tokens_are_the_likeliest(case):
    for flags, env in ways_to_run():
        expect_recorded_tokens(*recorded(case), flags, env)


@test_each(*RECORDED)
def greedy_text_is_the_recorded_text(case):
    for flags, env in ways_to_run():
        expect_recorded_text(*recorded(case), flags, env)


main()
