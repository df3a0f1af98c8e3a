"""Models on a CUDA device give the same results as elsewhere, with any number of layers on it.

By default a few models run, since the stand-in for a GPU is slow; INFER_TEST_FULL=1 takes all. Without a device the
tests are skipped, or fail where INFER_REQUIRE names cuda.
"""

import json

from accelerators import ALL_MODELS, expect_f32_agreement, expect_same_bits_in_chunks, none_half_and_all
from completions import RECORDED, expect_recorded_tokens, recorded
from cuda_devices import device, devices, is_stand_in, on_device
from harness import expect, expect_equal, main, run, skip, test, test_each
from models import (DEMO_TARGET, F32_CACHE, SPM, QUANTIZED_MODELS, differences, exactness, f32_models, logprobs,
                    reference_model, succeeded)
from pseudo_terminal import Terminal

# Dense, experts, windows with softcap, sinks, a latent cache.
FEW_F32 = ["llama-gqa", "qwen3moe", "gemma2", "gpt-oss", "deepseek2-mla"]
FEW_QUANTIZED = ["quant-q4_k", "quant-q6_k", "quant-q8_0"]


@test_each(*(f32_models() if ALL_MODELS else FEW_F32))
def agrees_in_f32(name):
    expect_f32_agreement(name, none_half_and_all, on_device)


@test_each(*FEW_F32)
def nothing_falls_back(name):
    model, reference = reference_model(name)
    for flags in ((), F32_CACHE, ("-ctk", "bf16", "-ctv", "bf16")):
        logprobs(model, reference["tokens"], *on_device("all"), "--strict-offload", *flags)


@test_each(*(QUANTIZED_MODELS if ALL_MODELS else FEW_QUANTIZED))
def agrees_with_expanded_weights(name):
    """Activations are rounded to eight bits, so results may be as far away as llama.cpp's times 1.5."""
    model, reference = reference_model(name)
    exact = [dict(entries) for entries in reference["positions_f32"]]
    common = [[[t, p] for t, p in entries if t in known] for entries, known in zip(reference["positions"], exact)]
    limit = 1.5 * max(differences(exact, common))
    for n in none_half_and_all(model):
        worst = max(differences(logprobs(model, reference["tokens"], *on_device(n), *F32_CACHE),
                                reference["positions_f32"]))
        expect(worst <= limit, f"-ngl {n}: largest difference {worst:.6f}, at most {limit:.6f}")


@test_each("llama-gqa", "quant-q4_k", "qwen3moe", "deepseek2-mla")
def chunks_do_not_matter_when_deterministic(name):
    expect_same_bits_in_chunks(name, on_device)


@test_each(*(RECORDED if ALL_MODELS else RECORDED[:1]))
def continues_as_recorded(case):
    model, completion = recorded(case)
    for n in none_half_and_all(model):
        expect_recorded_tokens(model, completion, on_device(n))


@test_each("llama-gqa", "qwen3moe", "deepseek2-mla")
def two_devices_and_the_cpu_agree(name):
    model, reference = reference_model(name)
    env = {"INFER_CUDA_STAND_IN_DEVICES": "2"} if is_stand_in() else {}
    if "cuda1" not in devices(env):
        skip("one CUDA device")
    for names, shares in (("cuda0,cuda1", "1,1"), ("cuda1,cuda0", "1,2"), ("cuda0,cpu,cuda1", "1,1,1"),
                          ("cpu,cuda1,cuda0", "2,1,1")):
        flags = ("--device", names, "-ts", shares, "--strict-offload", *F32_CACHE)
        placed = json.loads(succeeded(run("plan", "-m", model, "--json", *flags, env=env)).out)["devices"]
        expect(all(d["weights"] > 0 for d in placed if d["device"] != "cpu"), "both have weights", placed)
        worst = max(differences(logprobs(model, reference["tokens"], *flags, env=env), reference["positions"]))
        expect(worst <= exactness(reference), f"{names} -ts {shares}: largest difference {worst:.6f}")


@test
def shares_follow_the_free_memory():
    env = {"INFER_CUDA_STAND_IN_DEVICES": "2"} if is_stand_in() else {}
    if "cuda1" not in devices(env):
        skip("one CUDA device")
    flags = ("-m", DEMO_TARGET, "--device", "cuda0,cuda1", "-ngl", "all", "--json")
    layers = [d["layers"] for d in json.loads(succeeded(run("plan", *flags, env=env)).out)["devices"]]
    expect(layers[0] == 0 and abs(layers[1] - layers[2]) <= 1, "equal memories, equal shares", layers)


@test_each("qwen3moe", "qwen2moe")
def experts_on_the_cpu_agree(name):
    model, reference = reference_model(name)
    for n in (1, "all"):
        flags = (*on_device("all"), "--n-cpu-moe", n, "--strict-offload", *F32_CACHE)
        cpu, gpu = json.loads(succeeded(run("plan", "-m", model, "--json", *flags)).out)["devices"]
        expect(cpu["weights_of_other_layers"] > 0 and gpu["layers"] == 2, "experts apart from their layers", (cpu, gpu))
        worst = max(differences(logprobs(model, reference["tokens"], *flags), reference["positions"]))
        expect(worst <= exactness(reference), f"--n-cpu-moe {n}: largest difference {worst:.6f}")


@test
def bench_reports_fractions_of_the_device():
    flags = ("-m", SPM, *on_device("all"), "-p", 8, "-n", 2, "-r", 1, "--json")
    report = json.loads(succeeded(run("bench", *flags)).out)
    for limit in ("read_bandwidth", "int8_operations_per_second", "float_operations_per_second"):
        expect(report["machine"][limit] > 0, limit, report["machine"])
    expect(all(result["fraction_of_limit"] > 0 for result in report["results"]), "fractions", report)


@test
def loading_shows_progress_on_a_terminal_only():
    flags = ("-m", SPM, "-p", "once", "-n", 1, "--temp", 0, "--single-turn", *on_device("all"))
    with Terminal("run", *flags) as terminal:
        terminal.expect(r"loading weights: +\d+ % of [0-9.]+ [KMG]iB, [0-9.]+ GB/s")
        expect_equal(terminal.wait(), 0, "exit code")
    result = succeeded(run("run", *flags))
    expect("loading" not in result.out + result.err and "\x1b" not in result.err, "no progress in a pipe", result)


@test
def a_small_budget_is_kept():
    model, reference = reference_model("llama-gqa")
    tokens = ",".join(map(str, reference["tokens"][:4]))
    env = {"INFER_CUDA_BUDGET_MB": "1"}
    memory = [d["memory_total"] for d in json.loads(succeeded(run("devices", "--json", env=env)).out)["devices"]
              if d["name"] == device()]
    expect_equal(memory, [1 << 20], "memory of the device")
    result = run("logprobs", "-m", model, "--tokens", tokens, "--json", *on_device("all"), env=env)
    expect(result.code in (0, 1), "fewer layers or a message", result)
    expect(result.code == 0 or "has" in result.err or "found" in result.err, "what was missing", result)


main()
