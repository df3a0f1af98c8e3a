#!/usr/bin/env python3
"""Writes tests/data/prediction/NAME.gguf and NAME.json for architectures whose reference model has no prediction layer.

The layer comes after the others and is a copy of one of them with every weight changed a little; the weights that join
it to the model are random. ORACLE is a program on top of llama.cpp, called as `ORACLE FILE TOKEN...`, that prints the
object described in tests/data/README.md with the log-probabilities of the whole vocabulary; this script keeps the
likeliest. Run from the root of the repository:

    scripts/make_prediction_fixtures.py ../shared/goldens/arch ORACLE [NAME...]
"""

import json
import pathlib
import random
import subprocess
import sys

import gguf_io
from gguf_io import ARRAY, F32, UINT32

N_TOKENS, N_LIKELIEST = 24, 8
OUT = pathlib.Path("tests/data/prediction")

# name: (layer to copy, metadata of the new layer that differs from that layer's, tensors besides the required ones)
OWN_ENDS = ("nextn.shared_head_norm", "nextn.embed_tokens", "nextn.shared_head_head")
MODELS = {
    "bailingmoe3": (1, {}, ("layer_output_norm",)),
    "cohere2moe": (2, {}, ("nextn.shared_head_norm",)),
    "deepseek32": (1, {}, ("nextn.shared_head_norm",)),
    "glm-dsa": (1, {}, OWN_ENDS),
    "hy_v3": (1, {}, ()),
    "mimo2": (0, {"attention.sliding_window_pattern": True}, ("layer_output_norm", "attn_sinks")),
    "step35": (1, {}, OWN_ENDS),
}
OF_TRUNK = ("attention.indexer.types",)  # arrays without an entry for the new layer


def with_layer(name, metadata, tensors):
    source, different, extra = MODELS[name]
    rng = random.Random(name)
    n_layer = metadata[name + ".block_count"][1]
    prefix, new = f"blk.{source}.", f"blk.{n_layer}."
    metadata = dict(metadata)
    for key, (kind, value) in metadata.items():
        short = key.removeprefix(name + ".")
        if kind == ARRAY and len(value[1]) == n_layer and key != short and short not in OF_TRUNK:
            metadata[key] = (kind, (value[0], [*value[1], different.get(short, value[1][source])]))
    metadata[name + ".block_count"] = (UINT32, n_layer + 1)
    metadata[name + ".nextn_predict_layers"] = (UINT32, 1)

    result = dict(tensors)
    for key, (_, shape, values) in tensors.items():
        if key.startswith(prefix):
            result[new + key.removeprefix(prefix)] = (F32, shape, [0.9 * v + rng.gauss(0, 0.05) for v in values])
    d, n_vocab = tensors["token_embd.weight"][1]
    n_head = metadata[name + ".attention.head_count"][1]
    shapes = {"nextn.eh_proj": [2 * d, d], "nextn.embed_tokens": [d, n_vocab], "nextn.shared_head_head": [d, n_vocab]}
    for short in ("nextn.eh_proj", "nextn.enorm", "nextn.hnorm", *extra):
        shape = shapes.get(short, [n_head if short == "attn_sinks" else d])
        mean, deviation = (0, 0.3) if len(shape) > 1 else (1, 0.1)
        values = [rng.gauss(mean, deviation) for _ in range(gguf_io.elements(shape))]
        result[f"{new}{short}.weight"] = (F32, shape, values)
    return metadata, result


def likeliest(row):
    best = sorted(range(len(row)), key=lambda token: -row[token])[:N_LIKELIEST]
    return [[token, round(row[token], 5)] for token in best]


def main():
    source, oracle, *names = sys.argv[1:]
    for name in names or MODELS:
        path = OUT / f"{name}-nextn.gguf"
        gguf_io.write(path, *with_layer(name, *gguf_io.read(pathlib.Path(source) / f"{name}.gguf")))
        tokens = json.loads((pathlib.Path(source) / f"{name}.json").read_text())["tokens"][:N_TOKENS]
        found = json.loads(subprocess.check_output([oracle, path, *map(str, tokens)]))
        rows = ",\n  ".join(json.dumps(likeliest(row)) for row in found["positions"])
        own = json.dumps(likeliest(found["own"]))
        path.with_suffix(".json").write_text(f'{{"tokens": {tokens},\n "positions": [\n  {rows}],\n "own": {own}}}\n')


if __name__ == "__main__":
    main()
