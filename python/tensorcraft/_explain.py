# SPDX-License-Identifier: Apache-2.0
"""`tc.explain` and `tc.ops`: what the library would do, and what it can do."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from . import _ops
from . import _tensorcraft as native
from ._registry import Operator
from .errors import TensorCraftKeyError


@dataclass(frozen=True)
class Verdict:
    """What the chooser says of one variant."""

    name: str  # of the variant
    idea: str  # what it does, in one line
    accepted: bool  # would it run the call?
    reason: str  # why not
    config: str  # what its kernel would be compiled with


@dataclass(frozen=True)
class Kernel:
    """What the chosen variant launches and what the compiler made of it.

    Where `problem` is not empty it says why registers, code and occupancy are not known; they are 0 then.
    """

    arch: str  # "sm_90a"
    signature: str  # readable, ends in the key's hash
    grid: tuple[int, int, int]  # in blocks
    block: tuple[int, int, int]  # in threads
    cluster: tuple[int, int, int]  # in blocks
    registers: int  # of each thread
    shared_bytes: int  # of each block, static and dynamic
    spill_bytes: int  # stores and loads
    code_bytes: int  # of the image
    compile_ms: float  # even if the image came from the cache
    blocks_per_sm: int  # at a time
    occupancy: float  # the part of a multiprocessor's warps that are in use at a time
    limited_by: str  # what leaves no room for one more block
    problem: str  # why the figures are not known; empty if they are


@dataclass(frozen=True)
class Explanation:
    """The chosen variant of a call and the verdict on every other; str() is a table."""

    op: str  # the name of the operator
    device: str  # where it would run
    variant: str  # the one chosen; empty if none accepts
    variants: tuple[Verdict, ...]  # best first
    floor_us: float  # no variant can be faster on the device; 0 if its peak is unknown
    bytes: float  # each input read once, each output written once
    flops: float  # a multiplication and an addition are two
    kernels: tuple[Kernel, ...]  # in the order of their launches; none on the CPU
    text: str  # what str() gives

    def __str__(self) -> str:
        return self.text


def ops() -> dict[str, Operator]:
    """Every operator by name."""
    return dict(_ops.OPERATORS)


def explain(op: str, /, *args: Any, arch: str | None = None, **options: Any) -> Explanation:
    """What calling operator `op` with these arguments would run, and why; nothing is computed.

    A kernel is compiled, into the cache, if NVRTC is there. `arch` ("sm_90a") asks about such a GPU, which need not
    be here, and takes the arrays as if they lay on it.

    Raises KeyError for an unknown operator, and what the call itself would raise for bad arguments.
    """
    if op not in _ops.OPERATORS:
        raise TensorCraftKeyError(f'no operator is named "{op}"; there are {", ".join(_ops.OPERATORS)}')
    record = _ops.OPERATORS[op]
    bound = inspect.signature(record.function).bind(*args, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    common = {name: values.pop(name) for name in ("out", "stream", "variant", "device")}
    chosen = {name: values.pop(name) for name in record._options}
    found = native.explain(
        record._index, tuple(values.values()), tuple(chosen.values()), common["variant"], common["device"], arch
    )
    rows = tuple(Verdict(**row) for row in found.pop("variants"))
    kernels = tuple(Kernel(**made) for made in found.pop("kernels"))
    return Explanation(variants=rows, kernels=kernels, **found)
