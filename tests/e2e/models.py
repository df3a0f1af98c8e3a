"""The models of the end-to-end tests, and their results.

Reference models are in goldens/arch of the reference data; a few of them, and small models of our own, are in
tests/data, so that a clone alone tests something. Trained ones that ship with the project are in models/.
"""

import functools
import json
import math
import os
import pathlib

from harness import BINARY, SOURCE_DIR, Failure, run, shared_folder, skip

DATA = SOURCE_DIR / "tests" / "data"
SPM = DATA / "spm.gguf"  # adds BOS; its greedy text is printable
BPE = DATA / "bpe.gguf"  # adds no BOS
VOCAB_ONLY = DATA / "vocab_only.gguf"

DEMO = SOURCE_DIR / "models"  # trained; all with one vocabulary
DEMO_TARGET = DEMO / "infer-demo-5m-q8_0.gguf"
DEMO_PREDICTING = DEMO / "infer-demo-5m-mtp-q8_0.gguf"  # the same with a prediction layer
DEMO_DRAFT, DEMO_DRAFT_F16 = DEMO / "infer-demo-draft-q8_0.gguf", DEMO / "infer-demo-draft-f16.gguf"

EXACT = 1e-3  # F32 activations and cache; a correct implementation is a hundred times closer
# Of architectures with a tanh GELU, which llama.cpp looks up in a table of half precision.
NEAR = 0.01
TANH_GELU = {"bloom", "codeshell", "falcon", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt2", "gptneox", "grok",
             "mpt", "phi2", "starcoder", "starcoder2"}
# In the layers that see all positions, llama.cpp computes attention in half precision, whatever the type of the cache.
HALF_ATTENTION = {"minimax-m3": 0.02}

QUANTIZED_MODELS = {  # {model: the type it is stored in}
    f"quant-{name}": name.rsplit("-", 1)[-1].upper() for name in (
        "bf16", "f16", "iq1_m", "iq1_s", "iq2_s", "iq2_xs", "iq2_xxs", "iq3_s", "iq3_xxs", "iq4_nl", "iq4_xs", "nvfp4",
        "1bit-q1_0", "2bit-q2_0", "q2_k", "q3_k", "q4_0", "q4_1", "q4_k", "q5_0", "q5_1", "q5_k", "q6_k", "q8_0",
        "tq1_0", "tq2_0")
}

WHOLE_VOCABULARY = 100000
F32_CACHE = ("-ctk", "f32", "-ctv", "f32")


def reference_model(name):
    """(path of the model, its recorded results); skips the test if the model is missing."""
    shared = shared_folder()
    for folder in ([shared / "goldens" / "arch"] if shared else []) + [DATA / "arch"]:
        if (folder / f"{name}.gguf").is_file():
            return folder / f"{name}.gguf", json.loads((folder / f"{name}.json").read_text())
    return skip(f"no model {name} (../shared or $INFER_SHARED has it)")


def exactness(recorded):
    """The largest difference from recorded results that F32 activations and cache may have."""
    architecture = recorded["architecture"]
    return HALF_ATTENTION.get(architecture, NEAR if architecture in TANH_GELU else EXACT)


@functools.cache
def architectures():
    """The names of all architectures that the program has; none without a program, which harness.main() reports."""
    if not os.access(BINARY, os.X_OK):
        return []
    listed = json.loads(succeeded(run("inspect", "--architectures", "--json")).out)
    return [entry["name"] for entry in listed["architectures"]]


@functools.cache
def supported_models():
    """{reference model: its recorded results}, of all the architectures that the program supports."""
    shared = shared_folder()
    paths = sorted((shared / "goldens" / "arch" if shared else DATA / "arch").glob("*.json"))
    recorded = {path.stem: json.loads(path.read_text()) for path in paths}
    return {name: of_model for name, of_model in recorded.items() if of_model["architecture"] in architectures()}


def f32_models():
    """{reference model with F32 weights that predicts tokens: its architecture}. A table that is only looked up in may
    have another type: expanding it changes nothing."""
    return {name: recorded["architecture"] for name, recorded in supported_models().items()
            if "positions" in recorded and recorded.get("positions_f32", recorded["positions"]) == recorded["positions"]}


def encoders():
    """{reference model that turns a text into a vector: its architecture}."""
    return {name: recorded["architecture"] for name, recorded in supported_models().items() if "embedding" in recorded}


def succeeded(result):
    """The result; fails the test if the program failed."""
    if result.code != 0:
        raise Failure(f"exit code {result.code}\n{result}")
    return result


def on_one_thread(flags):
    """The flags, with one thread unless they say how many. More gain nothing with small models, and cost much while other
    tests run."""
    return flags if "-t" in flags else ("-t", 1, *flags)


def logprobs_text(model, tokens, *flags, top=WHOLE_VOCABULARY, env=None):
    """The JSON document of `infer logprobs`, as text: equal text is equal bits."""
    return succeeded(run("logprobs", "-m", model, "--tokens", ",".join(map(str, tokens)), "--json", "--top", top,
                         *on_one_thread(flags), env=env)).out


def logprobs(model, tokens, *flags, top=WHOLE_VOCABULARY, env=None):
    """One {token: log-probability} per position, most probable first."""
    text = logprobs_text(model, tokens, *flags, top=top, env=env)
    return [dict(entries) for entries in json.loads(text)["positions"]]


def differences(found, expected):
    """|log p - log p_ref| of every entry of `expected`: lists of [token, log-probability] per position. Infinity for what
    is missing and for NaN, which max() would pass over."""
    if len(found) != len(expected):
        raise Failure(f"{len(expected)} positions expected, found {len(found)}")
    off = [abs(position.get(token, float("-inf")) - logprob)
           for position, entries in zip(found, expected) for token, logprob in entries]
    return [float("inf") if math.isnan(one) else one for one in off]


@functools.cache
def cpu_levels():
    """The instruction-set levels that this machine runs."""
    devices = json.loads(succeeded(run("devices", "--json")).out)["devices"]
    return [level for device in devices for level in device.get("levels", [])]
