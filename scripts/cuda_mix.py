#!/usr/bin/env python3
"""Counts the machine instructions of compiled CUDA kernels, without a disassembler.

    nvcc -std=c++20 -O3 -arch=sm_90 -I. -cubin -o matmul.cubin backends/cuda/matmul.cu
    scripts/cuda_mix.py matmul.cubin 'product_kernel.*Q4_KELi1E'

For every kernel whose mangled name matches: its size, its loops (from a branch backwards to its target) and the
instructions in them by kind. Instructions of compute capability 7.0 and later have 16 bytes; the kind is in the low 12
bits. The codes below were found by compiling kernels that use them; others are printed as numbers.
"""

import collections
import re
import struct
import sys

# Arithmetic instructions, by their low byte: the upper four bits are the form of the operands.
KINDS = {
    0x02: "MOV", 0x07: "SEL", 0x08: "FSEL", 0x09: "FMNMX", 0x0B: "FSETP", 0x0C: "ISETP", 0x10: "IADD3", 0x11: "LEA",
    0x12: "LOP3", 0x16: "PRMT", 0x17: "IMNMX", 0x19: "SHF", 0x1C: "PLOP3", 0x20: "FMUL", 0x21: "FADD", 0x23: "FFMA",
    0x24: "IMAD", 0x25: "IMAD.WIDE", 0x26: "IDP", 0x27: "IMAD.HI", 0x30: "HADD2", 0x31: "HFMA2", 0x32: "HMUL2",
    0x36: "VIADD", 0x37: "IMMA", 0x3C: "HMMA", 0x3E: "F2FP", 0x45: "I2FP", 0x48: "VIMNMX", 0x87: "USEL",
    0x8C: "UISETP", 0x90: "UIADD3", 0x91: "ULEA", 0x92: "ULOP3", 0x99: "USHF", 0xA4: "UIMAD", 0xA5: "UIMAD.WIDE",
}
# Other instructions, by all twelve bits.
OTHERS = {
    0x304: "F2F", 0x305: "F2I", 0x306: "I2F", 0x308: "MUFU", 0x311: "I2F", 0x388: "STS", 0x389: "SHFL", 0x83B: "LDSM",
    0x918: "NOP", 0x919: "S2R", 0x91A: "DEPBAR", 0x941: "BSYNC", 0x945: "BSSY", 0x947: "BRA", 0x948: "WARPSYNC",
    0x94D: "EXIT", 0x980: "LD", 0x981: "LDG", 0x983: "LDL", 0x984: "LDS", 0x986: "STG", 0x387: "STL", 0x98E: "RED",
    0x9AF: "LDGDEPBAR", 0x9C3: "S2UR", 0xAB9: "ULDC", 0xB1D: "BAR", 0xB82: "LDC", 0xF89: "SHFL", 0xFAE: "LDGSTS",
    0xDAE: "LDGSTS", 0x3AE: "LDGSTS",
}


def sections(data):
    (shoff,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    table = [struct.unpack_from("<IIQQQQ", data, shoff + i * size) for i in range(count)]
    start = table[names][4]
    for name, _, _, _, offset, length in table:
        text = data[start + name:data.index(b"\0", start + name)].decode()
        yield text, data[offset:offset + length]


def kind(code):
    return OTHERS.get(code) or KINDS.get(code & 0xFF) or hex(code)


def target(low, high, at):
    """Where a branch goes, in instructions: a signed number of words after it, in bits 16 to 23 and 34 to 81."""
    upper = (low | high << 64) >> 34 & (1 << 48) - 1
    words = (upper - (1 << 48 if upper >> 47 else 0)) * 256 + (low >> 16 & 255)
    return at + 1 + words // 4


def main():
    data, pattern = open(sys.argv[1], "rb").read(), re.compile(sys.argv[2])
    for name, code in sections(data):
        if not name.startswith(".text.") or not pattern.search(name):
            continue
        instructions = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code), 16)]
        kinds = [kind(low & 0xFFF) for low, _ in instructions]
        print(f"{name[6:]}: {len(kinds)} instructions")
        for i, (low, high) in enumerate(instructions):
            to = target(low, high, i) if kinds[i] == "BRA" else i
            if not 0 <= to < i:
                continue
            mix = collections.Counter(kinds[to:i + 1]).most_common()
            print(f"  loop {to} to {i}, {i + 1 - to}:", ", ".join(f"{k} {n}" for k, n in mix))


if __name__ == "__main__":
    main()
