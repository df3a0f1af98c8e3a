"""Importance matrices: from a text to a file that `infer quantize --imatrix` takes."""

import json
import math
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile

from harness import BINARY, PATIENCE, SOURCE_DIR, expect, expect_equal, main, pauses, run, test
from models import SPM, reference_model, succeeded

sys.path.insert(0, str(SOURCE_DIR / "scripts"))
import make_fixtures as fixtures  # noqa: E402

TEXT = "The house was on the hill, and the girl had a ball. " * 20


def text_file(folder):
    path = pathlib.Path(folder) / "text.txt"
    path.write_text(TEXT)
    return path


def made(model, folder, *flags):
    """The path of an importance matrix of the model."""
    path = pathlib.Path(folder) / "matrix.gguf"
    succeeded(run("imatrix", "-m", model, "-f", text_file(folder), "-o", path, "-c", 64, *flags))
    return path


@test
def every_weight_of_the_model_is_in_it():
    with tempfile.TemporaryDirectory() as folder:
        for model in (SPM, reference_model("qwen3moe")[0]):
            path = made(model, folder, "--chunks", 2)
            inside = {t["name"]: t["shape"] for t in json.loads(succeeded(run("inspect", path, "--tensors",
                                                                              "--json")).out)["tensors"]}
            weights = {t["name"]: t["shape"] for t in json.loads(succeeded(run("inspect", model, "--tensors",
                                                                               "--json")).out)["tensors"]}
            for name, shape in weights.items():
                if len(shape) == 1 or name == "token_embd.weight":
                    continue
                expect_equal(inside.get(f"{name}.in_sum2"), [shape[0], shape[-1]] if len(shape) == 3 else [shape[-1]],
                             f"shape of {name}.in_sum2")


@test
def the_same_file_with_any_number_of_threads():
    with tempfile.TemporaryDirectory() as folder:
        one = made(SPM, folder, "--chunks", 3, "-t", 1).read_bytes()
        expect(made(SPM, folder, "--chunks", 3, "-t", 2).read_bytes() == one, "the same bytes")


@test
def quantize_takes_it():
    with tempfile.TemporaryDirectory() as folder:
        model, _ = reference_model("llama-gqa")
        matrix, out = made(model, folder), pathlib.Path(folder) / "out.gguf"
        succeeded(run("quantize", "--imatrix", matrix, model, out, "IQ4_NL"))
        plain = pathlib.Path(folder) / "plain.gguf"
        succeeded(run("quantize", model, plain, "IQ4_NL"))
        expect(out.read_bytes() != plain.read_bytes(), "importance makes a difference")
        metadata = json.loads(succeeded(run("inspect", out, "--json")).out)["metadata"]
        expect(any(entry["key"] == "quantize.imatrix.file" for entry in metadata), "the file says so", metadata)


def contents(path):
    """({tensor: floats}, {key: value}) of an importance matrix."""
    document = json.loads(succeeded(run("inspect", path, "--tensors", "--json")).out)
    data = pathlib.Path(path).read_bytes()
    tensors = {t["name"]: struct.unpack_from(f"<{math.prod(t['shape'])}f", data, t["file_offset"])
               for t in document["tensors"]}
    return tensors, {entry["key"]: entry.get("value", entry.get("first")) for entry in document["metadata"]}


def close(a, b):
    return len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-6) for x, y in zip(a, b))


@test
def files_add_up():
    with tempfile.TemporaryDirectory() as folder:
        one, both, same = (pathlib.Path(folder) / name for name in ("one.gguf", "both.gguf", "same.gguf"))
        for model in (SPM, reference_model("qwen3moe")[0]):
            made(model, folder, "--chunks", 2).rename(one)
            before, _ = contents(one)
            succeeded(run("imatrix", "--in-file", one, "--in-file", one, "-o", both))
            summed, keys = contents(both)
            expect_equal(list(summed), list(before), "tensors")
            expect(all(close(summed[name], [2 * x for x in before[name]]) for name in before), "twice the sums")
            expect_equal((keys["imatrix.chunk_count"], keys["imatrix.chunk_size"]), (4, 64), "chunks")
            on_top, _ = contents(made(model, folder, "--chunks", 2, "--in-file", one))
            expect_equal(list(on_top), list(before), "tensors")
            expect(all(close(on_top[name], summed[name]) for name in before), "a text read on top of a file")
            succeeded(run("imatrix", "--in-file", one, "-o", same, "-m", model))
            expect(same.read_bytes() == one.read_bytes(), "one file stays as it is")


def binary_form(entries, chunks=b""):
    """The older format, from {name: (n_calls, floats)}."""
    data = struct.pack("<i", len(entries))
    for name, (calls, floats) in entries.items():
        data += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, len(floats))
        data += struct.pack(f"<{len(floats)}f", *floats)
    return data + chunks


