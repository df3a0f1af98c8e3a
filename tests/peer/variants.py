#!/usr/bin/env python3
"""Writes variants of reference models: other numbers of heads and experts, other widths, windows, bases and scales.

    variants.py INFER FOLDER OUT SEED COUNT [NAME ...]

For each model of FOLDER (or those named) writes OUT/NAME-K.gguf, K below COUNT, with some hyper-parameters changed at
random, and prints one JSON line: {"name", "model", "path", "changes", "tokens", "limit", "flash_attention"}, and
"refused", what the program says, if it does not compute the variant. The sizes of tensors follow from what INFER says
it expects; their values are drawn from those of the reference model's tensor.
"""

import json
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "e2e"), str(ROOT / "scripts")]
from gguf_io import ARRAY, elements, read, write  # noqa: E402
from models import exactness  # noqa: E402

MOST_FIXES = 2000


# ---- what to change ----


def times(*factors):
    return lambda value, rng, _: int(value * rng.choice(factors)) or value


def halved(value, rng, get):
    return value // 2 if value % 4 == 0 else value


def one_of(*values):
    return lambda value, rng, _: rng.choice([v for v in values if v != value] or [value])


def scaled(low, high):
    return lambda value, rng, _: value * rng.uniform(low, high)


def heads(value, rng, get):
    """A multiple of the key and value heads."""
    return value * rng.choice([2, 3])


def kv_heads(value, rng, get):
    n = get("attention.head_count")
    if not isinstance(n, int) or not value:
        return value
    return rng.choice([k for k in range(1, n + 1) if n % k == 0])


def used_experts(value, rng, get):
    return rng.randint(1, max(1, min(get("expert_count") or 1, value + 2)))


# Key without the architecture: a function of the value, or of each value of an array that is not 0.
CHANGES = {
    "attention.head_count": heads,
    "attention.head_count_kv": kv_heads,
    "embedding_length": times(2, 1.5),
    "feed_forward_length": times(2, 1.5, 0.5),
    "attention.key_length": times(2, 1.5),
    "rope.dimension_count": halved,
    "rope.freq_base": scaled(0.3, 30),
    "rope.freq_base_swa": scaled(0.3, 30),
    "rope.scaling.factor": scaled(0.5, 3),
    "attention.layer_norm_rms_epsilon": scaled(0.1, 3),
    "attention.layer_norm_epsilon": scaled(0.1, 3),
    "attention.sliding_window": times(0.5, 0.75, 2),
    "attention.scale": scaled(0.5, 2),
    "attn_logit_softcapping": scaled(0.5, 2),
    "final_logit_softcapping": scaled(0.5, 2),
    "logit_scale": scaled(0.5, 2),
    "embedding_scale": scaled(0.5, 2),
    "residual_scale": scaled(0.5, 2),
    "attention.max_alibi_bias": scaled(0.5, 2),
    "attention.clamp_kqv": scaled(0.5, 2),
    "expert_count": times(2, 1.5),
    "expert_used_count": used_experts,
    "expert_feed_forward_length": times(2, 1.5),
    "expert_shared_feed_forward_length": times(2, 1.5),
    "expert_shared_count": one_of(1, 2),
    "expert_weights_scale": scaled(0.5, 3),
    "ssm.conv_kernel": one_of(2, 3, 4),
    "ssm.state_size": times(2, 0.5),
    "ssm.inner_size": times(2),
    "ssm.time_step_rank": times(2, 0.5),
    "ssm.group_count": times(2, 0.5),
    "attention.q_lora_rank": times(2, 1.5),
    "attention.kv_lora_rank": times(2, 1.5),
    "attention.indexer.head_count": times(2, 0.5),
    "attention.indexer.key_length": times(2),
    "attention.indexer.top_k": times(0.5, 0.75, 1.5),
    "hyper_connection.count": one_of(2, 3, 4),
    "shortconv.l_cache": one_of(2, 3, 4),
    "altup.num_inputs": one_of(2, 3, 4),
    "embedding_length_per_layer_input": times(2),
}


