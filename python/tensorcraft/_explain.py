# SPDX-License-Identifier: Apache-2.0
"""`tc.explain` and `tc.ops`: what the library would do, and what it can do."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from . import _ops
from . import _tensorcraft as native
from ._arguments import broadcast_shapes
from ._packed import PackedWeight
from ._packed import product as packed_product
from ._registry import Operator
from ._tensor import asarray, astype, clip, empty, has_array_bounds
from .errors import TensorCraftTypeError
from .linalg import matmul


class Candidate(NamedTuple):
    """A Config that a variant weighed for the call."""

    config: str  # the fields in which the candidates differ
    predicted_us: float  # 0 if the variant compares without times
    rounds: int  # of blocks, one after the other on the busiest multiprocessor
    busy: float  # the share of that time in which multiprocessors compute, on average
    chosen: bool  # is it what the kernel would be compiled with?


class Verdict(NamedTuple):
    """What the chooser says of one variant."""

    name: str  # of the variant
    idea: str  # what it does, in one line
    accepted: bool  # would it run the call?
    reason: str  # why not
    config: str  # what its kernel would be compiled with
    file: str  # of its device code
    estimate_us: float  # of the least time on the device, at its peaks; 0 if not known
    candidates: tuple[Candidate, ...]  # what its choice weighed; empty if it has one Config for a call
    why: str  # the candidate that is chosen is it


class Kernel(NamedTuple):
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


class Tuned(NamedTuple):
    """What `tc.tune` measured for a call."""

    config: str  # of the operator's settings; empty if they are left to the cost model
    us: float  # a call so
    model_us: float  # as the cost model chooses


class Explanation(NamedTuple):
    """The chosen variant of a call and the verdict on every other; str() is a table."""

    op: str  # the name of the operator
    device: str  # where it would run; the architecture that was asked about if no such GPU is here
    variant: str  # the one chosen; empty if none accepts
    variants: tuple[Verdict, ...]  # best first
    tuned: Tuned | None  # why the variant is chosen, if it was measured
    prior: str  # of a product on a GPU: what a rule of thumb expects of its tile
    staged: str  # inputs in pageable memory of the host, and how they go to a GPU; empty without any
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


def explain(op: str | Callable[..., Any], /, *args: Any, arch: str | None = None, **options: Any) -> Explanation:
    """What calling an operator with these arguments would run, and why; nothing is computed.

    `op` is its function or its name: `tc.explain(tc.softmax, x)`, `tc.explain("softmax", x)`. A kernel is compiled,
    into the cache, if NVRTC is there. `arch` ("sm_90a") asks about such a GPU, which need not be here, and takes the
    arrays as if they lay on it. Every argument of the call counts, `out=` and how it lies in memory too; without it the
    result is a fresh allocation. Of `tc.clip` between two arrays, which is two operators, it is the second's answer
    with the kernels, work and text of both.

    Raises KeyError for an unknown operator, and what the call itself would raise for bad arguments, but for arrays that
    overlap.
    """
    record = _record(op)
    if record.name == "astype":
        options.pop("copy", None)  # of tc.astype, which converts if it calls the operator at all
    from inspect import signature  # slow to import, and few programs ask

    bound = signature(record.function).bind(*args, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    if record.name == "clip" and has_array_bounds(values["min"], values["max"]):
        return _of_clip(**values, arch=arch)
    common = {name: values.pop(name) for name in ("out", "stream", "variant", "device")}
    chosen = {name: values.pop(name) for name in record._options}
    if record.name == "gemm" and isinstance(values["b"], PackedWeight):
        asked: Explanation = packed_product(
            values["a"], values["b"], chosen, call=partial(explain, "packed_gemm", arch=arch), **common
        )
        return asked
    found = native.explain(record._index, tuple(values.values()), tuple(chosen.values()), **common, arch=arch)
    rows = tuple(
        Verdict(candidates=tuple(Candidate(**one) for one in row.pop("candidates")), **row)
        for row in found.pop("variants")
    )
    kernels = tuple(Kernel(**made) for made in found.pop("kernels"))
    tuned = found.pop("tuned")
    return Explanation(variants=rows, kernels=kernels, tuned=tuned and Tuned(*tuned), **found)


def _of_clip(x: Any, min: Any, max: Any, out: Any, **options: Any) -> Explanation:
    """As tc.clip computes with arrays: by maximum, then minimum."""
    if max is None:
        return explain("maximum", x, min, out=out, **options)
    if min is None:
        return explain("minimum", x, max, out=out, **options)
    first = explain("maximum", x, min, **options)
    import numpy as np

    shape = broadcast_shapes(native.from_any(x).shape, native.from_any(min).shape)
    like = x if hasattr(x, "ndim") else min if hasattr(min, "ndim") else asarray(x, device="cpu").numpy()
    between: Any  # what maximum returns
    if isinstance(like, (np.ndarray, np.generic)):
        between = np.empty(shape, like.dtype)
    else:
        source = native.from_any(like)
        between = empty(shape, dtype=source.dtype, device=source.device)
    second = explain("minimum", between, max, out=out, **options)
    return second._replace(
        floor_us=first.floor_us + second.floor_us,
        bytes=first.bytes + second.bytes,
        flops=first.flops + second.flops,
        kernels=first.kernels + second.kernels,
        text=first.text + second.text,
    )


def _record(op: str | Callable[..., Any]) -> Operator:
    """The registry's record of an operator's function or name."""
    if isinstance(op, str):
        return tuple(_ops.OPERATORS.values())[native.operator_index(op)]
    for record in _ops.OPERATORS.values():
        if record.function is op:
            return record
    if any(op is over for over in (astype, clip, matmul)):  # written over the operators of these names
        return _record(op.__name__)
    raise TensorCraftTypeError(
        f"explain: op must be an operator's function or name, such as tc.softmax or 'softmax', got {op!r}"
    )
