"""infer quantize: every type, its input and its output."""

import json
import math
import pathlib
import random
import struct
import tempfile

from harness import expect, expect_equal, main, run, test, test_each
from models import DEMO_DRAFT_F16, SPM, logprobs, succeeded
from quantizing import (FAILED, PROMPT, TYPES, WRONG_USAGE, fixtures, folder, inspect, keys, model, quantized, refused,
                        types)


# Output

@test_each(*TYPES)
def type_is_readable_and_runs(type_name):
    path = quantized(type_name)
    succeeded(run("inspect", path, "--verify"))
    expect_equal(keys(path)["general.file_type"], TYPES[type_name], "general.file_type")
    expect_equal(keys(path)["general.quantization_version"], 2, "general.quantization_version")
    result = succeeded(run("run", "-m", path, *PROMPT))
    expect(len(result.out.strip()) > 10, "text", result)
    expect_equal(types(path)["blk.0.attn_norm.weight"], "F32", "type of norms")


def divergence(path, tokens, original):
    """Mean over positions of a file's Kullback-Leibler divergence from the original."""
    total = 0
    for p, q in zip(original, logprobs(path, tokens)):
        total += sum(math.exp(lp) * (lp - q[token]) for token, lp in p.items())
    return total / len(original)


@test
def fewer_bits_are_further_from_the_original():
    tokens = [1, *range(300, 330)]
    original = logprobs(model(), tokens)

    def distance(path):
        return divergence(path, tokens, original)

    far = {name: distance(quantized(name)) for name in ("F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K")}
    expect(all(a < b for a, b in zip(far.values(), list(far.values())[1:])), "the order of the types", far)
    expect(far["F16"] < 1e-5 and far["Q8_0"] < 1e-3 and far["Q4_K_M"] < 0.1, "the distances", far)
    expect_equal(distance(quantized("F32")), 0, "distance of F32")


@test
def f32_keeps_every_byte_of_the_data():
    expect_equal(types(quantized("F32")), types(model()), "types")
    texts = [succeeded(run("run", "-m", path, *PROMPT)).out for path in (model(), quantized("F32"))]
    expect_equal(texts[0], texts[1], "text")


@test
def metadata_stays_in_order():
    before, after = inspect(model())["metadata"], inspect(quantized("Q4_K_M"))["metadata"]
    expect_equal(after[:len(before)], before, "keys of the original")
    expect_equal([entry["key"] for entry in after[len(before):]],
                 ["general.quantization_version", "general.file_type"], "new keys")
    again = folder() / "again.gguf"
    succeeded(run("quantize", quantized("Q4_K_M"), again, "Q8_0", "--allow-requantize"))
    expect_equal([entry["key"] for entry in inspect(again)["metadata"]], [entry["key"] for entry in after], "keys")
    expect_equal([t["name"] for t in inspect(again)["tensors"]], [t["name"] for t in inspect(model())["tensors"]],
                 "tensors")


@test
def same_bytes_with_any_number_of_threads():
    for type_name in ("Q4_K_M", "IQ4_XS", "Q8_0"):
        for threads in (1, 3, 16):
            path = folder() / "threads.gguf"
            succeeded(run("quantize", model(), path, type_name, "-t", threads))
            expect(path.read_bytes() == quantized(type_name).read_bytes(), f"{type_name} with {threads} threads")


@test
def mix_of_q4_k_m():
    found = types(quantized("Q4_K_M"))
    expect_equal(found["output.weight"], "Q6_K", "output")
    expect_equal(found["token_embd.weight"], "Q4_K", "embedding")
    expect_equal(found["blk.0.attn_q.weight"], "Q4_K", "attn_q")
    expect_equal(found["blk.1.attn_v.weight"], "Q6_K", "attn_v of the last layer")


@test
def dry_run_says_what_would_be_written():
    for type_name in ("Q4_K_M", "Q8_0", "IQ4_NL"):
        path = folder() / "never.gguf"
        result = succeeded(run("quantize", model(), path, type_name, "--dry-run"))
        expect(not path.exists(), "nothing is written")
        rows = {line.split()[0]: line.split() for line in result.out.splitlines()[1:]}
        document = inspect(quantized(type_name))
        for name, total in document["types"].items():
            expect_equal(rows[name][1:4], [str(total[k]) for k in ("n_tensors", "n_parameters", "n_bytes")], name)
        expect_equal(int(rows["all"][3]), document["totals"]["n_bytes"], "all bytes")


