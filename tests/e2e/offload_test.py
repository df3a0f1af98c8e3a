"""Layers on another device: `ref`, which also runs on the CPU but with its own code, so that a value tells
where it was computed."""

import concurrent.futures
import json
import os
import tempfile

from harness import expect, expect_equal, main, run, test, test_each
from models import F32_CACHE, SPM, differences, logprobs, logprobs_text, reference_model, succeeded
from serving import Server

WRONG_USAGE = 2
REF = ("--device", "ref")


def expect_refusal(result, *needles):
    """One line that contains all of `needles`, for wrong usage."""
    expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
    expect(result.err.count("\n") == 1, "one line", result)
    for needle in needles:
        expect(needle in result.err, f"the line names {needle!r}", result)


def plan(model, *flags):
    return json.loads(succeeded(run("plan", "-m", model, "--json", *flags)).out)


def model_and_tokens(name):
    model, recorded = reference_model(name)
    return model, recorded["tokens"]


@test_each("llama-gqa", "qwen2-tied")
def several_devices_take_ranges_of_layers(name):
    """The CPU may be one of the devices: the values that differ show that the ranges are those requested."""
    model, tokens = model_and_tokens(name)
    text = {}
    for flags in ((*REF, "-ngl", 2), ("--device", "cpu,ref", "-ts", "1,2"), ("--device", "cpu,ref", "-ts", "2,1"),
                  ("--device", "ref,cpu", "-ts", "1,1"), (*REF,), ("--device", "cpu")):
        text[" ".join(map(str, flags[1:]))] = logprobs_text(model, tokens, *flags, *F32_CACHE)
    # Two layers and the output: 1,2 leaves the first layer on the CPU, which is what -ngl 2 does.
    expect_equal(text["cpu,ref -ts 1,2"], text["ref -ngl 2"], "one layer on the CPU")
    expect(text["cpu,ref -ts 2,1"] != text["cpu,ref -ts 1,2"], "shares count")
    expect(text["ref,cpu -ts 1,1"] not in (text["ref"], text["cpu"]), "both compute")
    reason = plan(model, "--device", "ref,cpu", "-ts", "1,2")["reasons"]["layers"]
    expect("layer 0 on ref" in reason or "the last" in reason or "on cpu" in reason, "the reason", reason)


@test_each("qwen3moe", "qwen2moe", "llama-moe")
def experts_stay_on_the_cpu(name):
    model, tokens = model_and_tokens(name)
    tensors = {t["name"]: t["n_bytes"] for t in
               json.loads(succeeded(run("inspect", model, "--tensors", "--json")).out)["tensors"]}
    experts = [sum(size for tensor, size in tensors.items() if "_exps" in tensor and tensor.startswith(f"blk.{n}."))
               for n in range(2)]
    expect(all(experts), "experts in both layers", tensors)
    cpu = json.loads(logprobs_text(model, tokens, *F32_CACHE))["positions"]
    seen = set()
    for flag, bytes_on_cpu in ((0, 0), (1, experts[0]), (2, sum(experts)), ("all", sum(experts)), (99, sum(experts))):
        flags = (*REF, "-ncmoe", flag)
        device, other = plan(model, *flags)["devices"]
        expect_equal((device["weights"], device["weights_of_other_layers"]), (bytes_on_cpu, bytes_on_cpu), flag)
        expect_equal(device["weights"] + other["weights"], sum(tensors.values()), "weights of both")
        expect_equal(other["layers"], 2, "layers")
        worst = max(differences(logprobs(model, tokens, *flags, *F32_CACHE), cpu))
        expect(worst < 1e-3, f"--n-cpu-moe {flag}: differs by {worst}")
        seen.add(logprobs_text(model, tokens, *flags, *F32_CACHE))
    expect(len(seen) == 3, "none, one layer and both compute elsewhere", len(seen))
    everywhere = logprobs_text(model, tokens, *REF, "--tensor-device", r"blk\..*_exps\.weight=cpu", *F32_CACHE)
    expect(everywhere == logprobs_text(model, tokens, *REF, "--cpu-moe", *F32_CACHE), "a rule says the same")


@test
def tensors_by_name():
    model, tokens = model_and_tokens("llama-gqa")
    first = (*REF, "-ngl", 0, "--tensor-device", r"blk\.[0-9]\.ffn_down\.weight=ref")
    _, ref = plan(model, *first)["devices"]
    expect(ref["weights"] == ref["weights_of_other_layers"] > 0 and ref["layers"] == 0, "the matrices alone", ref)
    text = logprobs_text(model, tokens, *first, *F32_CACHE)
    expect(text != logprobs_text(model, tokens, *F32_CACHE), "another device computes them")
    # The first matching rule wins, and a name must match as a whole.
    again = (*first, "--tensor-device", r"blk\..*=cpu")
    expect_equal(plan(model, *again)["devices"][1]["weights"], ref["weights"], "the first rule")
    for rules, words in (((r"ffn_down=ref",), ["ffn_down=ref", "whole name"]), (("blk.0=ref",), ["whole name"]),
                         ((r".*attn_norm\.weight=ref",), ["matrix"]), ((".*=cuda7",), ["cpu, ref", "cuda7"]),
                         (("(=ref",), ["--tensor-device: (", "regular expression"]), (("=ref",), ["PATTERN=DEVICE"]), ((".*=",), ["PATTERN=DEVICE"]),
                         ((".*",), ["PATTERN=DEVICE"]), (("",), ["tensor-device"])):
        for rule in rules:
            result = run("plan", "-m", model, *REF, "--tensor-device", rule)
            expect_refusal(result, *words)


