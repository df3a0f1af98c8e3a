"""Every architecture and weight type that is supported computes the same function as llama.cpp.

The models have random weights, so a wrong layout, bias, norm or scale shows as a difference of 0.3 or more in the
log-probabilities; the limits below are ten to a hundred thousand times tighter. What the program does not support, it
must refuse by name: the two lists hold what it supports, so losing support is a failure, and so is new support until it
is listed here.
"""

import collections
import json
import math

from harness import expect, expect_equal, main, run, shared, shared_folder, skip, test, test_each
from models import (DATA, EXACT, F32_CACHE, QUANTIZED_MODELS, architectures, differences, encoders, exactness,
                    f32_models, logprobs, reference_model, succeeded)

F32_MODELS = [*f32_models()]
MIXED_MODELS = ["gpt-oss-mxfp4", "quant-mix-iq2_m", "quant-mix-q4_k_m"]  # of several types
# Where rounding of keys to F16 changes more than in llama.cpp.
F16_LIMITS = {"pangu-embedded": 0.015, "minimax-m3": 0.02}
# Positions that cannot be compared with an F16 cache: rounding selects another expert for the first of them, which
# affects later tokens as far as their window of 12 reaches; in hunyuan-moe no later ones, because it happens in the
# last layer.
F16_OTHER_EXPERTS = {"granite_swa": range(33, 45), "hunyuan-moe": [32]}
ENCODERS = [*encoders()]
SUPPORTED = [*F32_MODELS, *QUANTIZED_MODELS, *MIXED_MODELS, *ENCODERS]
VECTOR_LIMIT = 0.01


def expect_within(found, expected, limit, what):
    worst = max(differences(found, expected))
    expect(worst <= limit, f"{what}: largest difference {worst:.6f}, at most {limit:.6f} expected")


@test_each(*F32_MODELS)
def agrees_in_f32(name):
    model, recorded = reference_model(name)
    for flags in (("--device", "ref"), F32_CACHE):
        expect_within(logprobs(model, recorded["tokens"], *flags), recorded["positions"], exactness(recorded), flags)


@test_each(*F32_MODELS)
def agrees_with_an_f16_cache(name):
    model, recorded = reference_model(name)
    limit = F16_LIMITS.get(name, max(3 * recorded["f16_kv_diff"], 0.01))
    found = logprobs(model, recorded["tokens"])
    compared = [i for i in range(len(found)) if i not in F16_OTHER_EXPERTS.get(name, ())]
    expect_within([found[i] for i in compared], [recorded["positions"][i] for i in compared], limit, "F16 cache")


@test_each(*ENCODERS)
def vector_agrees(name):
    model, recorded = reference_model(name)
    tokens = ",".join(map(str, recorded["tokens"]))
    for flags in (("--device", "ref"), F32_CACHE, ()):
        out = succeeded(run("embed", "-m", model, "--tokens", tokens, "--embd-normalize", -1, *flags)).out
        found = json.loads(out)["embedding"]
        expect_equal(len(found), len(recorded["embedding"]), "values of the vector")
        worst = max(abs(a - b) for a, b in zip(found, recorded["embedding"]))
        expect(worst <= VECTOR_LIMIT, f"{flags}: largest difference {worst:.6f}, at most {VECTOR_LIMIT} expected")


@test_each(*QUANTIZED_MODELS, *MIXED_MODELS)
def definition_agrees_with_expanded_weights(name):
    model, recorded = reference_model(name)
    expect_within(logprobs(model, recorded["tokens"], "--device", "ref"), recorded["positions_f32"], EXACT, "ref")


def root_mean_square(values):
    return math.sqrt(sum(x * x for x in values) / len(values))


@test_each(*QUANTIZED_MODELS, *MIXED_MODELS)
def rounding_of_activations_costs_no_more_than_in_llama_cpp(name):
    """Both round activations before a matmul; neither is exact, but ours must not be further off."""
    model, recorded = reference_model(name)
    exact = [dict(entries) for entries in recorded["positions_f32"]]
    # Each list holds the 20 likeliest tokens; compare those in both.
    common = [[[t, p] for t, p in entries if t in position] for entries, position in zip(recorded["positions"], exact)]
    theirs = differences(exact, common)
    expect(len(theirs) > 0.8 * sum(map(len, exact)), "recorded lists have most tokens in common")
    ours = differences(logprobs(model, recorded["tokens"]), recorded["positions_f32"])
    for measure, distance in (("largest", max), ("mean square", root_mean_square)):
        expect(distance(ours) <= 1.5 * distance(theirs),
               f"{measure} distance {distance(ours):.4f}, at most 1.5 times {distance(theirs):.4f} expected")


@test_each("gpt2", "starcoder")
def learned_positions_end_with_their_table(name):
    model, _ = reference_model(name)
    for count, code in ((128, 0), (129, 2)):
        result = run("logprobs", "-m", model, "--tokens", ",".join(["5"] * count), "--json")
        expect_equal(result.code, code, f"exit code for {count} tokens")
    expect("positions for 128 tokens" in result.err, "the number of positions", result)


@test
def everything_else_is_refused_by_name():
    folder = shared("goldens", "arch")
    refused = collections.Counter()
    for path in sorted(folder.glob("*.json")):
        if path.stem in SUPPORTED:
            continue
        recorded = json.loads(path.read_text())
        result = run("logprobs", "-m", path.with_suffix(".gguf"), "--tokens", "1,2", "--json")
        expect(result.code != 0, f"{path.stem} runs now: add it to this test's lists of models")
        what = recorded["architecture"]
        expect_equal(result.code, 1, f"exit code for {path.stem}")
        expect_equal(result.out, "", f"standard output for {path.stem}")
        expect(result.err.count("\n") == 1 and what in result.err, f"one line that names {what}", result)
        refused[what] += 1
    print(f"refused by name: {sum(refused.values())} models ({', '.join(sorted(refused))})")


@test
def every_matmul_type_has_a_model():
    listed = {"F32", "MXFP4", *QUANTIZED_MODELS.values()}
    for device in json.loads(succeeded(run("devices", "--ops", "--json")).out)["devices"]:
        expect_equal(set(device["product_types"]), listed, f"types of products on {device['name']}")


@test
def every_architecture_has_a_model():
    shared("goldens", "arch")
    expect_equal(sorted({*f32_models().values(), *encoders().values()}), architectures(),
                 "architectures of the models with F32 weights")


@test
def every_listed_model_exists():
    folder = shared("goldens", "arch")
    expect_equal([n for n in SUPPORTED if not (folder / f"{n}.gguf").is_file()], [], "missing")


@test
def copies_here_equal_the_originals():
    if not shared_folder():
        skip("no reference data (../shared or $INFER_SHARED) to compare tests/data/arch with")
    copies = sorted((DATA / "arch").iterdir())
    expect(copies, "tests/data/arch holds models")
    for copy in copies:
        expect(copy.read_bytes() == shared("goldens", "arch", copy.name).read_bytes(), f"{copy.name} differs")


main()