@test
def two_bits_without_importance_are_noted():
    for type_name, noted in (("IQ2_XS", True), ("IQ1_S", True), ("IQ3_S", False), ("TQ2_0", False), ("Q2_K", False)):
        result = succeeded(run("quantize", model(), folder() / "never.gguf", type_name, "--dry-run"))
        expect_equal("--imatrix" in result.err, noted, f"a note for {type_name}")
        expect(result.err.count("\n") <= 1, "one line", result)


@test
def report_measures_the_error():
    result = succeeded(run("quantize", model(), folder() / "report.gguf", "Q4_0", "--report"))
    line = next(line.split() for line in result.out.splitlines() if line.startswith("Q4_0"))
    # A uniform distribution in 16 steps: 1 / (sqrt(12) * 8) * sqrt(3) = 6.25 % if the whole range is used.
    expect(4 < float(line[5].rstrip("%")) < 8, "relative error", result)
    expect("\x1b" not in result.out + result.err and "\r" not in result.err, "no progress in a pipe", result)


@test
def narrow_rows_get_another_type():
    path = folder() / "narrow.gguf"
    result = succeeded(run("quantize", SPM, path, "Q4_K_M"))
    expect("rows that do not fit" in result.err, "a note", result)
    found = types(path)
    expect_equal((found["blk.0.attn_q.weight"], found["output.weight"]), ("Q5_0", "Q8_0"), "types")
    succeeded(run("run", "-m", path, *PROMPT))


@test
def types_by_flags():
    path = folder() / "flags.gguf"
    succeeded(run("quantize", model(), path, "q4_k_m", "--tensor-type", "ffn_(up|gate)=q5_k", "--tensor-type", "ffn=Q6_K",
                  "--output-tensor-type", "Q8_0", "--token-embedding-type", "f16"))
    found = types(path)
    expect_equal([found[f"blk.0.{name}.weight"] for name in ("ffn_up", "ffn_gate", "ffn_down", "attn_k")],
                 ["Q5_K", "Q5_K", "Q6_K", "Q4_K"], "types of layer 0")
    expect_equal((found["output.weight"], found["token_embd.weight"]), ("Q8_0", "F16"), "types of both ends")
    succeeded(run("quantize", model(), path, "Q4_K_M", "--pure", "--leave-output-tensor"))
    found = types(path)
    expect_equal(found["output.weight"], "F32", "output")
    expect_equal({found[name] for name in found if name.startswith("blk.") and "norm" not in name}, {"Q4_K"}, "layers")


# Parts

@test
def parts_of_a_size():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        succeeded(run("quantize", model(), out / "m.gguf", "Q8_0", "--split-size", "1M"))
        parts = sorted(out.iterdir())
        expect(len(parts) > 1 and parts[0].name == f"m-00001-of-{len(parts):05}.gguf", "parts", parts)
        expect(all(part.stat().st_size < 1.1e6 for part in parts), "their sizes")
        expect_equal(types(parts[0]), types(quantized("Q8_0")), "types")
        expect_equal(run("run", "-m", parts[0], *PROMPT).out, run("run", "-m", quantized("Q8_0"), *PROMPT).out, "text")
        # From parts to one file, and back to parts.
        succeeded(run("quantize", parts[1], out / "one.gguf", "Q4_K_M", "--allow-requantize"))
        expect("split.count" not in keys(out / "one.gguf"), "no keys of parts")
        succeeded(run("quantize", parts[0], out / "n.gguf", "Q6_K", "--allow-requantize", "--keep-split"))
        expect_equal(len([p for p in out.iterdir() if p.name.startswith("n-")]), len(parts), "kept parts")
        refused(WRONG_USAGE, [parts[0].name, "input"], parts[0], out / "m.gguf", "Q8_0", "--keep-split", folder_of=out)
    for size in ("", "0M", "5", "5K", "-1G", "x", "1.5G", "99999999999999999999G"):
        refused(WRONG_USAGE, ["split-size"], model(), folder() / "never.gguf", "Q8_0", "--split-size", size)


# Importance

