"""Trained models continue prompts as llama.cpp and its relatives do."""

import json

from completions import PROMPTS, expect_recorded_text, expect_recorded_tokens, recorded
from harness import expect, expect_equal, main, run, shared, skip, test, test_each
from models import cpu_levels, succeeded


def ways_to_run():
    """(flags, environment): the definitions, and the CPU on every level."""
    return [(("--device", "ref"), {})] + [((), {"INFER_CPU": level}) for level in cpu_levels()]


@test_each(*PROMPTS)
def prompt_has_the_recorded_tokens(index):
    model, completion = recorded(index)
    tokens = json.loads(succeeded(run("tokenize", "-m", model, "--json", completion["prompt"])).out)["tokens"]
    expect_equal(tokens, completion["prompt_tokens"], "tokens of the prompt")


@test_each(*PROMPTS)
def recorded_tokens_are_the_likeliest(index):
    for flags, env in ways_to_run():
        expect_recorded_tokens(*recorded(index), flags, env)


@test_each(*PROMPTS)
def greedy_text_is_the_recorded_text(index):
    for flags, env in ways_to_run():
        expect_recorded_text(*recorded(index), flags, env)


@test
def stories260K_tells_its_story():
    expected = ", there was a little girl named Lily. She loved to play outside in the park."
    for flags, env in ways_to_run():
        result = succeeded(run("run", "-m", shared("models", "stories260K.gguf"), "-p", "Once upon a time", "-n", 60,
                               "--temp", 0, "--quiet", *flags, env=env))
        expect(result.out.startswith(expected), f"{flags} {env}: expected {expected!r}", result)


@test
def stories260K_prompts_have_the_recorded_tokens():
    for completion in json.loads(shared("goldens", "generate", "stories260K.json").read_text()):
        result = succeeded(run("tokenize", "-m", shared("models", "stories260K.gguf"), "--json", completion["prompt"]))
        expect_equal(json.loads(result.out)["tokens"], completion["prompt_tokens"], "tokens of the prompt")


@test_each(*PROMPTS)
def stories260K_continues_as_recorded(index):
    shared("goldens", "generate", "stories260K.json")
    skip(f"prompt {index}: recorded by an engine that differs from llama.cpp on heads of 8 values")


main()
