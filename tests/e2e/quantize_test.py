"""infer quantize: every type, what goes in and comes out, and that nothing half-written is ever left."""

import functools
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from harness import BINARY, PATIENCE, SOURCE_DIR, Result, expect, expect_equal, main, run, skip, test, test_each
from models import DEMO_DRAFT_F16, SPM, logprobs, succeeded

sys.path.insert(0, str(SOURCE_DIR / "scripts"))
import make_fixtures as fixtures  # noqa: E402

TYPES = {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
         "Q2_K_S": 21, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16,
         "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "MXFP4": 38}
PROMPT = ("-p", "once upon a time", "-n", 24, "--temp", 0, "--ignore-eos", "--quiet")
WRONG_USAGE, FAILED, INTERRUPTED = 2, 1, 130


@functools.cache
def folder():
    """A folder that lasts as long as this program."""
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


# What comes out

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
    """Mean over positions of the Kullback-Leibler divergence of a file from the original's distributions."""
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
def report_measures_the_error():
    result = succeeded(run("quantize", model(), folder() / "report.gguf", "Q4_0", "--report"))
    line = next(line.split() for line in result.out.splitlines() if line.startswith("Q4_0"))
    # A uniform distribution in 16 steps: 1 / (sqrt(12) * 8) * sqrt(3) = 6.25 % where the whole range is used.
    expect(4 < float(line[5].rstrip("%")) < 8, "relative error", result)
    expect("\x1b" not in result.out + result.err and "\r" not in result.err, "no progress in a pipe", result)


@test
def narrow_rows_get_another_type():
    path = folder() / "narrow.gguf"
    result = succeeded(run("quantize", SPM, path, "Q4_K_M"))
    expect("rows that do not suit" in result.err, "a note", result)
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
        # From parts to one file, and to parts again.
        succeeded(run("quantize", parts[1], out / "one.gguf", "Q4_K_M", "--allow-requantize"))
        expect("split.count" not in keys(out / "one.gguf"), "no keys of parts")
        succeeded(run("quantize", parts[0], out / "n.gguf", "Q6_K", "--allow-requantize", "--keep-split"))
        expect_equal(len([p for p in out.iterdir() if p.name.startswith("n-")]), len(parts), "kept parts")
        refused(WRONG_USAGE, [parts[0].name, "input"], parts[0], out / "m.gguf", "Q8_0", "--keep-split", folder_of=out)
    for size in ("", "0M", "5", "5K", "-1G", "x", "1.5G", "99999999999999999999G"):
        refused(WRONG_USAGE, ["split-size"], model(), folder() / "never.gguf", "Q8_0", "--split-size", size)


# Importance

def importance(weights):
    """The two kinds of file for {tensor: floats}, with two calls summed up."""
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
        ({f"x.{name}": floats for name, floats in good.items()}, ["[imatrix]", "no importance of any tensor"]),
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


# Refusals

@test
def output_that_is_the_input():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        shutil.copy(model(), out / "m.gguf")
        (out / "link.gguf").symlink_to("m.gguf")
        (out / "hard.gguf").hardlink_to(out / "m.gguf")
        for target in ("m.gguf", "link.gguf", "hard.gguf", "./m.gguf"):
            refused(WRONG_USAGE, ["input"], out / "m.gguf", f"{out}/{target}", "Q8_0", folder_of=out)
        expect((out / "m.gguf").read_bytes() == model().read_bytes(), "the input is as it was")


@test
def wrong_arguments():
    out = folder() / "never.gguf"
    refused(WRONG_USAGE, ["NONSENSE", "Q4_K_M", "IQ4_XS"], model(), out, "NONSENSE")
    for arguments in ((), (model(),), (model(), out)):
        refused(WRONG_USAGE, ["required"], *arguments)
    for flag in ("--output-tensor-type", "--token-embedding-type"):
        for value in ("", "Q4_K_M", "Q8_K", "IQ1_S", "nonsense"):
            refused(WRONG_USAGE, [flag], model(), out, "Q8_0", flag, value)
    for value in ("", "Q8_0", "=Q8_0", "a=", "a=nonsense", "a(b=Q8_0", "[=Q8_0", "a" * 5000 + "=Q8_0"):
        refused(WRONG_USAGE, [], model(), out, "Q4_K_M", "--tensor-type", value)
    for value in ("0", "-1", "x", "", "100000"):
        refused(WRONG_USAGE, ["threads"], model(), out, "Q8_0", "-t", value)
    refused(WRONG_USAGE, ["keep-split"], model(), out, "Q8_0", "--keep-split", "--split-size", "1G")
    expect(not out.exists(), "nothing is written")


@test
def places_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        refused(FAILED, ["there is no folder"], model(), out / "no" / "m.gguf", "Q8_0", folder_of=out)
        refused(FAILED, ["it is a folder"], model(), out, "Q8_0", folder_of=out)
        refused(FAILED, [], model(), "/proc/m.gguf", "Q8_0")


@test
def input_that_is_damaged():
    content = model().read_bytes()
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        path = out / "in.gguf"
        for length in (0, 3, 100, 20000, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            refused(FAILED, ["in.gguf"], path, out / "m.gguf", "Q8_0", folder_of=out)
        refused(FAILED, ["No such file"], out / "none.gguf", out / "m.gguf", "Q8_0", folder_of=out)


@test
def values_that_are_not_finite():
    for tensor, bad, shown in (("blk.1.ffn_up.weight", math.nan, "NaN"), ("output.weight", -math.inf, "-infinity"),
                               ("output_norm.weight", math.inf, "infinity")):
        def change(tensors, tensor=tensor, bad=bad):
            tensors[tensor][1][77] = bad
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name)
            (out / "in.gguf").write_bytes(make_model(change))
            for type_name in ("Q4_K_M", "F16", "F32"):
                place = "[77]" if "norm" in tensor else "[0, 77]"
                refused(FAILED, [tensor, place, shown], out / "in.gguf", out / "m.gguf", type_name, folder_of=out)


@test
def values_beyond_f16():
    def change(tensors):
        tensors["blk.0.attn_k.weight"][1][256] = 70000.0
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        (out / "in.gguf").write_bytes(make_model(change))
        refused(FAILED, ["blk.0.attn_k.weight", "[1, 0]", "F16"], out / "in.gguf", out / "m.gguf", "F16", folder_of=out)
        succeeded(run("quantize", out / "in.gguf", out / "m.gguf", "BF16"))


@test
def quantizing_twice_must_be_asked_for():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        refused(WRONG_USAGE, ["--allow-requantize", "Q8_0"], quantized("Q8_0"), out / "m.gguf", "Q4_K_M", folder_of=out)
        succeeded(run("quantize", quantized("Q8_0"), out / "m.gguf", "Q4_K_M", "--allow-requantize"))
        # Nothing is to be done: no need to ask.
        succeeded(run("quantize", quantized("Q8_0"), out / "same.gguf", "Q8_0"))
        expect((out / "same.gguf").read_bytes() == quantized("Q8_0").read_bytes(), "the same file")


# Ends in the middle

def big_model(path):
    """Half a billion zeros: a sparse file, and seconds of work."""
    n = 1 << 29
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + fixtures.string("blk.0.ffn_up.weight")
    head += struct.pack("<IQQIQ", 2, 1024, n // 1024, 1, 0)
    head += bytes(-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + 2 * n)


@test
def interrupt_leaves_nothing():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        big_model(out / "big.gguf")
        (out / "m.gguf").write_text("old")
        command = [BINARY, "quantize", str(out / "big.gguf"), str(out / "m.gguf"), "Q4_0", "-t", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while len(list(out.iterdir())) < 3 and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out_bytes, err_bytes = process.communicate(timeout=PATIENCE)
        result = Result(command, process.returncode, out_bytes, err_bytes)
        expect_equal(process.returncode, INTERRUPTED, f"exit code of\n{result}\n")
        expect_equal(sorted(p.name for p in out.iterdir()), ["big.gguf", "m.gguf"], "files")
        expect_equal((out / "m.gguf").read_text(), "old", "the old file")


@test
def killed_at_any_moment():
    """The name holds the old file or the whole new one."""
    expected = quantized("IQ4_NL").read_bytes()
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        finished = killed = 0
        for step in range(200):
            (out / "m.gguf").write_text("old")
            command = [BINARY, "quantize", str(model()), str(out / "m.gguf"), "IQ4_NL", "-t", "2"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(0.004 * step)
                process.kill()
                process.wait()
            content = (out / "m.gguf").read_bytes()
            expect(content in (b"old", expected), f"{len(content)} bytes of neither, killed in step {step}")
            killed += content == b"old"
            finished += content == expected
            if finished >= 3:
                break
        expect(killed > 0 and finished > 0, f"killed early {killed} times, late {finished} times")


@test
def full_disk():
    """A limit on the size of files fails a write half way as a full disk does."""
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        (out / "m.gguf").write_text("old")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

        command = [BINARY, "quantize", str(model()), str(out / "m.gguf"), "Q8_0"]
        done = subprocess.run(command, capture_output=True, preexec_fn=limit, check=False)
        result = Result(command, done.returncode, done.stdout, done.stderr)
        expect_equal((result.code, result.out), (FAILED, ""), f"exit code and output of\n{result}\n")
        expect("m.gguf" in result.err and "File too large" in result.err and result.err.count("\n") == 1,
               "one line that names file and reason", result)
        expect_equal([p.name for p in out.iterdir()], ["m.gguf"], "files")
        expect_equal((out / "m.gguf").read_text(), "old", "the old file")


@test
def disk_that_is_too_small():
    script = ('mount -t tmpfs -o size=500k none "$1" || exit 77; "$2" quantize "$3" "$1/m.gguf" Q8_0; code=$?; '
              'ls -A "$1"; exit $code')
    with tempfile.TemporaryDirectory() as name:
        command = ["unshare", "-rm", "sh", "-c", script, "sh", name, BINARY, str(model())]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError:
            skip("no unshare")
        if done.returncode == 77 or b"unshare" in done.stderr:
            skip("no tmpfs to be had here")
        result = Result(command, done.returncode, done.stdout, done.stderr)
        expect_equal((result.code, result.out), (FAILED, ""), f"exit code and files left of\n{result}\n")
        expect("left" in result.err and result.err.count("\n") == 1, "one line", result)


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
