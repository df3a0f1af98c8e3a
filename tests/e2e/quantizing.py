"""Helpers for tests of infer quantize: a small model, quantized files, their contents, refusals."""

import functools
import json
import os
import pathlib
import sys
import tempfile

from harness import SOURCE_DIR, expect, expect_equal, run
from models import succeeded

sys.path.insert(0, str(SOURCE_DIR / "scripts"))
import make_fixtures as fixtures  # noqa: E402

TYPES = {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
         "Q2_K_S": 21, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16,
         "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "MXFP4": 38,
         "IQ1_S": 24, "IQ1_M": 31, "IQ2_XXS": 19, "IQ2_XS": 20, "IQ2_S": 28, "IQ2_M": 29, "IQ3_XXS": 23,
         "IQ3_XS": 22, "IQ3_S": 26, "IQ3_M": 27, "TQ1_0": 36, "TQ2_0": 37, "Q1_0": 40, "Q2_0": 41}
PROMPT = ("-p", "once upon a time", "-n", 24, "--temp", 0, "--ignore-eos", "--quiet")
WRONG_USAGE, FAILED, INTERRUPTED = 2, 1, 130


@functools.cache
def folder():
    """A folder that exists as long as this program runs."""
    keeper = tempfile.TemporaryDirectory()
    folder.keeper = keeper
    return pathlib.Path(keeper.name)


def make_model(change=None):
    """A llama model of width 256, which every type suits; `change` may alter {tensor: (shape, floats)}."""
    shape = {"width": 256, "n_layer": 2, "n_head": 4, "n_kv_head": 2, "n_ff": 256}
    vocabulary, n_vocab, n_special = fixtures.spm_vocabulary()
    tensors, uniform = fixtures.weights(3, biases=False, **shape)
    tensors["token_embd.weight"] = uniform(1, n_vocab, 256)
    _, output = uniform(0.2, n_vocab, 256)
    output[:n_special * 256] = [0.0] * (n_special * 256)
    tensors["output.weight"] = ((n_vocab, 256), output)
    if change:
        change(tensors)
    metadata = {**fixtures.hyper_parameters("llama", context=512, **shape), **vocabulary}
    return fixtures.gguf(metadata, tensors)


@functools.cache
def model():
    path = folder() / "model.gguf"
    path.write_bytes(make_model())
    return path


@functools.cache
def quantized(type_name):
    path = folder() / f"{type_name}.gguf"
    succeeded(run("quantize", model(), path, type_name))
    return path


def inspect(path):
    return json.loads(succeeded(run("inspect", path, "--json")).out)


def keys(path):
    return {entry["key"]: entry.get("value") for entry in inspect(path)["metadata"]}


def types(path):
    return {tensor["name"]: tensor["type"] for tensor in inspect(path)["tensors"]}


def refused(code, needles, *arguments, folder_of=None, **how):
    """One line on standard error, and no new file in the folder."""
    before = sorted(os.listdir(folder_of)) if folder_of else None
    result = run("quantize", *arguments, **how)
    expect_equal((result.code, result.out), (code, ""), f"exit code and output of\n{result}\n")
    lines = result.err.splitlines()
    expect(lines and all(line.isprintable() and line.startswith("infer quantize: ") for line in lines), "plain lines",
           result)
    expect(sum("note: " not in line for line in lines) == 1, "one line of trouble", result)
    for needle in needles:
        expect(str(needle) in result.err, f"names {needle!r}", result)
    if folder_of:
        expect_equal(sorted(os.listdir(folder_of)), before, "files")
