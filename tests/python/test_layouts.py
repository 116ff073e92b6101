# SPDX-License-Identifier: Apache-2.0
"""Generated calls on every layout: the answer of the reference variant, or one typed error."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

BINARY = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "equal", "not_equal", "less", "less_equal"}
BINARY |= {"greater", "greater_equal", "logical_and", "logical_or"}
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

    def channels(self, name: str, dtype: str) -> tuple[list[Any], dict[str, Any]]:
        """The same of a norm of channels."""
        shape = (3, 2 * self.size(), *(self.size() for _ in range(int(self.random.integers(3)))))
        vectors = [self.array((shape[1],), "float32") for _ in range(2)]
        if name == "group_norm":
            return [self.array(shape, dtype)], {"num_groups": 2, "weight": vectors[0]}
        if name == "batch_norm_backward":
            return [self.array(shape, dtype), self.array(shape, dtype)], {"mean": vectors[0], "rstd": vectors[1]}
        return [self.array(shape, dtype)], {"weight": vectors[0], "bias": vectors[1], "training": True}

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
        if name in ("take", "take_along_axis"):
            axis = int(self.random.integers(len(shape))) if shape else 0
            along = (*shape[:axis], self.size(), *shape[axis + 1 :])
            indices = self.array(along if name != "take" else self.shape()[:2], "int64")
            return [x, indices], {"axis": axis}
        if name == "scatter":
            axis = int(self.random.integers(len(shape))) if shape else 0
            along = (*shape[:axis], self.size(), *shape[axis + 1 :])
            reduction = str(self.random.choice(("add", "max"))) if self.random.integers(2) else None
            updates = self.array(along[int(self.random.integers(2)) :], dtype)
            return [x, self.array(along, "int64"), updates], {"axis": axis, "reduction": reduction}
        if name == "pad":
            widths = [tuple(int(n) for n in self.random.integers(0, 4, 2)) for _ in shape]
            return [x], {"pad_width": widths or 1, "value": 1}
        if name == "permute_dims":
            return [x], {"axes": [int(i) for i in self.random.permutation(x.ndim)]}
        if name == "rope":
            tokens, heads = (2, self.size()), (self.size(), 2 * self.size())
            k = self.maybe(lambda: self.array((*tokens, 2, heads[1]), dtype))
            positions = self.maybe(lambda: self.array(tokens[1:], "int64"))
            return [self.array((*tokens, *heads), dtype)], {"k": k, "positions": positions}
        if name == "quantize":
            return [x], {"dtype": "int8", "scheme": str(self.random.choice(("tensor", "token", "block")))}
        if name == "dequantize":
            return [self.array(shape, "int8"), self.array((*shape[:-1], 1), "float32")], {"scheme": "token"}
        if name == "rope_cache":
            return [self.array((self.size(),), "int64")], {"dim": 6}
        if name in ("silu_and_mul", "gelu_and_mul"):
            return [self.array((*shape[:-1], 2 * shape[-1]) if shape else shape, dtype)], {}
        if name in ("batch_norm", "batch_norm_backward", "group_norm"):
            return self.channels(name, dtype)
        if name in ("softmax", "log_softmax"):
            mask = self.maybe(lambda: self.array(shape[1:], "float32") > 0)
            return [x], {"axis": int(self.random.integers(-3, 3)), "scale": 0.5, "mask": mask}
        if name in ("logsumexp", "l2_normalize"):
            return [x], {"axis": int(self.random.integers(-3, 3))}
        if name == "cross_entropy":
            reduction = str(self.random.choice(("mean", "sum", "none")))
            return [x, self.array(shape[:-1], "int64")], {"ignore_index": 1, "reduction": reduction}
        if name == "where":
            return [self.array(shape, "int32") > 0, x, self.array(shape, dtype)], {}
        if name == "clip":
            return [x], {"min": -0.5, "max": 0.5}
        if name == "elementwise":
            return ["a * 2 + b"], {"a": x, "b": self.array(shape[1:], dtype)}
        if name in BINARY:
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
        dense = [a if isinstance(a, str) else np.array(a, order="C") for a in args]
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


@pytest.mark.parametrize("rows", [3, 4096])
def test_a_numpy_broadcast_reaches_a_gpu_as_what_it_stands_for(rows: int, device: str) -> None:
    """Of 64 MiB and more it is sent once; a smaller one goes whole, so it may be a vector that must have no gaps."""
    if not device.startswith("cuda"):
        pytest.skip("arrays stay where they are")
    row = np.linspace(-1, 1, 8192, dtype=np.float32)
    x, weight = np.broadcast_to(row, (rows, 8192)), np.broadcast_to(np.float32(2), (8192,))
    assert (x.nbytes >= 64 << 20) == (rows == 4096)
    expected = tc.rms_norm(x.copy(), weight.copy(), device=device)
    np.testing.assert_array_equal(tc.rms_norm(x, weight, device=device), expected)
