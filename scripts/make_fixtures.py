#!/usr/bin/env python3
"""Writes the small models of tests/data, with random weights and invented vocabularies.

    make_fixtures.py [FOLDER]      writes them to FOLDER (default tests/data)
    make_fixtures.py --check       exit code 1 if tests/data differs

spm.gguf         llama, 2 layers of width 64, grouped heads, SentencePiece vocabulary with bytes, BOS added
bpe.gguf         qwen2, 1 layer of width 32, biases, tied output, byte-level BPE vocabulary, no BOS
vocab_only.gguf  the keys and the vocabulary of spm.gguf, without tensors

The output is identical on every machine: weights are uniform numbers from Python's generator, whose sequence is fixed.
"""

import math
import pathlib
import random
import struct
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data"
ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types of GGUF
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # token types of GGUF
WORDS = ["the", "and", "was", "once", "upon", "time", "there", "little", "girl", "named", "dog", "big", "day", "play"]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, content):
    """A value of GGUF's metadata without its type; a list is (element type, values)."""
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        element, values = content
        return struct.pack("<IQ", element, len(values)) + b"".join(value(element, v) for v in values)
    return struct.pack({UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}[kind], content)


def gguf(metadata, tensors):
    """A GGUF file of version 3. metadata: {key: (type, content)}; tensors: {name: (shape, floats)}, slowest first."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, (kind, content) in metadata.items():
        parts += [string(key), struct.pack("<I", kind), value(kind, content)]
    offset, data = 0, []
    for name, (shape, floats) in tensors.items():
        parts += [string(name), struct.pack("<I", len(shape))]
        parts += [struct.pack("<Q", n) for n in reversed(shape)]  # GGUF stores the fastest dimension first
        parts.append(struct.pack("<IQ", 0, offset))  # type 0: F32
        data.append(struct.pack(f"<{len(floats)}f", *floats))
        data.append(bytes(-len(data[-1]) % ALIGNMENT))
        offset += len(data[-2]) + len(data[-1])
    head = b"".join(parts)
    return head + bytes(-len(head) % ALIGNMENT) + b"".join(data)


def prefixes(words, first):
    """Every prefix of every word, longer than the space marker alone, so that pairs can be merged up to it."""
    found = []
    for word in words:
        for length in range(1, len(word) + 1):
            if first + word[:length] not in found:
                found.append(first + word[:length])
    return found


def spm_vocabulary():
    blank = "\u2581"
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    n_special = len(tokens)
    tokens += [(piece, NORMAL) for piece in prefixes(WORDS, blank)]
    tokens += [(character, NORMAL) for character in blank + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,!?'"]
    metadata = {
        "tokenizer.ggml.model": (STRING, "llama"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, [text for text, _ in tokens])),
        "tokenizer.ggml.scores": (ARRAY, (FLOAT32, [0.0] * n_special + [-float(i) for i in
                                                                        range(len(tokens) - n_special)])),
        "tokenizer.ggml.token_type": (ARRAY, (INT32, [kind for _, kind in tokens])),
        "tokenizer.ggml.bos_token_id": (UINT32, 1),
        "tokenizer.ggml.eos_token_id": (UINT32, 2),
        "tokenizer.ggml.unknown_token_id": (UINT32, 0),
    }
    return metadata, len(tokens), n_special


def bpe_vocabulary():
    # Printable bytes stand for themselves, the others for characters from U+0100 on.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(len(others))]
    blank = "\u0120"
    tokens, merges = list(letters), []
    for piece in prefixes(WORDS, blank):
        tokens.append(piece)
        merges.append(f"{piece[:-1]} {piece[-1]}")
    tokens.append("<|endoftext|>")
    metadata = {
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "qwen2"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (INT32, [NORMAL] * (len(tokens) - 1) + [CONTROL])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, merges)),
        "tokenizer.ggml.eos_token_id": (UINT32, len(tokens) - 1),
        "tokenizer.ggml.add_bos_token": (BOOL, False),
    }
    return metadata, len(tokens)


def hyper_parameters(architecture, width, n_layer, n_head, n_kv_head, n_ff, context):
    def key(name):
        return f"{architecture}.{name}"

    return {
        "general.architecture": (STRING, architecture),
        "general.name": (STRING, "random weights"),
        key("context_length"): (UINT32, context),
        key("embedding_length"): (UINT32, width),
        key("block_count"): (UINT32, n_layer),
        key("feed_forward_length"): (UINT32, n_ff),
        key("attention.head_count"): (UINT32, n_head),
        key("attention.head_count_kv"): (UINT32, n_kv_head),
        key("attention.layer_norm_rms_epsilon"): (FLOAT32, 0.01),
    }


def weights(seed, width, n_layer, n_head, n_kv_head, n_ff, biases):
    """The tensors of the layers, and the generator for the rest."""
    source = random.Random(seed)
    kv = width // n_head * n_kv_head

    def uniform(limit, *shape):
        return shape, [(2 * source.random() - 1) * limit for _ in range(math.prod(shape))]

    def matrix(rows, columns):
        return uniform(2 / math.sqrt(columns), rows, columns)

    def norm():
        shape, around_zero = uniform(0.25, width)
        return shape, [1 + x for x in around_zero]

    tensors = {}
    for layer in range(n_layer):
        def name(part):
            return f"blk.{layer}.{part}"

        tensors[name("attn_norm.weight")] = norm()
        for part, rows in (("q", width), ("k", kv), ("v", kv)):
            tensors[name(f"attn_{part}.weight")] = matrix(rows, width)
            if biases:
                tensors[name(f"attn_{part}.bias")] = uniform(0.5, rows)
        tensors[name("attn_output.weight")] = matrix(width, width)
        tensors[name("ffn_norm.weight")] = norm()
        tensors[name("ffn_gate.weight")] = matrix(n_ff, width)
        tensors[name("ffn_up.weight")] = matrix(n_ff, width)
        tensors[name("ffn_down.weight")] = matrix(width, n_ff)
    tensors["output_norm.weight"] = norm()
    return tensors, uniform


def fixtures():
    """{file name: content}"""
    shape = {"width": 64, "n_layer": 2, "n_head": 4, "n_kv_head": 2, "n_ff": 128}
    vocabulary, n_vocab, n_special = spm_vocabulary()
    metadata = {**hyper_parameters("llama", context=512, **shape), **vocabulary}
    tensors, uniform = weights(1, biases=False, **shape)
    tensors["token_embd.weight"] = uniform(1, n_vocab, 64)
    # Special and byte tokens get a logit of zero, far from the best, so that the generated text is printable.
    _, output = uniform(0.4, n_vocab, 64)
    output[:n_special * 64] = [0.0] * (n_special * 64)
    tensors["output.weight"] = ((n_vocab, 64), output)
    files = {"spm.gguf": gguf(metadata, tensors), "vocab_only.gguf": gguf(metadata, {})}

    shape = {"width": 32, "n_layer": 1, "n_head": 2, "n_kv_head": 2, "n_ff": 64}
    vocabulary, n_vocab = bpe_vocabulary()
    tensors, uniform = weights(2, biases=True, **shape)
    tensors["token_embd.weight"] = uniform(0.4, n_vocab, 32)
    files["bpe.gguf"] = gguf({**hyper_parameters("qwen2", context=256, **shape), **vocabulary}, tensors)
    return files


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in fixtures().items():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(content)
        path = pathlib.Path(file.name)
        path.chmod(0o644)
        path.rename(folder / name)
        print(f"{folder / name}: {len(content)} bytes")


def check():
    wrong = [name for name, content in fixtures().items()
             if not (DATA / name).is_file() or (DATA / name).read_bytes() != content]
    for name in wrong:
        print(f"tests/data/{name} is not what scripts/make_fixtures.py writes")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    write(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