def importance(weights):
    """Both file formats for {tensor: floats}, with two calls summed."""
    tensors = {}
    for name, floats in weights.items():
        tensors[f"{name}.in_sum2"] = ((1, len(floats)), [2 * x for x in floats])
        tensors[f"{name}.counts"] = ((1, 1), [2.0])
    new = fixtures.gguf({"general.type": (fixtures.STRING, "imatrix"),
                         "imatrix.datasets": (fixtures.ARRAY, (fixtures.STRING, ["some text"])),
                         "imatrix.chunk_count": (fixtures.UINT32, 7)}, tensors)
    old = struct.pack("<i", len(weights))
    for name, floats in weights.items():
        old += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 2, len(floats))
        old += struct.pack(f"<{len(floats)}f", *(2 * x for x in floats))
    return new, old + struct.pack("<ii", 7, 9) + b"some text"


def some_weights():
    source = random.Random(5)
    return {name: [math.exp(source.gauss(0, 1.5)) for _ in range(256)] for name in types(model())
            if name.startswith("blk.") and "norm" not in name}


@test
def importance_lowers_the_weighted_error():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        for path, content in zip((out / "new.gguf", out / "old.dat"), importance(some_weights())):
            path.write_bytes(content)
        result = succeeded(run("quantize", model(), out / "a.gguf", "Q4_K_S", "--imatrix", out / "new.gguf", "--report"))
        line = next(line.split() for line in result.out.splitlines() if line.startswith("Q4_K"))
        expect(float(line[6].rstrip("%")) < 0.95 * float(line[5].rstrip("%")), "the weighted error is lower", result)
        expect("not in the importance matrix" in result.err, "a note on the embedding", result)
        found = keys(out / "a.gguf")
        expect_equal([found.get(f"quantize.imatrix.{key}") for key in ("file", "dataset", "entries_count",
                                                                      "chunks_count")],
                     ["new.gguf", "some text", len(some_weights()), 7], "keys")
        succeeded(run("quantize", model(), out / "b.gguf", "Q4_K_S", "--imatrix", out / "old.dat", "-t", 1))
        a, b = (out / "a.gguf").read_bytes(), (out / "b.gguf").read_bytes()
        expect(a[-400000:] == b[-400000:], "both kinds of file mean the same")
        plain = quantized("Q4_K_S").read_bytes()
        expect(a[-400000:] != plain[-400000:], "importance changes the result")
        succeeded(run("quantize", out / "a.gguf", out / "c.gguf", "Q8_0", "--allow-requantize"))
        expect(not any(key.startswith("quantize.imatrix") for key in keys(out / "c.gguf")), "keys of the first time")


@test
def importance_that_does_not_fit():
    good = some_weights()
    first = next(iter(good))
    cases = [
        ({**good, first: good[first][:-1]}, ["[imatrix]", first, "256", "255"]),
        ({f"x.{name}": floats for name, floats in good.items()}, ["[imatrix]", "no entry for any tensor"]),
        ({**good, first: [math.nan] * 256}, ["[imatrix]", first, "nan"]),
        ({**good, first: [-1.0] * 256}, ["[imatrix]", first, "-2"]),
        ({}, ["[imatrix]"]),
    ]
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        for weights, needles in cases:
            for content in importance(weights):
                (out / "i").write_bytes(content)
                refused(FAILED, needles, model(), out / "m.gguf", "Q4_K_M", "--imatrix", out / "i", folder_of=out)
        new, old = importance(good)
        for content in (b"", b"Dear Sir or Madam", old[:3], old[:100], old[:5000], old[:-1], new[:1000], new[:-5000],
                        struct.pack("<i", 2**31 - 1), struct.pack("<ii", 1, -5), model().read_bytes()):
            (out / "i").write_bytes(content)
            refused(FAILED, [], model(), out / "m.gguf", "Q4_K_M", "--imatrix", out / "i", folder_of=out)
        refused(FAILED, ["No such file"], model(), out / "m.gguf", "Q4_K_M", "--imatrix", out / "none", folder_of=out)


# A trained model

@test
def trained_model_keeps_its_distributions():
    source = DEMO_DRAFT_F16
    text = "Once upon a time there was a small cat. She lived by the river and could not sleep."
    tokens = json.loads(succeeded(run("tokenize", "-m", source, "--json", text)).out)["tokens"]
    original = logprobs(source, tokens)
    far = {}
    with tempfile.TemporaryDirectory() as name:
        for type_name in ("F16", "F32", "Q8_0", "Q2_K"):
            path = pathlib.Path(name, f"{type_name}.gguf")
            succeeded(run("quantize", source, path, type_name))
            far[type_name] = divergence(path, tokens, original)
    expect(far["F16"] == 0 and far["F32"] < 1e-4 and far["Q8_0"] < 2e-3 < far["Q2_K"], "divergence", far)


main()
