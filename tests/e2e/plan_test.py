"""The memory plan: its sums, and its report if something does not fit."""

import json

from harness import expect, expect_equal, main, run, test, test_each
from models import BPE, DEMO_DRAFT, DEMO_TARGET, SPM, succeeded


def plan(*flags):
    return json.loads(succeeded(run("plan", "--json", *flags)).out)


@test
def cache_of_a_known_shape_is_exact():
    """80 layers, 8 heads of 128, keys and values of 2 bytes, 32 times 4,096 tokens."""
    result = run("plan", "--shape", "llama-3.1-70b", "-c", 4096, "--parallel", 32)
    expect("42,949,672,960 bytes" in result.out, "the bytes of the KV cache", result)
    document = json.loads(run("plan", "--shape", "llama-3.1-70b", "-c", 4096, "--parallel", 32, "--json").out)
    expect_equal(document["kv_cache"], 80 * 8 * 128 * 2 * 2 * 32 * 4096, "bytes")


@test
def sums_add_up():
    document = plan("-m", SPM, "-c", 100, "--parallel", 3)
    # Two layers, two KV heads of 16, keys and values of 2 bytes; contexts are whole blocks of 32 tokens.
    expect_equal(document["kv_cache_per_token"], 2 * 2 * 16 * 2 * 2, "bytes per token")
    expect_equal(document["kv_cache"], document["kv_cache_per_token"] * 128 * 3, "bytes of the cache")
    expect_equal(document["caches"], [{"kind": "full", "layers": [0, 1]}], "caches")
    expect({"embed", "rope", "paged_attention"} <= set(document["operations"]), "operations", document["operations"])
    device, = document["devices"]
    expect_equal(device["needed"], sum(device[what] for what in ("weights", "kv_cache", "activations", "staging")),
                 "needed bytes")
    expect_equal(sum(device["weights_by_type"].values()), device["weights"], "bytes by type")
    expect_equal(device["layers"], 2, "layers")
    expect(document["fits"] and document["most_parallel"] > 3, "it fits", document)
    # Counts, three numbers per token, one per output, sequence and block of each.
    tokens, forced = 300, 16  # forced: drafts of what grammars force
    expect_equal(device["staging"], 4 * (4 + 3 * tokens + (3 + forced) + 3 + 3 * 4), "staging")


