"""Completions of trained models recorded with llama.cpp, and checks for a program that runs the same models."""

import json

from harness import expect, expect_equal, run, shared
from models import logprobs, succeeded

PROMPTS = 4  # of each model
RECORDED = [f"{model}/{prompt}" for model in ("tinystories-656k-f32", "stories260K") for prompt in range(PROMPTS)]
# If the recording's two best logits are closer than this, rounding may decide between them.
SURE_GAP = 0.004


def recorded(case):
    """(path of the model, one recorded completion) of one of RECORDED."""
    model, prompt = case.split("/")
    completions = json.loads(shared("goldens", "generate", f"{model}.json").read_text())
    expect_equal(len(completions), PROMPTS, f"prompts recorded for {model}")
    return shared("models", f"{model}.gguf"), completions[int(prompt)]


def expect_recorded_tokens(model, completion, flags, env=None):
    """Each recorded token is the likeliest, given those before it, so one tie does not end the comparison."""
    prompt, tokens = completion["prompt_tokens"], completion["tokens"]
    limit = SURE_GAP if completion["smallest_logit_gap"] < SURE_GAP else 0
    positions = logprobs(model, prompt + tokens, *flags, top=10, env=env)
    for i, token in enumerate(tokens):
        after = positions[len(prompt) - 1 + i]
        gap = max(after.values()) - after.get(token, float("-inf"))
        expect(gap <= limit, f"{flags} {env}: token {i} of the text is {gap:.4f} below the best, at most {limit}")


def expect_recorded_text(model, completion, flags, env=None):
    """Up to the first near tie; for most prompts that is the whole text."""
    result = succeeded(run("-m", model, "-p", completion["prompt"], "--temp", 0, "-n", len(completion["tokens"]),
                           "--quiet", *flags, env=env))
    sure = completion["sure_text"]
    expect(result.out.startswith(sure), f"{flags} {env}: expected {sure!r}", result)
    expect(abs(len(result.out) - len(completion["text"])) < 100, "as many tokens as recorded", result)
