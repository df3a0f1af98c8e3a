"""Reads small GGUF files whole, and writes GGUF files, for scripts and tests. Standard library only.

Metadata is {key: [type, value]}, an array's value (element type, list); strings are read as bytes. Shapes have the fastest
dimension first, as in the file.
"""

import struct

FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
F32, F16, I32 = 0, 1, 26
VALUES = {F32: "f", F16: "e", I32: "i"}  # formats of a tensor's values
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        found = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return found

    def string(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n:self.at]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, n = self.take("<I"), self.take("<Q")
            return element, [self.value(element) for _ in range(n)]
        return self.take(FORMATS[kind])


def read_head(data):
    """(metadata, [(name, shape, type, offset of the data)])."""
    r = Reader(data)
    r.at = 8
    n_tensors, n_keys = r.take("<Q"), r.take("<Q")
    metadata = {}
    for _ in range(n_keys):
        key, kind = r.string().decode(), r.take("<I")
        metadata[key] = [kind, r.value(kind)]
    infos = []
    for _ in range(n_tensors):
        name = r.string().decode()
        shape = [r.take("<Q") for _ in range(r.take("<I"))]
        infos.append((name, shape, r.take("<I"), r.take("<Q")))
    alignment = metadata.get("general.alignment", [UINT32, ALIGNMENT])[1]
    start = -(-r.at // alignment) * alignment
    return metadata, [(name, shape, kind, start + offset) for name, shape, kind, offset in infos]


def read(path):
    """(metadata, {name: [type, shape, values]}), or None if a tensor is neither F32 nor I32."""
    data = path.read_bytes()
    metadata, infos = read_head(data)
    tensors = {}
    for name, shape, kind, offset in infos:
        if kind not in (F32, I32):
            return None
        values = struct.unpack_from(f"<{elements(shape)}{VALUES[kind]}", data, offset)
        tensors[name] = [kind, shape, list(values)]
    return metadata, tensors


def elements(shape):
    n = 1
    for size in shape:
        n *= size
    return n


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def packed(kind, content):
    if kind == STRING:
        return string(content)
    if kind == ARRAY:
        element, values = content
        return struct.pack("<IQ", element, len(values)) + b"".join(packed(element, v) for v in values)
    return struct.pack(FORMATS[kind], content)


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def header(metadata, shapes):
    """(what precedes the tensors' data, the size of that data). shapes: {name: (type, shape)}; the data of each tensor
    is padded to ALIGNMENT."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(shapes), len(metadata))]
    for key, (kind, content) in metadata.items():
        parts += [string(key.encode()), struct.pack("<I", kind), packed(kind, content)]
    offset = 0
    for name, (kind, shape) in shapes.items():
        parts += [string(name.encode()), struct.pack("<I", len(shape)), *(struct.pack("<Q", n) for n in shape)]
        parts.append(struct.pack("<IQ", kind, offset))
        offset += padded(elements(shape) * struct.calcsize(VALUES[kind]))
    head = b"".join(parts)
    return head + bytes(padded(len(head)) - len(head)), offset


def write(path, metadata, tensors):
    """tensors: {name: [type, shape, values]}."""
    head, _ = header(metadata, {name: (kind, shape) for name, (kind, shape, _) in tensors.items()})
    with open(path, "wb") as file:
        file.write(head)
        for kind, _, values in tensors.values():
            data = struct.pack(f"<{len(values)}{VALUES[kind]}", *values)
            file.write(data + bytes(padded(len(data)) - len(data)))