def inspect(path):
    """{tensor: its rows, each of that many bytes}"""
    tensors = json.loads(succeeded(run("inspect", path, "--tensors", "--json")).out)["tensors"]
    return {t["name"]: [t["n_bytes"] // t["shape"][0]] * t["shape"][0] for t in tensors}


@test_each(SPM.name, DEMO_TARGET.name)
def weights_are_those_of_the_file(name):
    """The demo model's embedding is also its output matrix and is counted once."""
    path = SPM if name == SPM.name else DEMO_TARGET
    device, = plan("-m", path)["devices"]
    expect_equal(device["weights"], sum(map(sum, inspect(path).values())), "bytes")
    expect_equal((device["embedding"], device["output"]), (True, True), "both ends")


@test
def a_draft_is_counted_along_with_the_model():
    flags = ("-m", DEMO_TARGET, "-c", 512, "--parallel", 4)
    alone, = plan(*flags, "--spec", "lookup")["devices"]  # with room to verify drafts
    document = plan(*flags, "-md", DEMO_DRAFT)
    device, = document["devices"]
    own, = plan("-m", DEMO_DRAFT, "-c", 512, "--parallel", 4, "--no-jump-forward")["devices"]
    for what in ("layers", "weights", "kv_cache", "activations", "staging", "needed"):
        expect_equal(device["draft"][what], own[what], f"{what} of the draft")
    expect_equal(device["needed"], alone["needed"] + own["needed"], "needed bytes")
    expect_equal(document["draft_kv_cache_per_token"] * 512 * 4, own["kv_cache"], "bytes per token")
    text = succeeded(run("plan", *flags, "--draft-model", DEMO_DRAFT)).out
    expect("  draft " in text and "of the draft" in text, "a line of its own", text)
    result = run("plan", "-m", DEMO_TARGET, "-md", BPE)
    expect(result.code == 2 and "The draft model has a different vocabulary" in result.err, "another vocabulary", result)


@test
def every_choice_has_its_reason():
    names = ["layers", "context", "parallel", "fits", "largest_context", "most_parallel"]
    document = plan("--shape", "llama-3.2-1b", "-ctk", "f32", "-ctv", "f32", "--parallel", 64)
    reasons = document["reasons"]
    expect_equal(list(reasons), names, "choices")
    expect("--device names no other device" in reasons["layers"], "layers", reasons)
    expect("4096" in reasons["context"] and "131072" in reasons["context"], "context", reasons)
    expect("needed" in reasons["fits"] and "free" in reasons["fits"], "fits", reasons)
    more = document["largest_context"] + 32
    expect(reasons["largest_context"].startswith(f"{more} would need "), "what limits the context", reasons)
    expect(reasons["most_parallel"].startswith(f"{document['most_parallel'] + 1} would need "), "sequences", reasons)
    reasons = plan("-m", SPM, "-c", 64)["reasons"]
    expect("-c 64" in reasons["context"] and "trained" in reasons["largest_context"], "a small model", reasons)
    expect("4096" in reasons["most_parallel"], "the most that can be asked for", reasons)
    text = succeeded(run("plan", "-m", SPM, "-c", 64)).out
    for name in names:
        expect(f"  {name}" in text and plan("-m", SPM, "-c", 64)["reasons"]["layers"] in text, name, text)


@test
def layers_by_flag():
    for flags, on_device, reason in (((), 2, "-ngl auto, they fit"), (("-ngl", "all"), 2, "-ngl all"),
                                     (("-ngl", "auto"), 2, "-ngl auto, they fit"),
                                     (("-ngl", 2), 1, "the last 1 of 2 and the output on ref: -ngl 2"),
                                     (("-ngl", 1), 0, "the output alone on ref: -ngl 1"),
                                     (("-ngl", 0), 0, "nothing on ref: -ngl 0")):
        document = plan("-m", SPM, "--device", "ref", *flags)
        expect_equal(document["devices"][1]["layers"], on_device, f"layers with {flags}")
        expect(reason in document["reasons"]["layers"], "the reason", document)


@test
def cache_types_count():
    half = plan("-m", SPM)["kv_cache_per_token"]
    expect_equal(plan("-m", SPM, "-ctk", "f32", "-ctv", "f32")["kv_cache_per_token"], 2 * half, "F32 keys and values")
    expect_equal(plan("-m", SPM, "-ctk", "f32")["kv_cache_per_token"], 3 * half // 2, "F32 keys")
    half = plan("-m", DEMO_TARGET)["kv_cache_per_token"]
    expect_equal(plan("-m", DEMO_TARGET, "-ctk", "q8_0", "-ctv", "q8_0")["kv_cache_per_token"], half * 34 // 64, "Q8_0")
    expect_equal(plan("-m", DEMO_TARGET, "-ctk", "q8_0", "-ctv", "q4_0")["kv_cache_per_token"], half * 26 // 64,
                 "Q8_0 keys and Q4_0 values")
    expect_equal(plan("-m", DEMO_TARGET, "-ctk", "q5_1", "-ctv", "q4_1")["kv_cache_per_token"], half * 22 // 64,
                 "Q5_1 keys and Q4_1 values")
    expect_equal(plan("-m", DEMO_TARGET, "-ctk", "q5_0", "-ctv", "iq4_nl")["kv_cache_per_token"], half * 20 // 64,
                 "Q5_0 keys and IQ4_NL values")


@test
def layers_are_counted_on_their_devices():
    cpu, ref = plan("-m", SPM, "--device", "ref", "-ngl", 2)["devices"]
    expect_equal((cpu["layers"], ref["layers"]), (1, 1), "layers per device")
    whole, = plan("-m", SPM)["devices"]
    expect_equal(cpu["weights"] + ref["weights"], whole["weights"], "weights of both")


@test
def what_does_not_fit_is_exit_code_1():
    result = run("plan", "-m", SPM, "-c", 10**12)
    expect_equal(result.code, 1, "exit code")
    expect("does not fit" in result.out and "KV cache is too large" in result.out, "the reason", result)
    result = run("plan", "--shape", "llama-3.1-70b", "--type", "F32")
    expect(result.code == 0 or "do not fit" in result.out, "the reason", result)


@test
def the_largest_context_fits_and_one_block_more_does_not():
    # The free memory changes from moment to moment, so allow a margin of a tenth on both sides.
    document = plan("--shape", "llama-3.2-1b", "-ctk", "f32", "-ctv", "f32", "--parallel", 64)
    largest = document["largest_context"]
    expect(32 <= largest < 131072, "a largest context", document)
    flags = ("--shape", "llama-3.2-1b", "-ctk", "f32", "-ctv", "f32", "--parallel", 64)
    expect_equal(run("plan", *flags, "-c", largest * 9 // 10).code, 0, "a little less")
    expect_equal(run("plan", *flags, "-c", largest * 11 // 10 + 32).code, 1, "a little more")


@test
def replicas_follow_from_speed():
    capacity = plan("--shape", "tiny", "--rps", 10, "--output-tokens", 300, "--tokens-per-second", 1000)["capacity"]
    expect_equal((capacity["replicas"], capacity["measured"]), (3, False), "replicas")
    capacity = plan("-m", SPM, "-c", 100, "--parallel", 2, "--rps", 2, "--output-tokens", 50)["capacity"]
    expect(capacity["measured"] and capacity["tokens_per_second"] > 0, "measured", capacity)
    needed = -(-100 // capacity["tokens_per_second"])
    expect_equal(capacity["replicas"], int(needed), "replicas")


@test_each("", "--shape tiny -m x", "--shape nonsense", "--shape tiny --type Q9", "--shape tiny --rps 3",
           "--shape tiny --rps 3 --output-tokens 5", "--shape tiny --parallel 0", "-m /nowhere")
def wrong_use_is_one_line(flags):
    result = run("plan", *flags.split())
    expect(result.code in (1, 2) and result.err.count("\n") == 1 and not result.out, "one line", result)


main()
