# SPDX-License-Identifier: Apache-2.0
"""Writes small GGUF files for tests, apart from the reader they test."""

import struct

import numpy as np

KINDS = {"F32": 0, "F16": 1, "Q4_1": 3, "Q8_0": 8, "BF16": 30}


def text(value):
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def scalar(value):
    """Type and bytes of one value."""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return (5, struct.pack("<i", value)) if value < 0 else (4, struct.pack("<I", value))
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return 8, text(value)


def pair(key, value):
    if not isinstance(value, list):
        kind, raw = scalar(value)
        return text(key) + struct.pack("<I", kind) + raw
    kinds, raws = zip(*map(scalar, value), strict=True)
    return text(key) + struct.pack("<IIQ", 9, kinds[0], len(value)) + b"".join(raws)


def encode(kind, rng, shape):
    """Random bytes of a tensor, and the numbers they stand for, in float64."""
    blocks = int(np.prod(shape)) // 32
    if kind == "F32":
        numbers = rng.standard_normal(shape).astype(np.float32)
        return numbers.tobytes(), numbers.astype(np.float64)
    if kind == "F16":
        numbers = rng.standard_normal(shape).astype(np.float16)
        return numbers.tobytes(), numbers.astype(np.float64)
    if kind == "BF16":
        upper = (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return upper.tobytes(), (upper.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    scale, shift = rng.standard_normal((2, blocks, 1)).astype(np.float16)
    if kind == "Q8_0":
        codes = rng.integers(-128, 128, (blocks, 32)).astype(np.int8)
        raw = np.concatenate([scale.view(np.uint8), codes.view(np.uint8)], axis=1)
        return raw.tobytes(), (scale.astype(np.float64) * codes).reshape(shape)
    codes = rng.integers(0, 16, (blocks, 32)).astype(np.uint8)
    nibbles = codes[:, :16] | codes[:, 16:] << 4
    raw = np.concatenate([scale.view(np.uint8), shift.view(np.uint8), nibbles], axis=1)
    return raw.tobytes(), (scale.astype(np.float64) * codes + shift.astype(np.float64)).reshape(shape)


def write(path, metadata, tensors, version=3, magic=b"GGUF", alignment=32):
    """tensors: name to (kind's name or number, shape, bytes)."""
    header = magic + struct.pack("<IQQ", version, len(tensors), len(metadata))
    header += b"".join(pair(key, value) for key, value in metadata.items())
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        data += bytes(-len(data) % alignment)
        header += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        header += struct.pack("<IQ", KINDS.get(kind, kind), len(data))
        data += raw
    path.write_bytes(header + bytes(-len(header) % alignment) + data)
    return path
