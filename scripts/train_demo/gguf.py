"""Reads and writes GGUF files, version 3: F32, F16 and Q8_0 tensors. numpy only."""

import os
import pathlib
import struct
import sys

import numpy

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import gguf_io
from gguf_io import ALIGNMENT, ARRAY, BOOL, FLOAT32, INT32, STRING, UINT32

F32, F16, Q8_0 = 0, 1, 8  # types of tensors
_BLOCK = 32  # weights per Q8_0 scale


def q8_0(weights):
    """Blocks of an F16 scale and 32 signed bytes: w = scale * byte. The last dimension is a multiple of 32."""
    x = weights.astype(numpy.float32).reshape(-1, _BLOCK)
    scale = (numpy.abs(x).max(axis=1, keepdims=True) / 127).astype(numpy.float16)
    divisor = scale.astype(numpy.float64)
    codes = numpy.divide(x, divisor, out=numpy.zeros(x.shape), where=divisor != 0)
    codes = numpy.rint(codes.clip(-127, 127)).astype(numpy.int8)
    return numpy.concatenate([scale.view(numpy.uint8), codes.view(numpy.uint8)], axis=1).tobytes()


def from_q8_0(data):
    blocks = numpy.frombuffer(data, numpy.uint8).reshape(-1, 2 + _BLOCK)
    return blocks[:, :2].copy().view(numpy.float16).astype(numpy.float32) * blocks[:, 2:].view(numpy.int8)


def read(path):
    """(metadata, tensors) as write() takes them, with strings as bytes; a Q8_0 tensor is (type, array, its bytes in the
    file)."""
    data = pathlib.Path(path).read_bytes()
    metadata, infos = gguf_io.read_head(data)
    tensors = {}
    for name, shape, kind, at in infos:
        n, shape = gguf_io.elements(shape), shape[::-1]
        if kind == Q8_0:
            stored = data[at:at + n // _BLOCK * (2 + _BLOCK)]
            tensors[name] = kind, from_q8_0(stored).reshape(shape), stored
        else:
            values = numpy.frombuffer(data, "<f4" if kind == F32 else "<f2", n, at)
            tensors[name] = kind, values.astype(numpy.float32).reshape(shape)
    return metadata, tensors


def tensor_bytes(kind, weights, stored=None):
    if stored is not None:
        return stored
    if kind == Q8_0:
        return q8_0(weights)
    return weights.astype("<f4" if kind == F32 else "<f2").tobytes()


def write(path, metadata, tensors):
    """metadata: {key: (type, content)}; tensors: {name: (type, array)}, the slowest dimension first; or (type, array,
    the bytes to store)."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, (kind, content) in metadata.items():
        head += [gguf_io.string(key), struct.pack("<I", kind), gguf_io.packed(kind, content)]
    data, offset = [], 0
    for name, (kind, weights, *stored) in tensors.items():
        head += [gguf_io.string(name), struct.pack("<I", weights.ndim)]
        head += [struct.pack("<Q", n) for n in reversed(weights.shape)]  # GGUF stores the fastest dimension first
        head.append(struct.pack("<IQ", kind, offset))
        content = tensor_bytes(kind, weights, *stored)
        content += bytes(-len(content) % ALIGNMENT)
        data.append(content)
        offset += len(content)
    head = b"".join(head)
    with open(f"{path}.tmp", "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        file.writelines(data)
    os.replace(f"{path}.tmp", path)
