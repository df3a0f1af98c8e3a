#!/usr/bin/env python3
"""Writes tests/data/quantize_mixes.json: which type llama.cpp gives to each tensor of some models, for every file type.

    npm install --ignore-scripts node-llama-cpp
    make_quantize_mixes.py node_modules/@node-llama-cpp/linux-x64/bins/linux-x64 tests/data/quantize_mixes.json

The models have layers, heads, experts and names like real ones but no data (sparse files). llama_model_quantize() of the
given libraries prints in a dry run what it would do; this script reads its messages. Standard library only.

    {"models": [{"name", "architecture", "n_layer", "n_head", "n_kv_head", "n_expert",
                 "tensors": [[name, [slowest, ..., row]], ...],
                 "types": {"Q4_K_M": "aab...", "Q4_0 imatrix": ...}}],      one letter per tensor
     "letters": {"a": "Q4_K", ...}}
"""

import ctypes
import json
import os
import pathlib
import re
import struct
import sys
import tempfile

FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10,
              "Q2_K_S": 21, "Q3_K_S": 11, "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16,
              "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "MXFP4": 38,
              "IQ1_S": 24, "IQ1_M": 31, "IQ2_XXS": 19, "IQ2_XS": 20, "IQ2_S": 28, "IQ2_M": 29, "IQ3_XXS": 23,
              "IQ3_XS": 22, "IQ3_S": 26, "IQ3_M": 27, "TQ1_0": 36, "TQ2_0": 37, "Q1_0": 40, "Q2_0": 41}


class Params(ctypes.Structure):
    """llama_model_quantize_params."""
    _fields_ = [("nthread", ctypes.c_int32), ("ftype", ctypes.c_int32), ("output_type", ctypes.c_int32),
                ("token_type", ctypes.c_int32), ("allow_requantize", ctypes.c_bool),
                ("quantize_output_tensor", ctypes.c_bool), ("only_copy", ctypes.c_bool), ("pure", ctypes.c_bool),
                ("keep_split", ctypes.c_bool), ("dry_run", ctypes.c_bool), ("imatrix", ctypes.c_void_p),
                ("kv_overrides", ctypes.c_void_p), ("tensor_types", ctypes.c_void_p), ("prune", ctypes.c_void_p)]


class Importance(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.POINTER(ctypes.c_float)), ("size", ctypes.c_size_t)]


# Models

def dense(n_layer, n_embd=512, n_ff=1024, n_kv=512, tied=False, norms=True):
    tensors = [("token_embd.weight", [1024, n_embd]), ("output_norm.weight", [n_embd])]
    if not tied:
        tensors.append(("output.weight", [1024, n_embd]))
    for i in range(n_layer):
        for name, shape in (("attn_q", [n_embd, n_embd]), ("attn_k", [n_kv, n_embd]), ("attn_v", [n_kv, n_embd]),
                            ("attn_output", [n_embd, n_embd]), ("ffn_gate", [n_ff, n_embd]),
                            ("ffn_up", [n_ff, n_embd]), ("ffn_down", [n_embd, n_ff])):
            tensors.append((f"blk.{i}.{name}.weight", shape))
        if norms and i == 0:
            tensors.append((f"blk.{i}.attn_norm.weight", [n_embd]))
    return tensors


def experts(n_layer, n_expert, first_dense=0, shared=False, latent=False):
    tensors = [("token_embd.weight", [1024, 512]), ("output.weight", [1024, 512])]
    for i in range(n_layer):
        names = [("attn_q", [512, 512]), ("attn_output", [512, 512])]
        names += ([("attn_kv_a_mqa", [320, 512]), ("attn_kv_b", [1024, 256])] if latent
                  else [("attn_k", [256, 512]), ("attn_v", [256, 512])])
        if i < first_dense:
            names += [("ffn_gate", [1024, 512]), ("ffn_up", [1024, 512]), ("ffn_down", [512, 1024])]
        else:
            names += [("ffn_gate_inp", [n_expert, 512]), ("ffn_gate_exps", [n_expert, 256, 512]),
                      ("ffn_up_exps", [n_expert, 256, 512]), ("ffn_down_exps", [n_expert, 512, 256])]
            if shared:
                names += [("ffn_gate_shexp", [256, 512]), ("ffn_up_shexp", [256, 512]), ("ffn_down_shexp", [512, 256])]
        tensors += [(f"blk.{i}.{name}.weight", shape) for name, shape in names]
    return tensors


