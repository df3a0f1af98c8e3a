"""Models on a Vulkan device give the same results as elsewhere, with any number of layers on it.

By default a few models run; INFER_TEST_FULL=1 takes all. Without a device the tests are skipped, or fail where
INFER_REQUIRE names vulkan.
"""

import json

from accelerators import ALL_MODELS, expect_f32_agreement, expect_same_bits_in_chunks, layers_of, none_half_and_all
from completions import RECORDED, expect_recorded_text, expect_recorded_tokens, recorded
from harness import expect, expect_equal, main, run, test, test_each
from models import (DEMO_TARGET, EXACT, F32_CACHE, QUANTIZED_MODELS, differences, exactness, f32_models, logprobs,
                    reference_model, succeeded)
from vulkan_devices import device, on_device

# With recurrent layers: every operation on states, alone and mixed with attention.
RECURRENT = ["mamba", "mamba2", "qwen3next", "kimi-linear", "rwkv6", "rwkv7", "lfm2", "deepseek4", "qwen4exp"]
# deepseek2-mla: a latent cache; glm-dsa: the same with index keys; minimax-m3: keys and values with index keys.
KEPT = ["deepseek2-mla", "glm-dsa", "minimax-m3"]  # whose caches are all on the device
# deepseek4 and deepseek4-hca: compressed entries, selected or all.
FEW_F32 = ["llama-gqa", "qwen2-tied", "qwen3moe", "gemma2", "gemma3", *RECURRENT, *KEPT, "deepseek4-hca"]
FEW_QUANTIZED = ["quant-q4_k", "quant-q6_k", "quant-q8_0"]


@test_each(*(f32_models() if ALL_MODELS else FEW_F32))
def agrees_in_f32(name):
    expect_f32_agreement(name, layers_of, on_device)


@test_each(*KEPT)
def nothing_falls_back(name):
    """The whole model runs on the device, and its cache is there."""
    model, recorded = reference_model(name)
    for flags in ((), F32_CACHE, ("-ctk", "bf16", "-ctv", "bf16")):
        logprobs(model, recorded["tokens"], *on_device("all"), "--strict-offload", *flags)
    devices = json.loads(succeeded(run("plan", "-m", model, *on_device("all"), "--json")).out)["devices"]
    cached = {d["device"]: d["kv_cache"] for d in devices}
    expect(cached.pop(device()) > 0 and not any(cached.values()), "the cache is on the device alone", devices)


@test_each(*(QUANTIZED_MODELS if ALL_MODELS else FEW_QUANTIZED))
def agrees_with_expanded_weights(name):
    """The plain kernels do not round activations, so the whole model on the device is as exact as floats are; what
    stays on the CPU rounds them, and may be as far away as llama.cpp times 1.5."""
    model, recorded = reference_model(name)
    exact = [dict(entries) for entries in recorded["positions_f32"]]
    common = [[[t, p] for t, p in entries if t in position] for entries, position in zip(recorded["positions"], exact)]
    theirs = max(differences(exact, common))
    for n in layers_of(model):
        found = logprobs(model, recorded["tokens"], *on_device(n), *F32_CACHE, env={"INFER_VULKAN_KERNELS": "plain"})
        worst = max(differences(found, recorded["positions_f32"]))
        limit = EXACT if n == "all" else max(EXACT, 1.5 * theirs)
        expect(worst <= limit, f"-ngl {n}: largest difference {worst:.6f}, at most {limit:.6f}")


@test_each("llama-gqa", "quant-q4_k", "qwen3moe", "mamba", "qwen3next", "rwkv7", "deepseek4", *KEPT)
def chunks_do_not_matter_when_deterministic(name):
    expect_same_bits_in_chunks(name, on_device)


@test_each("mamba", "mamba2", "qwen3next", "rwkv6", "rwkv7", "lfm2")
def nothing_of_a_recurrent_model_is_left_to_the_cpu(name):
    model, recorded = reference_model(name)
    succeeded(run("logprobs", "-m", model, "--tokens", ",".join(map(str, recorded["tokens"])), "--json",
                  *on_device("all"), "--strict-offload"))


@test_each(*RECORDED)
def continues_as_recorded(case):
    """With none, half and all of the layers on the device; with every number by INFER_TEST_FULL=1."""
    model, completion = recorded(case)
    for n in none_half_and_all(model):
        expect_recorded_tokens(model, completion, on_device(n))
        expect_recorded_text(model, completion, on_device(n))


@test
def trained_model_answers():
    prompt = ("run", "-m", DEMO_TARGET, "--temp", 0, "-n", 24, "--quiet", "-p", "What is your name?")
    expected = succeeded(run(*prompt)).out
    expect(len(expected) > 5, "the CPU answers")
    expect_equal(succeeded(run(*prompt, *on_device("all"))).out, expected, "the answer of all layers on the device")


@test
def every_failing_allocation_is_survived():
    """Each allocation in turn, until there are no more: either fewer layers or an error, reported in one line."""
    model, recorded = reference_model("llama-gqa")
    tokens = ",".join(map(str, recorded["tokens"][:4]))
    for nth in range(1, 200):
        # With so little memory, every buffer is a separate allocation.
        env = {"INFER_VULKAN_FAIL_ALLOCATION": str(nth), "INFER_VULKAN_BUDGET_MB": "64"}
        result = run("logprobs", "-m", model, "--tokens", tokens, "--json", *on_device("all"), env=env)
        if (result.code, result.err) == (0, ""):
            break
        expect(result.code in (0, 1) and result.err.count("\n") == 1, f"allocation {nth}: one line", result)
        expect(f"[{device()}]" in result.err, f"allocation {nth}: the line names the device", result)
        expect(result.code == 1 or "found memory for" in result.err, f"allocation {nth}: fewer layers", result)
    expect(20 < nth < 199, f"a buffer per weight at least, found {nth - 1} allocations")


@test
def a_small_budget_is_kept():
    model, recorded = reference_model("llama-gqa")
    tokens = ",".join(map(str, recorded["tokens"][:4]))
    env = {"INFER_VULKAN_BUDGET_MB": "1"}
    memory = [d["memory_total"] for d in json.loads(succeeded(run("devices", "--json", env=env)).out)["devices"]
              if d["name"] == device()]
    expect_equal(memory, [1 << 20], "memory of the device")
    result = run("logprobs", "-m", model, "--tokens", tokens, "--json", *on_device("all"), env=env)
    expect(result.code in (0, 1), "fewer layers or a message", result)
    expect(result.code == 0 or "has" in result.err or "found" in result.err, "what was missing", result)


main()
