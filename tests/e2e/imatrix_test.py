"""Importance matrices: from a text to a file that `infer quantize --imatrix` takes."""

import json
import pathlib
import tempfile

from harness import expect, expect_equal, main, run, test
from models import SPM, reference_model, succeeded

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


@test
def wrong_input_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        file, out = text_file(folder), pathlib.Path(folder) / "out.gguf"
        for flags in (("-f", "/nowhere", "-o", out), ("-f", file), ("-o", out), ("-f", file, "-o", "/nowhere/x"),
                      ("-f", file, "-o", out, "-c", 100000), ("-f", file, "-o", out, "--chunks", 0)):
            result = run("imatrix", "-m", SPM, *flags)
            expect(result.code in (1, 2) and result.err.count("\n") == 1 and not out.exists(), "one line", result)


main()
