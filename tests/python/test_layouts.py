# SPDX-License-Identifier: Apache-2.0
"""Generated calls on every layout: the answer of the reference variant, or one typed error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

CALLS = 250  # of each operator
SIZES = (0, 1, 2, 3, 5, 8, 17, 33)
DTYPES = ("float32", "float32", "float16", "int32", "int64", "uint8")


class Generator:
    """Random arrays in random layouts: dense, reversed with gaps, column-major, broadcast, off alignment."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def size(self) -> int:
        return int(self.random.choice(SIZES))

    def shape(self) -> tuple[int, ...]:
        shape = tuple(self.size() for _ in range(self.random.integers(5)))
        while np.prod(shape) > 5000:
            shape = shape[1:]
        return shape

    def maybe(self, make: Callable[[], Any]) -> Any:
        return make() if self.random.integers(2) else None

    def array(self, shape: tuple[int, ...], dtype: str) -> Any:
        values = self.random.integers(0, 3, shape) if dtype[0] in "iu" else self.random.standard_normal(shape)
        array = np.asarray(values).astype(dtype)
        layout = self.random.integers(5)
        if layout == 0 and shape:
            room = np.zeros([2 * size + 2 for size in shape], dtype)
            view = room[tuple(slice(2 * size, 0, -2) for size in shape)]
            view[...] = array
            return view
        if layout == 1 and shape:
            return np.asfortranarray(array)
        if layout == 2 and shape and shape[0]:
            return np.broadcast_to(array[:1], shape)
        if layout == 3:
            room = np.zeros(array.size + 1, dtype)
            room[1:] = array.ravel()
            return room[1:].reshape(shape)
        return array

    def call(self, name: str) -> tuple[list[Any], dict[str, Any]]:
        """Arguments and options that fit the operator most of the time."""
        dtype, shape = str(self.random.choice(DTYPES)), self.shape()
        x = self.array(shape, dtype)
        if name == "gemm":
            m, n, k, batch = self.size(), self.size(), self.size(), (3,) * int(self.random.integers(3))
            bias = self.maybe(lambda: self.array((n,), dtype))
            a, b = self.array((*batch, m, k), dtype), self.array((*batch[1:], k, n), dtype)
            return [a, b], {"bias": bias, "c": self.maybe(lambda: self.array((m, n), dtype)), "alpha": 0.5}
        if name == "attention":
            q, keys = self.array((2, 4, self.size(), 8), dtype), (2, 2, self.size(), 8)
            lengths = self.maybe(lambda: self.array((2,), "int32"))
            causal = bool(self.random.integers(2))
            return [q, self.array(keys, dtype), self.array(keys, dtype)], {"key_lengths": lengths, "causal": causal}
        if name == "embedding":
            return [self.array(shape, "int64"), self.array((3, self.size()), dtype)], {}
        if name == "masked_mean":
            batch = self.size()
            return [self.array((batch, 2, self.size()), dtype), self.array((batch,), "int32")], {}
        if name in ("layer_norm", "rms_norm"):
            weight = self.maybe(lambda: self.array(shape[-1:], dtype))
            return [x], {"weight": weight, "residual": self.maybe(lambda: self.array(shape, dtype))}
        if name in ("softmax", "l2_normalize"):
            return [x], {"axis": int(self.random.integers(-3, 3))}
        if name in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
            return [x, self.array(tuple(self.random.choice((1, size)) for size in shape)[1:], dtype)], {}
        return [x], {}


def same(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]:
        tolerance = 2e-2 if a.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_every_layout_gives_the_reference_or_a_typed_error(name: str) -> None:
    operator, generator, computed = tc.ops()[name], Generator(seed=1), 0
    variants = [None, *(v.name for v in operator.variants if v.device == "cpu")]
    for _ in range(CALLS):
        args, options = generator.call(name)
        variant = generator.random.choice(variants)
        try:
            found = operator.function(*args, **options, variant=variant, device="cpu")
        except tc.errors.Error:
            continue
        computed += 1
        dense = [np.array(a, order="C") for a in args]
        wanted = operator.function(*dense, **options, variant="reference", device="cpu")
        same(found, wanted)
        if isinstance(found, tuple):
            continue
        out = generator.array(found.shape, str(found.dtype))
        try:
            operator.function(*args, **options, variant=variant, device="cpu", out=out)
        except tc.errors.Error:
            continue  # a broadcast view is read-only; a variant may want strides
        same(out, wanted)
    assert computed > CALLS // 10
