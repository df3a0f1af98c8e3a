"""Perplexity and KL divergence, against the same sums over the output of `infer logprobs`, and against a recording."""

import json
import math
import pathlib
import re
import tempfile

from harness import expect, expect_equal, main, run, shared, test, test_each
from models import SPM, logprobs, reference_model, succeeded

CONTEXT = 32
RANGE = 16  # log-probabilities are clamped to this far below the best one
TEXT = "The house was on the hill, and the girl had a ball. " * 12


def text_file(folder, text=TEXT):
    path = pathlib.Path(folder) / "text.txt"
    path.write_text(text)
    return path


def perplexity(model, *flags):
    return json.loads(succeeded(run("perplexity", "-m", model, "-c", CONTEXT, "--json", *flags)).out)


def scored_positions(model, file, chunks):
    """Per scored position: ({token: log-probability}, the token that follows)."""
    tokens = json.loads(succeeded(run("tokenize", "-m", model, "--file", file, "--json")).out)["tokens"]
    bos = json.loads(succeeded(run("tokenize", "-m", model, "--json", "")).out)["tokens"]
    for i in range(chunks):
        chunk = tokens[i * CONTEXT:(i + 1) * CONTEXT]
        positions = logprobs(model, bos + chunk[len(bos):], "-c", CONTEXT)
        for position in range(CONTEXT // 2, CONTEXT - 1):
            yield positions[position], chunk[position + 1]


@test_each("tinyshakespeare.txt", "wiki.test.raw")
def recorded_perplexity(text):
    recording = shared("goldens", "generate", "README.md").read_text()
    context, chunks = map(int, re.search(r"context (\d+), first (\d+) chunks", recording).groups())
    recorded = float(re.search(rf"{re.escape(text)} ([\d.]*\d)", recording).group(1))
    found = json.loads(succeeded(run("perplexity", "-m", shared("models", "stories260K.gguf"), "-f",
                                     shared("text", text), "-c", context, "--chunks", chunks, "--json")).out)
    expect_equal(found["chunks"], chunks, "chunks")
    expect(abs(found["perplexity"] / recorded - 1) < 0.003, f"{recorded} to 0.3 %", found)


@test
def perplexity_is_what_log_probabilities_say():
    with tempfile.TemporaryDirectory() as folder:
        file = text_file(folder)
        losses = [-position[token] for position, token in scored_positions(SPM, file, 3)]
        mean = sum(losses) / len(losses)
        error = math.sqrt(sum((x - mean) ** 2 for x in losses) / len(losses) / (len(losses) - 1))
        found = perplexity(SPM, "-f", file, "--chunks", 3)
        expect_equal((found["tokens"], found["chunks"], found["context"]), (len(losses), 3, CONTEXT), "what was scored")
        expect(abs(found["perplexity"] / math.exp(mean) - 1) < 1e-6, f"{math.exp(mean)}", found)
        expect(abs(found["standard_error"] / (math.exp(mean) * error) - 1) < 1e-5, f"{math.exp(mean) * error}", found)
        for flags in (("-t", 1), ("-t", 2), ("--device", "ref", "-ctk", "f16", "-ctv", "f16", "-ngl", 0)):
            expect_equal(perplexity(SPM, "-f", file, "--chunks", 3, *flags), found, f"with {flags}")


@test
def divergence_is_what_log_probabilities_say():
    base, other = reference_model("quant-q8_0")[0], reference_model("quant-q4_k")[0]
    with tempfile.TemporaryDirectory() as folder:
        file, recording = text_file(folder), pathlib.Path(folder) / "base.logits"
        perplexity(base, "-f", file, "--chunks", 2, "--save-logits", recording)
        same = perplexity(base, "--kl-divergence", recording)["kl_divergence"]
        # The recording has 16 bits per log-probability, over a range of at most RANGE.
        rounding = RANGE / 65535 / 2
        expect(abs(same["mean"]) < rounding and same["maximum"] < rounding, "no divergence from itself", same)
        expect_equal(same["same_top_token"], 1, "the same best tokens")

        found = perplexity(other, "--kl-divergence", recording)
        pairs = list(zip(scored_positions(base, file, 2), scored_positions(other, file, 2)))
        expected = sorted(sum(math.exp(p) * (p - q[token]) for token, p in base_position.items())
                          for (base_position, _), (q, _) in pairs)
        mean = sum(expected) / len(expected)
        same_top = sum(max(p, key=p.get) == max(q, key=q.get) for (p, _), (q, _) in pairs) / len(pairs)
        ratio = math.exp(sum(max(p[t], max(p.values()) - RANGE) - q[t] for (p, t), (q, _) in pairs) / len(pairs))
        kl = found["kl_divergence"]
        expect(mean > 1e-3, "two models that differ", mean)
        expect(abs(kl["mean"] / mean - 1) < 1e-3, f"mean {mean}", kl)
        middle = (expected[(len(expected) - 1) // 2] + expected[len(expected) // 2]) / 2
        expect(abs(kl["median"] / middle - 1) < 1e-3, f"median {middle}", kl)
        expect(abs(kl["maximum"] / expected[-1] - 1) < 1e-3, f"maximum {expected[-1]}", kl)
        expect(abs(kl["same_top_token"] - same_top) < 1e-9, f"same top token {same_top}", kl)
        expect(abs(kl["perplexity_ratio"] / ratio - 1) < 1e-3, f"ratio {ratio}", kl)


@test
def fewer_chunks_of_a_recording_can_be_compared():
    with tempfile.TemporaryDirectory() as folder:
        recording = pathlib.Path(folder) / "base.logits"
        whole = perplexity(SPM, "-f", text_file(folder), "--chunks", 4, "--save-logits", recording)
        same = perplexity(SPM, "--kl-divergence", recording)
        expect_equal(same["perplexity"], whole["perplexity"], "the perplexity")
        expect(abs(same["kl_divergence"]["base_perplexity"] / whole["perplexity"] - 1) < 1e-4, "as recorded", same)
        expect_equal(perplexity(SPM, "--kl-divergence", recording, "--chunks", 2)["chunks"], 2, "chunks")
        expect_equal(perplexity(SPM, "--kl-divergence", recording)["chunks"], 4, "chunks")


@test
def wrong_input_is_refused():
    def refused(what, *flags):
        result = run("perplexity", "-m", SPM, "-c", CONTEXT, *flags)
        expect(result.code in (1, 2) and result.err.count("\n") == 1 and not result.out, what, result)

    with tempfile.TemporaryDirectory() as folder:
        file, recording = text_file(folder), pathlib.Path(folder) / "base.logits"
        perplexity(SPM, "-f", file, "--chunks", 2, "--save-logits", recording)
        refused("no text")
        refused("no such text", "-f", "/nowhere")
        refused("both", "-f", file, "--save-logits", recording, "--kl-divergence", recording)
        refused("no such folder", "-f", file, "--save-logits", "/nowhere/x")
        short = pathlib.Path(folder) / "short.txt"
        short.write_text("too short")
        refused("a short text", "-f", short)
        refused("a context of 3", "-f", file, "-c", 3)
        whole = recording.read_bytes()
        damaged = pathlib.Path(folder) / "damaged"
        for bytes_ in (b"", whole[:5], whole[:50], whole[:-1], whole + b"x", b"x" + whole[1:],
                       whole[:8] + b"\xff" * 12 + whole[20:], whole[:20] + b"\xff" * 4 + whole[24:]):
            damaged.write_bytes(bytes_)
            refused("a damaged recording", "--kl-divergence", damaged)
        other = reference_model("quant-q8_0")[0]
        result = run("perplexity", "-m", other, "--kl-divergence", recording)
        expect(result.code == 2 and "tokens" in result.err, "another vocabulary", result)
        expect_equal(sorted(p.name for p in pathlib.Path(folder).iterdir()),
                     ["base.logits", "damaged", "short.txt", "text.txt"], "files left")


main()
