#!/usr/bin/env python3
"""Writes a model with random weights in the shape of a real one, to measure speed and memory without downloading it.

    make_shape.py INFER REFERENCE_MODELS SHAPE OUT.gguf      writes it with F16 matrices
    make_shape.py --list                                     prints the shapes

Keys and tensors are those of a small reference model of the same architecture (goldens/arch of the reference data) with
the hyper-parameters below; the sizes of tensors follow from what `infer plan` says it expects. `infer quantize OUT.gguf
FILE Q4_K_M --allow-requantize` makes a file like the one that people download. Its text is meaningless.
"""

import pathlib
import random
import re
import struct
import subprocess
import sys

from gguf_io import ARRAY, F16, F32, INT32, STRING, elements, header, padded, read

BLOCK = 65521  # random values that are repeated: a prime, so that no two rows of a matrix are equal
MOST_FIXES = 2000

# Reference model, hyper-parameters without the architecture's name, vocabulary, and for each layer the layer of the
# reference model that it resembles.
SHAPES = {
    "gemma3-1b": ("gemma3", {
        "context_length": 32768, "embedding_length": 1152, "feed_forward_length": 6912, "attention.head_count": 4,
        "attention.head_count_kv": 1, "attention.key_length": 256, "attention.value_length": 256,
        "rope.dimension_count": 256, "attention.sliding_window": 512}, 262144, [0] * 26),
    "qwen3moe-2b": ("qwen3moe", {
        "context_length": 32768, "embedding_length": 1024, "feed_forward_length": 3072, "attention.head_count": 16,
        "attention.head_count_kv": 4, "attention.key_length": 128, "attention.value_length": 128,
        "rope.dimension_count": 128, "expert_count": 64, "expert_used_count": 8,
        "expert_feed_forward_length": 512}, 32768, [0] * 24),
    "gpt-oss-2b": ("gpt-oss", {
        "context_length": 32768, "embedding_length": 1440, "feed_forward_length": 1440, "attention.head_count": 32,
        "attention.head_count_kv": 8, "attention.key_length": 64, "attention.value_length": 64,
        "rope.dimension_count": 64, "expert_count": 32, "expert_used_count": 4, "expert_feed_forward_length": 1440,
        "attention.sliding_window": 128, "rope.scaling.original_context_length": 4096}, 32768, [0] * 12),
    "granite-4-h-1b": ("granitehybrid", {
        "context_length": 32768, "embedding_length": 1536, "feed_forward_length": 4096, "attention.head_count": 12,
        "rope.dimension_count": 128, "ssm.inner_size": 3072, "ssm.state_size": 128, "ssm.time_step_rank": 48,
        "attention.scale": 0.0078125}, 100352, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0] * 4),
    "lfm2-1.2b": ("lfm2", {
        "context_length": 32768, "embedding_length": 2048, "feed_forward_length": 8192, "attention.head_count": 32,
        "rope.dimension_count": 64}, 65536, [0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0]),
    "deepseek-v2-2b": ("deepseek2-mla", {
        "context_length": 32768, "embedding_length": 2048, "feed_forward_length": 10944, "attention.head_count": 16,
        "rope.dimension_count": 64, "expert_count": 32, "expert_used_count": 6, "expert_feed_forward_length": 1408,
        "expert_shared_count": 2, "attention.q_lora_rank": 1536, "attention.kv_lora_rank": 512,
        "attention.key_length": 576, "attention.value_length": 512, "attention.key_length_mla": 192,
        "attention.value_length_mla": 128}, 102400, [0] + [1] * 7),
    "mamba2-1.3b": ("mamba2", {
        "context_length": 32768, "embedding_length": 2048, "ssm.inner_size": 4096, "ssm.state_size": 128,
        "ssm.time_step_rank": 64, "ssm.group_count": 1}, 50304, [0] * 48),
    "qwen3.5-0.8b": ("qwen35", {
        "context_length": 32768, "embedding_length": 1024, "feed_forward_length": 3584, "attention.head_count": 8,
        "attention.head_count_kv": 2, "attention.key_length": 256, "attention.value_length": 256,
        "rope.dimension_count": 64, "rope.dimension_sections": [11, 11, 10, 0], "ssm.inner_size": 2048,
        "ssm.state_size": 128, "ssm.time_step_rank": 16, "ssm.group_count": 16,
        "full_attention_interval": 4}, 248320, [0, 0, 0, 2] * 6),
    "rwkv7-1.5b": ("rwkv7", {
        "context_length": 32768, "embedding_length": 2048, "feed_forward_length": 8192,
        "attention.decay_lora_rank": 96, "attention.iclr_lora_rank": 96,
        "attention.value_residual_mix_lora_rank": 64, "attention.gate_lora_rank": 256}, 65536, [0] + [1] * 23),
}

LAYER = re.compile(r"blk\.(\d+)\.(.*)")
EXPECTED = re.compile(r"tensor (\S+): expected \[([0-9, ]+)\], found (.*)")