@test
def wrong_flags_are_one_line():
    two = ("--device", "cpu,ref")
    for flags, word in ((("--device", "ref,ref"), "twice"), (("--device", "ref,nonsense"), "nonsense"),
                        ((*REF, "-ts", "1,1"), "tensor-split"), ((*two, "-ts", "1"), "tensor-split"),
                        ((*two, "-ts", "0,0"), "tensor-split"), ((*two, "-ts", "1,-1"), "tensor-split"),
                        ((*two, "-ts", "1,nan"), "tensor-split"), ((*two, "-ts", "1,x"), "tensor-split"),
                        (("--n-cpu-moe", "-1"), "cpu-moe"), (("--n-cpu-moe", "auto"), "cpu-moe"),
                        (("--n-cpu-moe", "1x"), "cpu-moe"), (("--n-cpu-moe", ""), "cpu-moe")):
        result = run("run", "-m", SPM, "-p", "a", "-n", 1, *flags)
        expect_refusal(result)
        expect(word in result.err.replace("_", "-"), f"{flags}: the line names {word}", result)


@test
def the_plan_says_where_and_why():
    document = plan(SPM, *REF, "-ngl", 2, "--tensor-device", "token_embd.weight=ref")
    cpu, ref = document["devices"]
    expect_equal((cpu["layer_ranges"], ref["layer_ranges"]), ([[0, 0]], [[1, 1]]), "ranges")
    expect("--tensor-device" in document["reasons"]["tensors"] and "on ref" in document["reasons"]["tensors"], "reason",
           document)
    expect("tensors" not in plan(SPM, *REF)["reasons"], "no reason where nothing is asked for")
    text = succeeded(run("plan", "-m", SPM, "--device", "ref,cpu", "--tensor-split", "1,2", "--n-cpu-moe", 1)).out
    expect("ref: 1 layer (0)" in text and "layer 0 on ref" in text and "the output on cpu" in text, "text", text)


@test
def a_run_on_two_devices_generates_and_says_so():
    flags = ("run", "-m", SPM, "-p", "once upon a time", "-n", 8, "--temp", 0, "--deterministic", "--strict-offload")
    expected = succeeded(run(*flags, "-ctk", "f32", "-ctv", "f32")).out
    for n in (0, 1, 2, 3, 4, "auto", "all"):
        result = succeeded(run(*flags, *REF, "-ngl", n))
        expect_equal(result.out, expected, f"the text with -ngl {n}")
        expect("note:" not in result.err, "nothing to note", result)


@test
def a_server_answers_as_a_run_alone_on_two_devices():
    """Many requests at once with little room: preempted, chunked, sharing prefixes."""
    flags = (*REF, "-ngl", 2, "-c", 128, "-t", 1, "--deterministic")
    prompts = ["once upon a time there was a duck " * (1 + i % 3) + "abcdefgh"[i] for i in range(8)]
    expected = [succeeded(run("run", "-m", SPM, "--raw", "--quiet", "--ignore-eos", "--temp", 0, "-n", 16, "-p", prompt,
                              *flags)).out for prompt in prompts]
    with Server(SPM, *flags, "--parallel", 4, "--kv-tokens", 256, "--ubatch-size", 12) as server, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        def served(prompt):
            body = {"prompt": prompt, "max_tokens": 16, "temperature": 0, "ignore_eos": True}
            return server.answer("/v1/completions", body)["choices"][0]["text"]

        expect_equal(list(pool.map(served, prompts)), expected, "texts")


@test
def a_server_reports_its_placement():
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config")
        with open(config, "w") as file:
            file.write('device = ["ref", "cpu"]\ntensor-split = [1, 2]\ntensor-device = "output.weight=ref"\n'
                       'n-cpu-moe = 1\nstrict-offload = true\ndeterministic = true\n')
        with Server(SPM, "--config", config, "-t", 1) as server:
            stats = server.get("/stats").json
            metrics = server.metrics()
            expect_equal(server.get("/version").json["flags"]["device"], ["ref", "cpu"], "the flags")
    expect_equal(stats["placement"]["layers"], [{"first": 0, "last": 0, "device": "ref"},
                                                {"first": 1, "last": 1, "device": "cpu"}], "layers")
    expect_equal((stats["placement"]["embedding"], stats["placement"]["output"]), ("ref", "cpu"), "both ends")
    expect_equal(stats["fallbacks"], [], "fallbacks")
    for device in stats["devices"]:
        name = device["device"]
        expect_equal(metrics[f'infer_device_layers{{device="{name}"}}'], device["layers"], "layers")
        for what in ("weights", "kv_cache", "activations", "staging"):
            expect_equal(metrics[f'infer_device_memory_bytes{{device="{name}",what="{what}"}}'], device[what], what)
    expect(stats["devices"][1]["weights_of_other_layers"] > 0, "the output matrix", stats)


main()
