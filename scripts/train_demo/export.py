"""Writes a trained model as GGUF.

    export.py MODEL.pt VOCABULARY.json OUT.gguf (f32|f16|q8_0) --name NAME --description TEXT
"""

import argparse
import pathlib

import torch

import gguf
from gguf import ARRAY, BOOL, FLOAT32, INT32, STRING, UINT32
from model import EPSILON, ROPE_BASE
from vocabulary import CONTROL, Vocabulary

TYPES = {"f32": (gguf.F32, 0), "f16": (gguf.F16, 1), "q8_0": (gguf.Q8_0, 7)}  # (of tensors, of the file)
CONTEXT = 1024
NORMAL_TOKEN, CONTROL_TOKEN, USER_TOKEN = 1, 3, 4
LICENSE = "mit"


def printable_bytes():
    """The character that stands for each byte in the tokens of GGUF's byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def vocabulary_metadata(vocabulary):
    letters = printable_bytes()
    special = set(vocabulary.special.values())
    texts = [token.decode() if i in special else "".join(letters[byte] for byte in token)
             for i, token in enumerate(vocabulary.tokens)]
    types = [NORMAL_TOKEN if i not in special else CONTROL_TOKEN if text in CONTROL else USER_TOKEN
             for i, text in enumerate(texts)]
    merges = [f"{texts[left]} {texts[right]}" for left, right in vocabulary.merges]
    template = pathlib.Path(__file__).with_name("chat_template.jinja").read_text(encoding="utf-8")
    return {
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "qwen2"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, texts)),
        "tokenizer.ggml.token_type": (ARRAY, (INT32, types)),
        "tokenizer.ggml.merges": (ARRAY, (STRING, merges)),
        "tokenizer.ggml.bos_token_id": (UINT32, vocabulary.special["<|endoftext|>"]),
        "tokenizer.ggml.eos_token_id": (UINT32, vocabulary.special["<|endoftext|>"]),
        "tokenizer.ggml.eot_token_id": (UINT32, vocabulary.special["<|im_end|>"]),
        "tokenizer.ggml.padding_token_id": (UINT32, vocabulary.special["<|pad|>"]),
        "tokenizer.ggml.add_bos_token": (BOOL, False),
        "tokenizer.chat_template": (STRING, template),
    }


def metadata(config, name, description, file_type):
    values = {
        "context_length": CONTEXT, "embedding_length": config["width"], "block_count": config["n_layer"],
        "feed_forward_length": config["n_ff"], "attention.head_count": config["n_head"],
        "attention.head_count_kv": config["n_kv_head"], "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"], "vocab_size": config["n_vocab"],
    }
    return {
        "general.architecture": (STRING, "qwen3"),
        "general.type": (STRING, "model"),
        "general.name": (STRING, name),
        "general.description": (STRING, description),
        "general.license": (STRING, LICENSE),
        "general.file_type": (UINT32, file_type),
        "general.quantization_version": (UINT32, 2),
        **{f"qwen3.{key}": (UINT32, value) for key, value in values.items()},
        "qwen3.rope.freq_base": (FLOAT32, ROPE_BASE),
        "qwen3.attention.layer_norm_rms_epsilon": (FLOAT32, EPSILON),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("model")
    parser.add_argument("vocabulary")
    parser.add_argument("out")
    parser.add_argument("type", choices=TYPES)
    parser.add_argument("--name", required=True)
    parser.add_argument("--description", required=True)
    options = parser.parse_args()
    content = torch.load(options.model, map_location="cpu")
    kind, file_type = TYPES[options.type]
    weights = {name: weight.float().numpy() for name, weight in content["weights"].items()}
    # Norms are small and multiply everything: always F32.
    tensors = {name: (kind if weight.ndim == 2 else gguf.F32, weight) for name, weight in weights.items()}
    head = metadata(content["config"], options.name, options.description, file_type)
    gguf.write(options.out, {**head, **vocabulary_metadata(Vocabulary.load(options.vocabulary))}, tensors)
    n_bytes, n_weights = pathlib.Path(options.out).stat().st_size, sum(w.size for w in weights.values())
    print(f"{options.out}: {n_bytes} bytes, {n_weights} weights")


if __name__ == "__main__":
    main()
