# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save() before torch 1.6, in NumPy: a state dict whose tensors are arrays."""

import pickle
import struct
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


@dataclass
class Storage:
    """A run of numbers that tensors are views of; the file has its contents behind the state dict."""

    dtype: type[np.generic]
    count: int
    values: np.ndarray | None = None


@dataclass
class View:
    """A tensor as the file describes it."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self) -> np.ndarray:
        values = self.storage.values
        if values is None:
            raise ValueError("the file ends before the numbers of a tensor")
        reach = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        if 0 not in self.shape and not 0 <= self.offset <= reach < len(values):
            raise ValueError(f"a tensor of shape {self.shape} reaches beyond its {len(values)} numbers")
        strides = [s * values.itemsize for s in self.strides]
        return np.ascontiguousarray(np.lib.stride_tricks.as_strided(values[self.offset :], self.shape, strides))


def rebuild(storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object) -> View:
    return View(storage, offset, shape, strides)


class Unpickler(pickle.Unpickler):
    """Makes nothing but the few things that a state dict is written with."""

    ALLOWED: ClassVar[dict[tuple[str, str], Any]] = {
        ("collections", "OrderedDict"): OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): rebuild,
        ("torch", "FloatStorage"): np.float32,
        ("torch", "LongStorage"): np.int64,
    }

    def __init__(self, file: IO[bytes], storages: dict[str, Storage]) -> None:
        super().__init__(file, encoding="latin1")
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.ALLOWED[module, name]
        except KeyError:
            raise ValueError(f"the file asks for {module}.{name}, which no tensor is made of") from None

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, count, *_ = pid
        if kind != "storage":
            raise ValueError(f"the file refers to a {kind}, expected a storage")
        return self.storages.setdefault(key, Storage(dtype, count))


def read(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file by their names."""
    try:
        with open(path, "rb") as file:
            return read_from(file)
    except (ValueError, EOFError, pickle.UnpicklingError, struct.error) as error:
        raise ValueError(f"{path}: {error}") from error


def read_from(file: IO[bytes]) -> dict[str, np.ndarray]:
    if file.read(2) == b"PK":
        raise ValueError("a zip file, as torch writes since 1.6; expected the format before it")
    file.seek(0)
    storages: dict[str, Storage] = {}

    def next_object() -> Any:
        return Unpickler(file, storages).load()

    if next_object() != MAGIC or next_object() != PROTOCOL:
        raise ValueError("not a file of torch.save()")
    if not next_object().get("little_endian", False):
        raise ValueError("the file has big-endian numbers")
    state = next_object()
    for key in next_object():
        storage = storages[key]
        (count,) = struct.unpack("<q", file.read(8))
        if count != storage.count:
            raise ValueError(f"a storage has {count} numbers, expected {storage.count}")
        data = file.read(count * np.dtype(storage.dtype).itemsize)
        storage.values = np.frombuffer(data, storage.dtype, count)
    return {name: view.array() for name, view in state.items() if isinstance(view, View)}