def with_vocabulary(metadata, n):
    """Adds made-up tokens after those of the reference model."""
    for key, more in (("tokens", lambda i: b"x%d" % i), ("scores", lambda i: -float(i)), ("token_type", lambda _: 1)):
        entry = metadata.get(f"tokenizer.ggml.{key}")
        if entry:
            element, values = entry[1]
            entry[1] = (element, values + [more(i) for i in range(len(values), n)])


def shaped_metadata(metadata, shape):
    _, changes, vocabulary, layers = shape
    prefix = metadata["general.architecture"][1].decode() + "."
    per_layer = [key for key, (kind, value) in metadata.items() if key.startswith(prefix) and kind == ARRAY
                 and len(value[1]) == metadata[prefix + "block_count"][1]]
    for key in per_layer:  # of a layer's kind; the numbers are those of key and value heads
        element, values = metadata[key][1]
        metadata[key][1] = (element, [values[k] and changes["attention.head_count"] // 4 for k in layers])
    for key, value in changes.items():
        kind = metadata.get(prefix + key, [6 if isinstance(value, float) else 4])[0]
        metadata[prefix + key] = [kind, (INT32, value) if kind == ARRAY else value]
    metadata[prefix + "block_count"][1] = len(layers)
    metadata[prefix + "vocab_size"][1] = vocabulary
    with_vocabulary(metadata, vocabulary)
    metadata["general.name"] = [STRING, b"random weights"]


def shaped_tensors(tensors, vocabulary, layers):
    """{name: (reference tensor's name, type, shape)}. All sizes except the vocabulary's are the reference model's."""
    found = {name: (name, kind, shape) for name, (kind, shape, _) in tensors.items() if not LAYER.fullmatch(name)}
    for i, like in enumerate(layers):
        for name, (kind, shape, _) in tensors.items():
            at = LAYER.fullmatch(name)
            if at and int(at[1]) == like:
                found[f"blk.{i}.{at[2]}"] = (name, kind, shape)
    like, kind, (width, _) = found["token_embd.weight"]
    found["token_embd.weight"] = (like, kind, [width, vocabulary])
    return found


def type_of(name, shape):
    """Matrices are F16, except those that llama.cpp requires in F32."""
    large = sum(n > 1 for n in shape) >= 2 and elements(shape) > 1 << 16
    return F16 if large and not re.search(r"conv|ssm_a|norm|ffn_gate_inp\.|time_mix_(lerp|w|a|v|g)", name) else F32


def fit(infer, path, metadata, tensors):
    """Gives tensors the sizes that the program expects, in a file without data."""
    for _ in range(MOST_FIXES):
        shapes = {name: (kind, shape) for name, (_, kind, shape) in tensors.items()}
        head, size = header(metadata, shapes)
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(len(head) + size)
        result = subprocess.run([infer, "plan", "-m", path], capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return
        found = EXPECTED.search(result.stderr)
        if not found or found[1] not in tensors:
            sys.exit(f"make_shape.py: {result.stderr.strip()}")
        reference, _, old = tensors[found[1]]
        wanted = [int(n) for n in reversed(found[2].split(","))]
        sizes = iter(wanted)
        # Dimensions of 1 stay where llama.cpp expects them.
        new = [1 if n == 1 else next(sizes) for n in old] if sum(n > 1 for n in old) == len(wanted) else wanted
        for name, (other, _, shape) in list(tensors.items()):  # all layers of its kind
            if other == reference and shape == old:
                tensors[name] = (other, type_of(name, new), new)
    sys.exit("make_shape.py: the sizes of tensors do not settle")


def fill(path, metadata, tensors, reference):
    chance = random.Random(1)
    halves = [struct.pack("<e", chance.gauss(0, 1)) for _ in range(BLOCK)]
    blocks = {}
    head, _ = header(metadata, {name: (kind, shape) for name, (_, kind, shape) in tensors.items()})
    with open(path, "wb") as file:
        file.write(head)
        for name, (like, kind, shape) in tensors.items():
            n = elements(shape)
            if kind == F16:
                spread = shape[0] ** -0.5  # keeps the size of activations
                if spread not in blocks:
                    blocks[spread] = b"".join(struct.pack("<e", struct.unpack("<e", h)[0] * spread) for h in halves)
                block = blocks[spread]
            else:
                values = reference[like][2]
                block = struct.pack(f"<{len(values)}f", *values)
            size, left = n * (2 if kind == F16 else 4), 0
            while left < size:
                left += file.write(block[:size - left])
            file.write(bytes(padded(size) - size))


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(SHAPES))
        return
    infer, folder, name, out = sys.argv[1:]
    shape = SHAPES[name]
    metadata, reference = read(pathlib.Path(folder) / f"{shape[0]}.gguf")
    shaped_metadata(metadata, shape)
    tensors = shaped_tensors(reference, shape[2], shape[3])
    fit(infer, out, metadata, tensors)
    fill(out, metadata, tensors, reference)


main()