def fused(n_layer, position=False):
    tensors = [("token_embd.weight", [1024, 512]), ("output.weight", [1024, 512])]
    if position:
        tensors.append(("position_embd.weight", [512, 512]))
    for i in range(n_layer):
        tensors += [(f"blk.{i}.{name}.weight", shape) for name, shape in
                    (("attn_qkv", [1536, 512]), ("attn_output", [512, 512]), ("ffn_up", [2048, 512]),
                     ("ffn_down", [512, 2048]))]
        tensors.append((f"blk.{i}.attn_qkv.bias", [1536]))
    return tensors


#          name, architecture, layers, heads, KV heads, experts, tensors, further keys
MODELS = [
    ("llama", "llama", 32, 8, 8, 0, dense(32), {}),
    ("llama, shared heads, tied", "llama", 16, 8, 2, 0, dense(16, n_kv=128, tied=True), {}),
    ("llama of 80 layers", "llama", 80, 8, 1, 0, dense(80, n_kv=64), {}),
    ("qwen2 of 80 layers", "qwen2", 80, 8, 2, 0, dense(80, n_kv=128), {}),
    ("mixtral", "llama", 32, 8, 2, 8, experts(32, 8), {"expert_used_count": 2}),
    ("many experts", "qwen3moe", 24, 8, 1, 16, experts(24, 16), {"expert_used_count": 4,
                                                                "expert_feed_forward_length": 256}),
    ("latent attention", "deepseek2", 27, 8, 8, 16, experts(27, 16, first_dense=1, shared=True, latent=True),
     {"expert_used_count": 4, "expert_feed_forward_length": 256, "leading_dense_block_count": 1,
      "expert_shared_count": 1, "expert_weights_scale": 1.0, "attention.kv_lora_rank": 256, "attention.q_lora_rank": 0,
      "rope.scaling.yarn_log_multiplier": 0.1, "expert_gating_func": 1, "expert_weights_norm": False}),
    ("falcon", "falcon", 32, 8, 1, 0, fused(32), {}),
    ("gpt2", "gpt2", 12, 8, 8, 0, fused(12, position=True), {}),
    ("gemma", "gemma", 18, 8, 1, 0, dense(18, n_kv=64, tied=True), {}),
    ("narrow", "llama", 5, 8, 4, 0, dense(5, n_embd=288, n_ff=768, n_kv=144), {}),
    ("odd", "llama", 3, 8, 4, 0, dense(3, n_embd=64, n_ff=172, n_kv=32, tied=True), {}),
]


def gguf_string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_string(value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(gguf_string, value))


def write_model(path, architecture, n_layer, n_head, n_kv_head, n_expert, tensors, more):
    n_embd = next(shape[-1] for name, shape in tensors if name == "token_embd.weight")
    keys = {"general.architecture": architecture, "tokenizer.ggml.model": "none"}
    numbers = {"block_count": n_layer, "context_length": 512, "embedding_length": n_embd, "feed_forward_length": 1024,
               "attention.head_count": n_head, "attention.head_count_kv": n_kv_head, "vocab_size": 1024,
               "attention.layer_norm_rms_epsilon": 1e-5, "attention.layer_norm_epsilon": 1e-5,
               "expert_count": n_expert, **more}
    keys.update({f"{architecture}.{name}": value for name, value in numbers.items()})
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(gguf_string(key) + gguf_value(value) for key, value in keys.items())
    offset = 0
    for name, shape in tensors:
        header += gguf_string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape[::-1])
        header += struct.pack("<IQ", 0, offset)
        n = 4
        for size in shape:
            n *= size
        offset += -(-n // 32) * 32
    header += b"\0" * (-len(header) % 32)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + offset)


