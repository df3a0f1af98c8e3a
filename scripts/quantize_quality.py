#!/usr/bin/env python3
"""Measures how far quantized files of a demo model, ours and llama.cpp's of the same type, are from the original.

    make test-peer
    quantize_quality.py build/peer/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64 [--model FILE] [--orders 8]

Prints the tables of docs/quantize.md: the mean Kullback-Leibler divergence from the model's own distributions, without
and with an importance matrix, on text of the demo models' grammar that they were not trained on. The divergence of one
file is partly luck, because a few tokens dominate it; so each is measured for several orders of the model's channels
and hidden units, which compute the same function but round differently. Standard library only.
"""

import argparse
import array
import json
import math
import operator
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "scripts" / "train_demo")]
import chat  # noqa: E402
import make_quantize_mixes as llama_cpp  # noqa: E402

BINARY = os.environ.get("INFER_BINARY", SOURCE / "build" / "infer")
TYPES = ["Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q5_1", "Q5_0",
         "Q4_1", "Q4_0", "IQ4_XS", "IQ4_NL"]
CONTEXT = 256


def infer(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def text(seed, n_documents):
    source = random.Random(seed)
    return "\n\n".join(chat.text(chat.document(source)) for _ in range(n_documents))


# Reordered models

def tensors(path):
    """{name: (shape, offset in the file)} of an F32 model."""
    found = json.loads(infer("inspect", path, "--tensors", "--json"))["tensors"]
    assert all(tensor["type"] == "F32" for tensor in found)
    return {tensor["name"]: (tensor["shape"], tensor["file_offset"]) for tensor in found}


def write_reordered(source, target, seed):
    """The same function, with the channels and the hidden units of each layer reordered."""
    data, listed, chance = bytearray(source.read_bytes()), tensors(source), random.Random(seed)
    width = listed["token_embd.weight"][0][-1]
    channels = chance.sample(range(width), width)
    hidden = {}
    for name, (shape, offset) in listed.items():
        layer, role = (name.split(".")[1:3] + [""])[:2] if name.startswith("blk.") else (None, name.split(".")[0])
        if layer not in hidden and "ffn_" in role and len(shape) == 2:
            n = listed[f"blk.{layer}.ffn_up.weight"][0][0]
            hidden[layer] = chance.sample(range(n), n)
        by_row = {"attn_output": channels, "ffn_down": channels, "ffn_gate": hidden.get(layer),
                  "ffn_up": hidden.get(layer)}.get(role)
        by_column = hidden[layer] if role == "ffn_down" else None if role in ("attn_output", "attn_q_norm",
                                                                               "attn_k_norm") else channels
        n = shape[-1]
        floats = array.array("f", data[offset:offset + 4 * math.prod(shape)])
        rows = [floats[i:i + n] for i in range(0, len(floats), n)]
        if by_row:
            rows = operator.itemgetter(*by_row)(rows)
        if by_column:
            pick = operator.itemgetter(*by_column)
            rows = [array.array("f", pick(row)) for row in rows]
        data[offset:offset + 4 * len(floats)] = b"".join(map(bytes, rows))
    target.write_bytes(data)


def importance(path):
    """{tensor: mean squares} of an importance matrix, as llama.cpp takes them."""
    data, listed = path.read_bytes(), tensors(path)
    floats = {name: struct.unpack_from(f"<{math.prod(shape)}f", data, offset)
              for name, (shape, offset) in listed.items()}
    return {name.removesuffix(".in_sum2"): [x / floats[name.replace(".in_sum2", ".counts")][0] for x in sums]
            for name, sums in floats.items() if name.endswith(".in_sum2")}


# Measuring

class Measurement:
    def __init__(self, library, folder, model):
        self.library, self.folder, self.model = library, folder, model
        self.base, self.matrix, self.out = (folder / name for name in ("base", "matrix", "out"))
        flags = ("-m", model, "-c", CONTEXT)
        infer("perplexity", *flags, "-f", folder / "text", "--save-logits", self.base)
        infer("imatrix", *flags, "-f", folder / "calibration", "-o", self.matrix)

    def divergence(self, type_name, ours, with_importance):
        if ours:
            infer("quantize", self.model, self.out, type_name, *(("--imatrix", self.matrix) if with_importance else ()))
        else:
            self.library.quantize(self.model, self.out, llama_cpp.FILE_TYPES[type_name],
                                  importance(self.matrix) if with_importance else None)
        return json.loads(infer("perplexity", "-m", self.out, "--kl-divergence", self.base, "--json"))["kl_divergence"]


def ratio(ours, theirs):
    """Geometric mean of the ratios in percent, and its standard error."""
    logs = [math.log(a["mean"] / b["mean"]) for a, b in zip(ours, theirs)]
    mean = sum(logs) / len(logs)
    error = math.sqrt(sum((x - mean)**2 for x in logs) / max(1, len(logs) - 1) / len(logs))
    return f"{100 * (math.exp(mean) - 1):+.0f} ± {100 * error:.0f} %"


def row(type_name, measurements, with_importance):
    ours, theirs = ([m.divergence(type_name, which, with_importance) for m in measurements] for which in (True, False))
    cells = [type_name, *(f"{d[0]['mean']:.5f}" for d in (ours, theirs)),
             *(f"{d[0]['median']:.6f}" for d in (ours, theirs)), f"{100 * ours[0]['same_top_token']:.2f} %"]
    if len(measurements) > 1:
        cells.append(ratio(ours[1:], theirs[1:]))
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("library", help="folder of llama.cpp's shared objects")
    parser.add_argument("--model", type=pathlib.Path, default=SOURCE / "models" / "infer-demo-5m-q8_0.gguf")
    parser.add_argument("--orders", type=int, default=8)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--types", nargs="+", default=TYPES)
    options = parser.parse_args()
    library = llama_cpp.Library(options.library)
    with tempfile.TemporaryDirectory() as name:
        measurements = []
        for order in range(options.orders + 1):
            folder = pathlib.Path(name, str(order))
            folder.mkdir()
            (folder / "text").write_text(text(1001, options.documents))
            (folder / "calibration").write_text(text(2002, options.documents))
            model = folder / "model"
            if order == 0:
                infer("quantize", options.model, model, "F32", "--allow-requantize")
            else:
                write_reordered(measurements[0].model, model, order)
            measurements.append(Measurement(library, folder, model))
        titles = ["Type", "mean", "llama.cpp's", "median", "llama.cpp's", "same top token"]
        if options.orders:
            titles.append(f"mean over {options.orders} orders against llama.cpp's")
        for with_importance in (False, True):
            print(f"\n{'With' if with_importance else 'Without'} an importance matrix:\n")
            print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles))
            for type_name in options.types:
                print(row(type_name, measurements, with_importance), flush=True)


if __name__ == "__main__":
    main()
