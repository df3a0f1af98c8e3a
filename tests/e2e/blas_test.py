"""--blas: OpenBLAS, opened at run time, computes large matmuls with float weights. Results are close to those without
it, and everything else is unchanged; without the library, one line says so."""

import json

from harness import expect, expect_equal, main, run, skip, test, test_each
from models import DATA, EXACT, F32_CACHE, SPM, differences, logprobs, logprobs_text, reference_model, succeeded

NO_LIBRARY = {"INFER_BLAS_LIBRARY": "/nowhere/libopenblas.so.0"}
ALWAYS = ("--blas", "--blas-min-rows", 2)
LIMITS = {"llama-gqa": EXACT, "qwen2-tied": EXACT, "qwen3moe": EXACT, "quant-f16": EXACT, "quant-bf16": EXACT}


def library(env=None):
    """What `infer devices` says about the library; None if there is none."""
    return json.loads(succeeded(run("devices", "--json", env=env)).out)["devices"][0].get("blas")


def need_library():
    if library() is None:
        skip("no OpenBLAS (Debian: libopenblas0-openmp), or a program without backends/blas")


@test_each(*LIMITS)
def agrees_with_the_reference(name):
    need_library()
    model, recorded = reference_model(name)
    expected = recorded.get("positions_f32", recorded["positions"])
    worst = max(differences(logprobs(model, recorded["tokens"], *ALWAYS, *F32_CACHE), expected))
    expect(worst <= LIMITS[name], f"largest difference {worst:.6f}, at most {LIMITS[name]} expected")


@test
def is_used_for_many_rows_of_float_weights_only():
    need_library()
    for name, tokens, flags, same in (("llama-gqa", 48, ALWAYS, False), ("quant-bf16", 48, ALWAYS, False),
                                      ("llama-gqa", 9, ("--blas", "--blas-min-rows", 10), True),
                                      ("llama-gqa", 48, ("--blas",), True), ("quant-q8_0", 48, ALWAYS, True)):
        model, recorded = reference_model(name)
        texts = [logprobs_text(model, recorded["tokens"][:tokens], "-t", 2, *more) for more in ((), flags)]
        expect((texts[0] == texts[1]) == same, f"{name}, {tokens} tokens, {flags}: {'the same' if same else 'other'} bits")


@test
def every_command_that_runs_a_model_takes_it():
    need_library()
    succeeded(run("run", "-m", SPM, "-p", "once", "-n", 4, "--raw", "--blas"))
    succeeded(run("perplexity", "-m", SPM, "-f", __file__, "-c", 64, "--chunks", 1, "--blas"))
    report = json.loads(succeeded(run("bench", "-m", SPM, "-p", 64, "-n", 2, "-r", 1, "--blas", "--json")).out)
    expect("OpenBLAS" in report["machine"]["device"], "the device names the library", report["machine"])


@test
def devices_names_it():
    need_library()
    expect("OpenBLAS" in library(), "its version", library())
    expect(library() in succeeded(run("devices")).out, "for people too")
    expect_equal(library(NO_LIBRARY), None, "no name if it is not found")


@test
def absence_is_one_line():
    result = run("logprobs", "-m", DATA / "arch" / "llama-gqa.gguf", "--tokens", "1,2", "--json", "--blas",
                 env=NO_LIBRARY)
    expect_equal((result.code, result.err.count("\n"), result.out), (1, 1, ""), "one line")
    expect("[blas]" in result.err, "says what is missing", result)
    succeeded(run("logprobs", "-m", DATA / "arch" / "llama-gqa.gguf", "--tokens", "1,2", "--json", env=NO_LIBRARY))


@test
def bit_identical_results_exclude_it():
    result = run("logprobs", "-m", DATA / "arch" / "llama-gqa.gguf", "--tokens", "1,2", "--blas", "--deterministic")
    expect_equal((result.code, result.err.count("\n")), (2, 1), "wrong usage")
    result = run("logprobs", "-m", DATA / "arch" / "llama-gqa.gguf", "--tokens", "1,2", "--blas-min-rows", 2)
    expect_equal((result.code, result.err.count("\n")), (2, 1), "a number of rows without --blas")


main()