# llama.cpp

class Library:
    def __init__(self, folder):
        os.environ.setdefault("GGML_BACKEND_PATH", "")
        for name in ("libggml-base.so", "libggml*.so", "libllama.*.so"):
            for path in sorted(pathlib.Path(folder).glob(name)):
                if "cpu" not in path.name:
                    self.llama = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self.log = ""
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(self.on_log)
        self.llama.llama_log_set(self.callback, None)
        self.llama.llama_model_quantize_default_params.restype = Params
        self.llama.llama_model_quantize.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Params)]
        params = self.llama.llama_model_quantize_default_params()
        if not (params.ftype == 7 and params.quantize_output_tensor and params.output_type == params.token_type):
            sys.exit("llama_model_quantize_params differs in this version; use the one that tests/peer/package.json names")

    def on_log(self, _level, text, _data):
        self.log += text.decode("utf-8", "replace")

    def quantize(self, source, target, number, importance=None):
        """Writes the model as this file type. importance: {tensor: floats, a mean square per column}."""
        params = self.llama.llama_model_quantize_default_params()
        params.ftype, params.nthread, params.allow_requantize = number, 1, True
        if importance:
            entries = (Importance * (len(importance) + 1))()
            for i, (name, floats) in enumerate(importance.items()):
                entries[i] = Importance(name.encode(), (ctypes.c_float * len(floats))(*floats), len(floats))
            params.imatrix = ctypes.cast(entries, ctypes.c_void_p)
        self.log = ""
        if self.llama.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)):
            sys.exit(self.log.strip().splitlines()[-1])

    def types(self, model, number, with_importance):
        """{tensor: type} of a dry run."""
        params = self.llama.llama_model_quantize_default_params()
        params.ftype, params.dry_run, params.nthread = number, True, 1
        one = (ctypes.c_float * 1)(1.0)
        entries = (Importance * 2)(Importance(b"none", one, 1), Importance(None, None, 0))
        if with_importance:
            params.imatrix = ctypes.cast(entries, ctypes.c_void_p)
        self.log = ""
        failed = self.llama.llama_model_quantize(str(model).encode(), b"/dev/null", ctypes.byref(params))
        found = {}
        for name, old, new in re.findall(r"\[ *\d+/ *\d+\] +(\S+) +- \[[^\]]*\], type = +(\S+), "
                                         r"size = +[\d.]+ MiB(?: -> +[\d.]+ MiB \((\S+)\))?", self.log):
            found[name] = (new or old).upper()
        return None if failed else found


def main():
    library, models, letters = Library(sys.argv[1]), [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.gguf")
        for name, architecture, n_layer, n_head, n_kv_head, n_expert, tensors, more in MODELS:
            write_model(path, architecture, n_layer, n_head, n_kv_head, n_expert, tensors, more)
            types = {}
            for file_type, number in FILE_TYPES.items():
                for suffix, with_importance in (("", False), (" imatrix", True)):
                    if suffix and file_type not in ("Q4_0", "Q5_0", "Q2_K_S") and not file_type.startswith("IQ"):
                        continue
                    found = library.types(path, number, with_importance)
                    if found is None:  # it refuses some widths, and some types without an importance matrix
                        print(f"{name} {file_type}{suffix}: {library.log.strip().splitlines()[-1]}", file=sys.stderr)
                        continue
                    types[file_type + suffix] = "".join(
                        letters.setdefault(found[tensor], chr(ord("a") + len(letters))) for tensor, _ in tensors)
            models.append({"name": name, "architecture": architecture, "n_layer": n_layer, "n_head": n_head,
                           "n_kv_head": n_kv_head, "n_expert": n_expert, "tensors": tensors, "types": types})
    document = {"letters": {letter: name for name, letter in letters.items()}, "models": models}
    text = json.dumps(document, separators=(",", ":"))
    text = text.replace('{"name"', '\n{"name"').replace('"types"', '\n"types"')
    pathlib.Path(sys.argv[2]).write_text(text + "\n")


if __name__ == "__main__":
    main()
