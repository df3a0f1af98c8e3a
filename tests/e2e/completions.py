"""Recorded completions of a trained model, and what a program must do that runs the same one."""

import json

from harness import expect, expect_equal, run, shared
from models import logprobs, succeeded

RECORDED = "tinystories-656k-f32"
PROMPTS = range(4)
# Where the recording's two best logits lie closer than this, rounding may decide between them.
SURE_GAP = 0.004


def recorded(index):
    """(model, one recorded completion)."""
    completions = json.loads(shared("goldens", "generate", f"{RECORDED}.json").read_text())
    expect_equal(len(completions), len(PROMPTS), "recorded prompts")
    return shared("models", f"{RECORDED}.gguf"), completions[index]


def expect_recorded_tokens(model, completion, flags, env=None):
    """Each recorded token is the likeliest, given those before it, so that one tie does not end the comparison."""
    prompt, tokens = completion["prompt_tokens"], completion["tokens"]
    limit = SURE_GAP if completion["smallest_logit_gap"] < SURE_GAP else 0
    positions = logprobs(model, prompt + tokens, *flags, top=10, env=env)
    for i, token in enumerate(tokens):
        after = positions[len(prompt) - 1 + i]
        gap = max(after.values()) - after.get(token, float("-inf"))
        expect(gap <= limit, f"{flags} {env}: token {i} of the text is {gap:.4f} below the best, at most {limit}")


def expect_recorded_text(model, completion, flags, env=None):
    """Up to the first step that was nearly tied; that is the whole text for most prompts."""
    result = succeeded(run("-m", model, "-p", completion["prompt"], "--temp", 0, "-n", len(completion["tokens"]),
                           "--quiet", *flags, env=env))
    sure = completion["sure_text"]
    expect(result.out.startswith(sure), f"{flags} {env}: expected {sure!r}", result)
    expect(abs(len(result.out) - len(completion["text"])) < 100, "as many tokens as recorded", result)
