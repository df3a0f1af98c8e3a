"""Writes GGUF files, version 3: F32, F16 and Q8_0 tensors. numpy only."""

import os
import struct

import numpy

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # types of values
F32, F16, Q8_0 = 0, 1, 8  # types of tensors
_PACKED = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}
_BLOCK = 32  # weights per Q8_0 scale


def _string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind, content):
    """A list is (type of its elements, list)."""
    if kind == STRING:
        return _string(content)
    if kind == ARRAY:
        element, values = content
        return struct.pack("<IQ", element, len(values)) + b"".join(_value(element, v) for v in values)
    return struct.pack(_PACKED[kind], content)


def q8_0(weights):
    """Blocks of an F16 scale and 32 signed bytes: w = scale * byte. The last dimension is a multiple of 32."""
    x = weights.astype(numpy.float32).reshape(-1, _BLOCK)
    scale = (numpy.abs(x).max(axis=1, keepdims=True) / 127).astype(numpy.float16)
    divisor = scale.astype(numpy.float64)
    codes = numpy.divide(x, divisor, out=numpy.zeros(x.shape), where=divisor != 0)
    codes = numpy.rint(codes.clip(-127, 127)).astype(numpy.int8)
    return numpy.concatenate([scale.view(numpy.uint8), codes.view(numpy.uint8)], axis=1).tobytes()


def tensor_bytes(kind, weights):
    if kind == Q8_0:
        return q8_0(weights)
    return weights.astype("<f4" if kind == F32 else "<f2").tobytes()


def write(path, metadata, tensors):
    """metadata: {key: (type, content)}; tensors: {name: (type, array)}, the slowest dimension first."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, (kind, content) in metadata.items():
        head += [_string(key), struct.pack("<I", kind), _value(kind, content)]
    data, offset = [], 0
    for name, (kind, weights) in tensors.items():
        head += [_string(name), struct.pack("<I", weights.ndim)]
        head += [struct.pack("<Q", n) for n in reversed(weights.shape)]  # GGUF stores the fastest dimension first
        head.append(struct.pack("<IQ", kind, offset))
        content = tensor_bytes(kind, weights)
        content += bytes(-len(content) % ALIGNMENT)
        data.append(content)
        offset += len(content)
    head = b"".join(head)
    with open(f"{path}.tmp", "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        file.writelines(data)
    os.replace(f"{path}.tmp", path)