@test
def the_older_form_counts_calls_of_a_chunk():
    with tempfile.TemporaryDirectory() as folder:
        old, new, out = (pathlib.Path(folder) / name for name in ("old.dat", "new.gguf", "out.gguf"))
        old.write_bytes(binary_form({"a": (2, [1.0, 2.0]), "b": (0, [4.0])}, struct.pack("<ii", 5, 4) + b"text"))
        new.write_bytes(fixtures.gguf({"general.type": (fixtures.STRING, "imatrix"),
                                       "imatrix.chunk_size": (fixtures.UINT32, 64)},
                                      {"a.in_sum2": ((2,), [5.0, 7.0]), "a.counts": ((1,), [10.0])}))
        succeeded(run("imatrix", "--in-file", new, "--in-file", old, "-c", 100, "-o", out))
        tensors, keys = contents(out)
        expect_equal(tensors["a.in_sum2"], (5 + 100, 7 + 200), "sums")
        expect_equal(tensors["a.counts"], (10 + 2 * 100,), "rows")
        expect_equal((tensors["b.in_sum2"], tensors["b.counts"]), ((400,), (100,)), "means of no calls")
        # Five chunks of 100 tokens count as eight of 64.
        expect_equal(keys["imatrix.chunk_count"], 8, "chunks")
        expect_equal(keys["imatrix.datasets"], ["text"], "texts")


@test
def files_that_do_not_go_together_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        one, other, out = (pathlib.Path(folder) / name for name in ("one.gguf", "other.gguf", "out.gguf"))
        made(SPM, folder).rename(one)
        made(reference_model("qwen3moe")[0], folder).rename(other)
        foreign, bad, huge = (pathlib.Path(folder) / name for name in ("foreign.dat", "bad.dat", "huge.dat"))
        foreign.write_bytes(binary_form({"a": (2, [1.0, 2.0])}))
        bad.write_bytes(binary_form({"a": (2, [1.0, math.nan])}))
        huge.write_bytes(binary_form({"a": (1, [3e38])}))
        cases = [
            (["--in-file", one, "--in-file", other], ["other.gguf", "expected", "sums", "one model"]),
            (["--in-file", other, "-m", SPM], ["other.gguf", "expected", "sums", "this model"]),
            (["--in-file", other, "-m", SPM, "-f", text_file(folder)], ["other.gguf", "this model"]),
            (["--in-file", foreign, "-m", SPM], ["foreign.dat", "no entry for any tensor"]),
            (["--in-file", bad], ["bad.dat", "nan"]),
            (["--in-file", huge, "--in-file", huge], ["beyond F32"]),
            (["--in-file", SPM], ["expected imatrix"]),
            (["--in-file", "/nowhere"], ["No such file"]),
        ]
        for flags, needles in cases:
            result = run("imatrix", *flags, "-o", out)
            expect(result.code == 1 and not out.exists(), "refused", result)
            expect(result.err.splitlines()[-1].startswith("infer imatrix: [imatrix] ") or "/nowhere" in result.err,
                   "says who speaks", result)
            expect(all(needle in result.err for needle in needles), f"names {needles}", result)
        for flags in ((), ("-m", SPM), ("-f", text_file(folder))):
            result = run("imatrix", *flags, "-o", out)
            expect(result.code == 2 and result.err.count("\n") == 1 and not out.exists(), "wrong usage", result)


def begun(folder, *flags):
    """(process, path of its output) of a run that would take long, once it has written its file."""
    text, out = pathlib.Path(folder) / "long.txt", pathlib.Path(folder) / "out.gguf"
    text.write_text(TEXT * 2000)
    process = subprocess.Popen([BINARY, *map(str, ("imatrix", "-m", SPM, "-f", text, "-o", out, "-c", 64, "--device",
                                                   "ref", *flags))], stderr=subprocess.PIPE, text=True)
    for _ in pauses(PATIENCE, 0.02):
        if out.exists() or process.poll() is not None:
            break
    expect(process.poll() is None, "still running", process.stderr.read() if process.poll() is not None else "")
    return process, out


@test
def a_run_that_is_killed_leaves_what_it_has():
    with tempfile.TemporaryDirectory() as folder:
        process, out = begun(folder, "--save-every", 3)
        process.kill()
        process.communicate()
        _, keys = contents(out)
        expect(keys["imatrix.chunk_count"] >= 3 and keys["imatrix.chunk_count"] % 3 == 0, "chunks", keys)
        again = pathlib.Path(folder) / "again.gguf"
        succeeded(run("imatrix", "--in-file", out, "-o", again, "-m", SPM))


@test
def ctrl_c_saves_what_was_read():
    with tempfile.TemporaryDirectory() as folder:
        process, out = begun(folder, "--save-every", 1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        expect_equal(process.returncode, 130, "exit code")
        said = re.search(r"stopped after chunk (\d+) of \d+\n", errors)
        expect(said, "says how far it came", errors)
        expect_equal(contents(out)[1]["imatrix.chunk_count"], int(said[1]), "chunks in the file")


@test
def wrong_input_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        file, out = text_file(folder), pathlib.Path(folder) / "out.gguf"
        for flags in (("-f", "/nowhere", "-o", out), ("-f", file), ("-o", out), ("-f", file, "-o", "/nowhere/x"),
                      ("-f", file, "-o", out, "-c", 100000), ("-f", file, "-o", out, "--chunks", 0)):
            result = run("imatrix", "-m", SPM, *flags)
            expect(result.code in (1, 2) and result.err.count("\n") == 1 and not out.exists(), "one line", result)


main()
