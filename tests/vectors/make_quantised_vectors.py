#!/usr/bin/env python3
"""Writes quantised/*.bin: blocks of every quantised type, and their values.

Needs numpy and the gguf package. Each file begins with two little-endian 32-bit numbers: n, and
the size of the stored blocks. After them come `x` (n float32), the stored blocks, `y` (n float32),
and `error` (one float32). If the gguf package can quantise to the type, it makes the blocks from x.
`y` are the values of the blocks, and `error` is the root mean square of y - x. For types that the
package cannot write (Q4_K, Q5_K, Q6_K, IQ4_NL), the blocks are random bytes with scales of typical
size, and `error` is 0.
"""
import os
import struct

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import GGML_QUANT_SIZES, dequantize, quantize

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "quantised")
HALVES = {"IQ4_NL": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
N = 1024


def main():
    rng = np.random.default_rng(7)
    os.makedirs(HERE, exist_ok=True)
    for name in ["Q8_0", "Q4_0", "Q5_0", "IQ4_NL", "Q4_K", "Q5_K", "Q6_K", "MXFP4"]:
        x = rng.standard_normal(N).astype(np.float32)
        x[:256] *= np.exp(rng.standard_normal(256)).astype(np.float32)
        x[256:288] = 0
        x[288:320] = np.abs(x[288:320])
        if name in HALVES:
            numbers, size = GGML_QUANT_SIZES[T[name]]
            blocks = rng.integers(0, 256, (N // numbers, size), dtype=np.uint8)
            for at in HALVES[name]:
                d = (rng.standard_normal(len(blocks)) * 0.01).astype(np.float16)
                blocks[:, at : at + 2] = d.view(np.uint8).reshape(-1, 2)
            stored = blocks.reshape(1, -1)
        else:
            stored = quantize(x.reshape(1, -1), T[name])
        y = dequantize(stored, T[name]).astype(np.float32).ravel()
        error = 0.0 if name in HALVES else float(np.sqrt(np.mean((y - x) ** 2)))
        with open(os.path.join(HERE, name + ".bin"), "wb") as out:
            out.write(struct.pack("<II", N, stored.size))
            out.write(x.tobytes() + stored.tobytes() + y.tobytes())
            out.write(struct.pack("<f", error))


main()
