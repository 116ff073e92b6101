# SPDX-License-Identifier: Apache-2.0
"""GGUF files in NumPy: metadata, and tensors as float32."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class GgufError(ValueError):
    """A file that is no GGUF file, is cut off, or holds what this reader does not take."""


def float16_column(blocks: Bytes, begin: int) -> Floats:
    column: Floats = blocks[:, begin : begin + 2].copy().view(np.float16).astype(np.float32)
    return column


def from_float32(blocks: Bytes) -> Floats:
    return blocks.view(np.float32)


def from_float16(blocks: Bytes) -> Floats:
    return blocks.view(np.float16).astype(np.float32)


def from_bfloat16(blocks: Bytes) -> Floats:
    return (blocks.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def from_q8_0(blocks: Bytes) -> Floats:
    return float16_column(blocks, 0) * blocks[:, 2:].view(np.int8)


def from_q4_1(blocks: Bytes) -> Floats:
    codes = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    weights: Floats = float16_column(blocks, 0) * codes + float16_column(blocks, 2)
    return weights


class Encoding(NamedTuple):
    """How a tensor is stored: blocks of `weights` numbers in `bytes` bytes."""

    name: str
    weights: int
    bytes: int
    decode: Callable[[Bytes], Floats]


ENCODINGS = {
    0: Encoding("F32", 1, 4, from_float32),
    1: Encoding("F16", 1, 2, from_float16),
    3: Encoding("Q4_1", 32, 20, from_q4_1),
    8: Encoding("Q8_0", 32, 34, from_q8_0),
    30: Encoding("BF16", 1, 2, from_bfloat16),
}
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Entry(NamedTuple):
    """Where a tensor lies in the file."""

    shape: tuple[int, ...]
    encoding: Encoding
    begin: int
    end: int


class Reader:
    """The header of a file, read from its begin on."""

    def __init__(self, path: Path, data: Bytes) -> None:
        self.path, self.data, self.at = path, data, 0

    def fail(self, what: str) -> GgufError:
        return GgufError(f"gguf: {self.path}: {what}")

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > self.data.size:
            raise self.fail(f"the file is cut off: its header needs {end:,} bytes or more, it has {self.data.size:,}")
        taken = self.data[self.at : end].tobytes()
        self.at = end
        return taken

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def text(self) -> str:
        raw = self.take(self.number("Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.fail(f"a text of the header is not UTF-8: {raw[:40]!r}") from None

    def value(self, kind: int, inside_array: bool = False) -> Any:
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == STRING:
            return self.text()
        if kind != ARRAY or inside_array:
            raise self.fail(f"a value of type {kind}{' in an array' if inside_array else ''} is not known")
        kind, count = self.number("I"), self.number("Q")
        if kind in NUMBERS:
            return np.frombuffer(self.take(count * struct.calcsize(NUMBERS[kind])), "<" + NUMBERS[kind]).tolist()
        return [self.value(kind, inside_array=True) for _ in range(count)]

    def entry(self, name: str) -> Entry:
        """The place of a tensor, counted from the begin of the data."""
        shape = tuple(self.number("Q") for _ in range(self.number("I")))[::-1]
        kind, begin = self.number("I"), self.number("Q")
        if kind not in ENCODINGS:
            known = ", ".join(f"{e.name} ({number})" for number, e in ENCODINGS.items())
            raise self.fail(f"tensor {name} is of type {kind}; this reader takes {known}")
        encoding = ENCODINGS[kind]
        if encoding.weights > 1 and (not shape or shape[-1] % encoding.weights):
            raise self.fail(f"tensor {name} of shape {shape} is no whole number of {encoding.name} blocks")
        return Entry(shape, encoding, begin, begin + math.prod(shape) // encoding.weights * encoding.bytes)


class GgufFile:
    """An open file: `metadata` by key, `entries` by a tensor's name; `tensor` reads one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"gguf: there is no file {self.path}")
        if self.path.stat().st_size == 0:
            raise GgufError(f"gguf: {self.path}: the file is empty")
        self.data: Bytes = np.memmap(self.path, np.uint8, "r")
        reader = Reader(self.path, self.data)
        if (magic := reader.take(4)) != b"GGUF":
            raise reader.fail(f"this is no GGUF file: it begins with {magic!r}, not b'GGUF'")
        if (version := reader.number("I")) not in (2, 3):
            raise reader.fail(f"the format's version is {version}; this reader takes 2 and 3")
        tensors, keys = reader.number("Q"), reader.number("Q")
        self.metadata: dict[str, Any] = {reader.text(): reader.value(reader.number("I")) for _ in range(keys)}
        self.entries = {name: reader.entry(name) for name in (reader.text() for _ in range(tensors))}
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment <= 0:
            raise reader.fail(f"general.alignment is {alignment!r}, expected a positive number")
        self.start = -(-reader.at // alignment) * alignment
        for name, entry in self.entries.items():
            if self.start + entry.end > self.data.size:
                raise reader.fail(
                    f"the file is cut off: tensor {name} ends at byte {self.start + entry.end:,} of {self.data.size:,}"
                )

    def tensor(self, name: str) -> Floats:
        """The numbers of a tensor; its last axis is the contiguous one."""
        if name not in self.entries:
            raise GgufError(f"gguf: {self.path}: there is no tensor {name}")
        shape, encoding, begin, end = self.entries[name]
        blocks = np.array(self.data[self.start + begin : self.start + end]).reshape(-1, encoding.bytes)
        return encoding.decode(blocks).reshape(shape)
