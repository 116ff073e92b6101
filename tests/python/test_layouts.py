# SPDX-License-Identifier: Apache-2.0
"""Generated calls on every layout: the answer of the reference variant, or one typed error."""

import inspect
from typing import Any

import numpy as np
import pytest
from valid_calls import CALLS, choices, valid_call, values

import tensorcraft as tc

RIGHT, MAX_CALLS = 200, 4000  # of each operator
SIZES = (0, 1, 2, 3, 5, 8, 17, 33)
SMALL = {"low": 0, "high": 2}
KEEP_ROWS = {"grouped_gemm", "masked_gemm"}  # their out keeps what it had in rows that nothing is computed of
DTYPES = ("float32", "float32", "float16", "int32", "int64", "uint8")


class Generator:
    """Random arrays in random layouts: dense, reversed with gaps, column-major, broadcast, off alignment."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def size(self) -> int:
        return int(self.random.choice(SIZES))

    def sizes(self, names: list[str]) -> dict[str, tuple[int, ...]]:
        """What each name in a shape stands for: a size, or at times no dimension; "..." for up to two."""
        sizes = {name: (self.size(),) if self.random.integers(10) else () for name in names}
        sizes["..."] = tuple(self.size() for _ in range(int(self.random.integers(3))))
        while sizes["..."] and np.prod(sum(sizes.values(), ())) > 5000:
            sizes["..."] = sizes["..."][1:]
        return sizes

    def array(self, shape: tuple[int, ...], dtype: str, fill: dict[str, Any] | None = None) -> Any:
        array = values(self.random, shape, dtype, fill or (SMALL if dtype[0] in "iu" else None))
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

    def broadcast(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """One that may stand for the shape, if the operator broadcasts."""
        ones = tuple(int(self.random.choice((1, size))) for size in shape)
        return ones[int(self.random.integers(2)) :]

    def option(self, name: str, option: str, value: Any) -> Any:
        """Another value that may be right: an axis, a word, true or false."""
        if isinstance(value, bool):
            return bool(self.random.integers(2))
        if option == "axis":
            axis = int(self.random.integers(-3, 3))
            return [axis] if isinstance(value, list) else axis
        words = choices(name).get(option)
        return str(self.random.choice(words)) if words else value

    def call(self, name: str) -> tuple[list[Any], dict[str, Any]]:
        """The valid call with other sizes, layouts and options, so that it is right most of the time."""
        first = next(iter(CALLS[name]["inputs"].values()))
        taken = [t for t in DTYPES if "dtype" in first or t in tc.ops()[name].dtypes]
        main = str(self.random.choice(taken if self.random.integers(8) else DTYPES))
        sizes = self.sizes(list(CALLS[name]["sweep"]))
        odd = int(self.random.integers(8))  # which array is one to be broadcast

        def make(shape: tuple[int, ...], dtype: str | None, fill: dict[str, Any] | None) -> Any:
            nonlocal odd
            odd -= 1
            return self.array(shape if odd else self.broadcast(shape), dtype or main, fill)

        args, options = valid_call(name, make, sizes)
        parameters = inspect.signature(tc.ops()[name].function).parameters
        needed = {o for o in options if o not in parameters or parameters[o].default is inspect.Parameter.empty}
        all_of_them = self.random.integers(2)
        kept = [o for o in options if o in needed or all_of_them or self.random.integers(2)]
        return args, {o: options[o] if self.random.integers(4) else self.option(name, o, options[o]) for o in kept}


def same(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]:
        tolerance = 2e-2 if a.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance)


def result(name: str, args: list[Any], options: dict[str, Any], variant: str | None) -> Any:
    function = tc.ops()[name].function
    found = function(*args, **options, variant=variant, device="cpu")
    if name in KEEP_ROWS:
        zeros = tc.zeros(found.shape, dtype=str(found.dtype), device="cpu")
        found = np.asarray(function(*args, **options, variant=variant, device="cpu", out=zeros))
    return found


@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_every_layout_gives_the_reference_or_a_typed_error(name: str) -> None:
    operator, generator, computed = tc.ops()[name], Generator(seed=1), 0
    variants = [None, *(v.name for v in operator.variants if v.device == "cpu")]
    for _ in range(MAX_CALLS):
        if computed == RIGHT:
            break
        args, options = generator.call(name)
        variant = generator.random.choice(variants)
        try:
            found = result(name, args, options, variant)
        except tc.errors.Error:
            continue
        computed += 1
        dense = [a if isinstance(a, str) else np.array(a, order="C") for a in args]
        wanted = result(name, dense, options, "reference")
        same(found, wanted)
        if isinstance(found, (tuple, tc.Tensor)):  # a tensor: a dtype that NumPy lacks
            continue
        out = generator.array(found.shape, str(found.dtype))
        if name in KEEP_ROWS:
            out = np.zeros_like(out)
        try:
            operator.function(*args, **options, variant=variant, device="cpu", out=out)
        except tc.errors.Error:
            continue  # a broadcast view is read-only; a variant may want strides
        same(out, wanted)
    assert computed == RIGHT


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
