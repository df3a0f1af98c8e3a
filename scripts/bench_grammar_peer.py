#!/usr/bin/env python3
"""What a grammar costs per token here and in llama.cpp (scripts/install_peer.sh): the same model, grammar and prompt,
one thread each, with and without the grammar. The model has a real vocabulary and one small layer with random weights,
so nearly all that is left is sampling.

    bench_grammar_peer.py [--vocabulary llama-3.2] [--tokens 200]
"""

import argparse
import json
import os
import pathlib
import random
import re
import subprocess

import gguf_io

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER = ROOT / "build" / "peer"
GOLDENS = pathlib.Path(os.environ.get("INFER_SHARED", ROOT.parent / "shared")) / "goldens"
# A list of records, which does not end by itself.
GRAMMAR = r"""root ::= "[" record (", " record){1000} "]"
record ::= "{\"name\": " string ", \"year\": " number ", \"tags\": [" (string (", " string){0,3})? "]}"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\nrt]){0,40} "\""
number ::= "-"? [1-9] [0-9]{0,5}
"""


def write_model(path, vocabulary):
    metadata, _ = gguf_io.read_head(vocabulary.read_bytes())
    n = {key: metadata[f"llama.{key}"][1] for key in ("embedding_length", "feed_forward_length", "attention.head_count",
                                                       "attention.head_count_kv", "vocab_size")}
    width, inner = n["embedding_length"], n["feed_forward_length"]
    keys = width // n["attention.head_count"] * n["attention.head_count_kv"]
    source = random.Random(1)
    tensors = {}

    def add(name, *shape):
        count = gguf_io.elements(shape)
        row = [source.gauss(0, 0.3) if len(shape) > 1 else 1.0 for _ in range(min(count, 100_003))]
        tensors[name] = [gguf_io.F32, list(shape), (row * (count // len(row) + 1))[:count]]

    add("token_embd.weight", width, n["vocab_size"])
    add("output_norm.weight", width)
    add("output.weight", width, n["vocab_size"])
    for name in ("attn_norm", "ffn_norm"):
        add(f"blk.0.{name}.weight", width)
    for name, rows in (("attn_q", width), ("attn_k", keys), ("attn_v", keys), ("attn_output", width),
                       ("ffn_gate", inner), ("ffn_up", inner)):
        add(f"blk.0.{name}.weight", width, rows)
    add("blk.0.ffn_down.weight", inner, width)
    metadata["general.file_type"] = [gguf_io.UINT32, 0]
    gguf_io.write(path, metadata, tensors)


def ours(model, tokens, temperature, *flags):
    """Milliseconds per token."""
    done = subprocess.run([ROOT / "build" / "infer", "run", "-m", model, "-p", "An example of the data: ", "--raw", "-n",
                           str(tokens), "-t", "1", "--temp", str(temperature), "--seed", "5", "-c", "2048", "--stats",
                           "--top-k", "40", "--ignore-eos" if not flags else "--no-jump-forward", *flags],
                          capture_output=True, text=True, check=True, env={**os.environ, "INFER_DEVICE": "cpu"})
    return 1000 / float(re.search(r"generated [\d,]+ tokens, ([\d.]+) tokens/s", done.stderr)[1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocabulary", default="llama-3.2")
    parser.add_argument("--tokens", type=int, default=200)
    options = parser.parse_args()
    model, grammar = PEER / f"vocabulary-{options.vocabulary}.gguf", PEER / "records.gbnf"
    grammar.write_text(GRAMMAR)
    if not model.exists():
        write_model(model, GOLDENS / "tokenizer" / "vocab" / f"{options.vocabulary}.gguf")
    peer = subprocess.run([PEER / "node", PEER / "grammar_bench.mjs", model, grammar, str(options.tokens)],
                          capture_output=True, text=True, check=True)
    for line in peer.stdout.splitlines():
        theirs = json.loads(line)
        temperature = theirs["temperature"]
        free, held = (ours(model, options.tokens, temperature, *flags) for flags in ((), ("--grammar-file", grammar)))
        print(f"temperature {temperature}: milliseconds per token, free and with the grammar: "
              f"infer {free:.2f} and {held:.2f}, llama.cpp {theirs['free']['median']:.2f} and "
              f"{theirs['constrained']['median']:.2f} (at most {theirs['constrained']['most']:.1f})", flush=True)


if __name__ == "__main__":
    main()