# Relations between hyper-parameters: where one holds in the reference model, it holds in its variants too.
def keep_relations(metadata, prefix, before):
    def was(key):
        return before.get(prefix + key, [0, None])[1]

    def now(key):
        return metadata.get(prefix + key, [0, None])[1]

    def put(key, value):
        metadata[prefix + key] = [metadata[prefix + key][0], value]

    heads, width = was("attention.head_count"), was("embedding_length")
    if was("attention.key_length") is None and isinstance(heads, int) and heads:  # a head's width follows from both
        put("embedding_length", width // heads * now("attention.head_count"))
        if was("rope.dimension_count") == width // heads:
            put("rope.dimension_count", now("embedding_length") // now("attention.head_count"))
    if was("ple.layers"):  # the rows of all lookups are as wide as the model
        lookups = width // was("embedding_length_per_layer_input")
        put("embedding_length_per_layer_input", now("embedding_length") // lookups)
    rank, rotated = was("attention.kv_lora_rank"), was("rope.dimension_count")
    if rank and was("attention.key_length") == rank + rotated:
        put("attention.key_length", now("attention.kv_lora_rank") + now("rope.dimension_count"))
        if was("attention.value_length") == rank:
            put("attention.value_length", now("attention.kv_lora_rank"))
    elif was("attention.key_length") and was("attention.key_length") == was("attention.value_length"):
        put("attention.value_length", now("attention.key_length"))
    if was("attention.key_length") and was("rope.dimension_count") == was("attention.key_length"):
        put("rope.dimension_count", now("attention.key_length"))
    if isinstance(was("attention.head_count_kv"), int) and was("attention.head_count_kv") == 1 and rank:
        put("attention.head_count_kv", 1)
    if was("attention.head_count_kv") == heads and isinstance(heads, int):
        put("attention.head_count_kv", now("attention.head_count"))
    if was("ssm.time_step_rank") and was("ssm.group_count") and now("ssm.time_step_rank") % now("ssm.group_count"):
        put("ssm.group_count", was("ssm.group_count"))
        put("ssm.time_step_rank", was("ssm.time_step_rank"))
    if was("ssm.inner_size") and was("ssm.inner_size") == was("ssm.state_size") * (was("ssm.time_step_rank") or 0):
        put("ssm.inner_size", now("ssm.state_size") * now("ssm.time_step_rank"))


def change(metadata, tensors, rng):
    """Changes some of the keys at random; returns {key: new value}."""
    prefix = metadata["general.architecture"][1].decode() + "."

    def get(key):
        return metadata.get(prefix + key, [0, None])[1]

    before = {key: list(value) for key, value in metadata.items()}
    applicable = [key for key in CHANGES if get(key) is not None]
    changes = {}
    for key in rng.sample(applicable, min(len(applicable), rng.randint(1, 4))):
        kind, value = metadata[prefix + key]
        if kind == ARRAY:
            element, values = value
            new = (element, [CHANGES[key](v, rng, get) if v and not isinstance(v, bool) else v for v in values])
        else:
            new = CHANGES[key](value, rng, get)
        if new == value:
            continue
        metadata[prefix + key] = [kind, new]
        changes[key] = new[1] if kind == ARRAY else new
    keep_relations(metadata, prefix, before)
    if rng.random() < 0.2 and "output.weight" in tensors:
        del tensors["output.weight"]
        changes["output"] = "tied"
    return changes


# ---- fitting tensors ----

EXPECTED = re.compile(r"tensor (\S+): expected \[([0-9, ]+)\], found (.*)")


def says(infer, path):
    result = subprocess.run([infer, "logprobs", "-m", path, "--tokens", "1", "-ngl", "0"], capture_output=True,
                            text=True, timeout=60)
    return result.returncode, (result.stderr.strip().splitlines() or [""])[-1]


def fit(infer, path, metadata, tensors, rng):
    """Writes the file with the sizes that the program expects; returns the program's objection to it, or ""."""
    previous = None
    for _ in range(MOST_FIXES):
        write(path, metadata, tensors)
        code, text = says(infer, path)
        if code == 0:
            return ""
        found = EXPECTED.search(text)
        if not found or text == previous or found[1] not in tensors:
            return text
        previous = text
        kind, old, values = tensors[found[1]]
        wanted = [int(n) for n in reversed(found[2].split(","))]
        sizes = iter(wanted)
        # Dimensions of 1 stay where llama.cpp expects them.
        shape = [1 if n == 1 else next(sizes) for n in old] if sum(n > 1 for n in old) == len(wanted) else wanted
        tensors[found[1]] = [kind, shape, rng.choices(values, k=elements(shape))]
    return "too many tensors"


def limit_of(recorded):
    """Twice that of the reference model, whose widths a variant may double; llama.cpp's flash attention rounds keys and
    values to F16."""
    return 0.02 if recorded.get("flash_attention") else 2 * exactness(recorded)


def main():
    infer, folder, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    seed, count = sys.argv[4], int(sys.argv[5])
    names = sys.argv[6:] or sorted(path.stem for path in folder.glob("*.gguf"))
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        recorded = json.loads((folder / f"{name}.json").read_text())
        if "positions" not in recorded:
            continue
        for k in range(count):
            rng = random.Random(f"{seed} {name} {k}")
            model = read(folder / f"{name}.gguf")
            if not model:
                break
            metadata, tensors = model
            if any(key.endswith(".nextn_predict_layers") and value[1] for key, value in metadata.items()):
                break  # the program does not look at the tensors of these layers here
            changes = change(metadata, tensors, rng)
            path = out / f"{name}-{k}.gguf"
            refused = fit(infer, path, metadata, tensors, rng)
            line = {"name": path.stem, "model": name, "changes": changes, "tokens": recorded["tokens"],
                    "limit": limit_of(recorded), "flash_attention": recorded.get("flash_attention", False)}
            print(json.dumps(line | ({"refused": refused} if refused else {}) | {"path": str(path)}), flush=True)


main()
