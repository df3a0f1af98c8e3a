"""The accelerators of this machine, for tests of one kind of device."""

import functools
import json
import os

from harness import Failure, expect, run, skip
from models import F32_CACHE, differences, exactness, logprobs, logprobs_text, reference_model, succeeded

FULL = os.environ.get("INFER_TEST_FULL") == "1"
# Every reference model instead of a few, as is possible on a GPU.
ALL_MODELS = FULL or os.environ.get("INFER_TEST_MODELS") == "all"


@functools.cache
def first_device(kind):
    """The name of the first device of a kind; without one the test is skipped, or fails if INFER_REQUIRE names the kind."""
    names = [d["name"] for d in json.loads(succeeded(run("devices", "--json")).out)["devices"]]
    found = [name for name in names if name.startswith(kind)]
    if found:
        return found[0]
    if kind in os.environ.get("INFER_REQUIRE", "").split(","):
        raise Failure(f"INFER_REQUIRE asks for {kind}, and no such device was found")
    return skip(f"no {kind} device")


def layers_of(model):
    """Every number of layers that -ngl takes: from none through the layers and the head to all with the embedding."""
    metadata = json.loads(succeeded(run("inspect", model, "--json")).out)["metadata"]
    n_layer = next(entry["value"] for entry in metadata if entry["key"].endswith(".block_count"))
    return [*range(int(n_layer) + 2), "all"]


def none_half_and_all(model):
    every = layers_of(model)
    return every if FULL else [0, every[len(every) // 2], "all"]


def expect_f32_agreement(name, layers, on_device):
    """A model with weights in F32 has the recorded results with each number of layers in `layers(model)` on a device."""
    model, recorded = reference_model(name)
    for n in layers(model):
        worst = max(differences(logprobs(model, recorded["tokens"], *on_device(n), *F32_CACHE), recorded["positions"]))
        expect(worst <= exactness(recorded), f"-ngl {n}: largest difference {worst:.6f}")


def expect_same_bits_in_chunks(name, on_device):
    """With --deterministic the results do not depend on how a prompt is split into steps."""
    model, recorded = reference_model(name)
    texts = {n: logprobs_text(model, recorded["tokens"], *on_device("all"), "--deterministic", "--ubatch-size", n)
             for n in (1, 5, 48)}
    for n, text in texts.items():
        expect(text == texts[48], f"the bits with --ubatch-size {n} differ from those with 48")
