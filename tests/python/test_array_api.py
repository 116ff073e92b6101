# SPDX-License-Identifier: Apache-2.0
"""The package against the array API standard: names and signatures, dtypes, special cases, and values as NumPy's."""

import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.array_api import make_strategies_namespace

import tensorcraft as tc

FOLDER = Path(__file__).parents[1] / "array_api"
SKIPPED = [line for line in (FOLDER / "skips.txt").read_text().splitlines() if line and not line.startswith("#")]
# Decompositions are not there, nor is the rest of linalg that needs them.
ABSENT_LINALG = (
    ["cholesky", "cross", "det", "eigh", "eigvalsh", "inv", "matrix_power", "matrix_rank", "pinv", "qr", "slogdet", "solve", "svd", "svdvals"]
)  # fmt: skip


def signatures() -> Iterator[tuple[str, str, inspect.Signature]]:
    """Section, name and parameters of each line of signatures.txt."""
    section = ""
    for line in (FOLDER / "signatures.txt").read_text().splitlines():
        if line.startswith("["):
            section = line[1:-1]
        elif not line.startswith("#"):
            made: dict[str, Any] = {}
            exec(f"def {line}: ...", made)  # noqa: S102
            name = line.split("(")[0]
            yield section, name, inspect.signature(made[name])


STANDARD = list(signatures())


def is_absent(section: str, name: str) -> bool:
    return name in ABSENT_LINALG if section == "linalg" else f"[{name}]" in SKIPPED


@pytest.mark.parametrize(("section", "name", "wanted"), STANDARD, ids=lambda v: v if isinstance(v, str) else "")
def test_a_name_of_the_standard_has_its_signature(section: str, name: str, wanted: inspect.Signature) -> None:
    holder: Any = {"functions": tc, "methods": tc.Tensor, "linalg": tc.linalg}[section]
    if is_absent(section, name):
        assert not hasattr(holder, name), f"{name} is there: take it off the list of what is absent"
        return
    function = getattr(holder, name)
    try:
        found = list(inspect.signature(function).parameters.values())
    except ValueError:  # of the native part
        assert callable(function)
        return
    found = found[1:] if section == "methods" else found
    positional = [p for p in wanted.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    assert len(found) >= len(positional)
    for p, real in zip(positional, found, strict=False):
        if p.kind is p.VAR_POSITIONAL:
            assert real.kind is p.VAR_POSITIONAL
        elif p.kind is p.POSITIONAL_OR_KEYWORD:
            assert (real.name, real.kind) == (p.name, p.kind)
        else:
            assert real.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    by_name = {p.name: p for p in found}
    for p in wanted.parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            assert by_name[p.name].kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
    required = [
        p
        for p in found[len(positional) :]
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    assert not required, "more arguments are needed than the standard gives"


def test_constants_and_attributes() -> None:
    assert (tc.e, tc.pi, tc.inf, tc.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(tc.nan)
    x = tc.zeros((2, 3))
    assert x.__array_namespace__() is tc and x.__array_namespace__(api_version=tc.__array_api_version__) is tc
    with pytest.raises(ValueError, match="api_version must be one of"):
        x.__array_namespace__(api_version="1999.12")
    assert (x.ndim, x.size, x.shape, x.T.shape, x.mT.shape) == (2, 6, (2, 3), (3, 2), (3, 2))


def test_the_namespace_says_what_it_has() -> None:
    info = tc.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}
    assert info.default_device() == tc.default_device() and info.devices() == tc.devices()
    assert info.default_dtypes()["real floating"] is tc.float32 and info.default_dtypes()["indexing"] is tc.int64
    assert info.dtypes(kind="signed integer") == {n: getattr(tc, n) for n in ("int8", "int16", "int32", "int64")}
    assert set(info.dtypes()) == {"bool", "int8", "int16", "int32", "int64", "uint8", "float32"}
    with pytest.raises(ValueError, match="no kind of dtypes is named 'whole'"):
        info.dtypes(kind="whole")


# ---- dtypes


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_the_limits_of_floats_are_numpys(name: str) -> None:
    found, wanted = tc.finfo(getattr(tc, name)), np.finfo(name)
    assert found.bits == wanted.bits and found.dtype == getattr(tc, name)
    for attribute in ("eps", "max", "min", "smallest_normal"):
        assert getattr(found, attribute) == float(getattr(wanted, attribute))


def test_the_limits_of_other_floats() -> None:
    assert tc.finfo(tc.bfloat16)[1:5] == (2.0**-7, 3.3895313892515355e38, -3.3895313892515355e38, 2.0**-126)
    assert tc.finfo(tc.float8_e4m3fn)[:3] == (8, 0.125, 448) and tc.finfo(tc.float8_e5m2)[:3] == (8, 0.25, 57344)
    assert tc.finfo(tc.zeros(2, dtype=tc.float16)).max == 65504
    with pytest.raises(TypeError, match="finfo: int8 is no floating-point dtype; iinfo"):
        tc.finfo(tc.int8)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8"])
def test_the_limits_of_integers_are_numpys(name: str) -> None:
    found, wanted = tc.iinfo(name), np.iinfo(name)
    assert (found.bits, found.min, found.max) == (wanted.bits, wanted.min, wanted.max)


NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32"]


@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("b", NAMES)
def test_dtypes_combine_as_in_numpy(a: str, b: str) -> None:
    one, other = getattr(tc, a), getattr(tc, b)
    if (a == "bool") != (b == "bool"):
        with pytest.raises(TypeError, match="no dtype is common to"):
            tc.result_type(one, other)
        return
    wanted = np.result_type(a, b).name
    floats = [n for n in (a, b) if n.startswith("float")]
    if len(floats) == 1:  # the float, not a wider one: NumPy would go to float64
        wanted = floats[0]
    assert tc.result_type(one, other) == getattr(tc, wanted)
    assert tc.result_type(tc.zeros(2, dtype=one), other) == getattr(tc, wanted)
    x, y = tc.ones(3, dtype=one), tc.ones(3, dtype=other)
    assert tc.concat([x, y]).dtype == tc.stack([x, y]).dtype == getattr(tc, wanted)
    if a != "bool":
        assert tc.multiply(x, y).dtype == getattr(tc, wanted)
    safe = np.can_cast(a, b)
    assert tc.can_cast(one, other) == safe or (a.startswith("int") and b.startswith("float"))


def test_numbers_take_the_dtype_beside_them() -> None:
    assert tc.result_type(tc.int8, 5) is tc.int8 and tc.result_type(2.0, tc.float16, 1) is tc.float16
    assert tc.result_type(tc.int32, 0.5) is tc.float32 and tc.result_type(tc.bool, True) is tc.bool
    with pytest.raises(TypeError, match="a int goes with no bool"):
        tc.result_type(tc.bool, 1)
    with pytest.raises(ValueError, match="at least one array or dtype"):
        tc.result_type(1, 2.0)


def test_kinds_of_dtypes() -> None:
    assert tc.isdtype(tc.int8, "integral") and tc.isdtype(tc.int8, ("bool", "signed integer"))
    assert tc.isdtype(tc.bfloat16, "real floating") and tc.isdtype(tc.uint8, (tc.float32, tc.uint8))
    assert not tc.isdtype(tc.float32, "complex floating") and not tc.isdtype(tc.bool, "numeric")


# ---- functions whose values are NumPy's, called alike

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
M = np.array([[True, False, True], [False, True, True]])
V = np.array([3, -1, 2, 0, 2], np.int64)
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 7.5, -7.5, np.inf, -np.inf, np.nan], np.float32
)
SORTED = np.array([-np.inf, -7.5, -1, -1, 0, 0.5, 3, 3, 3, 9, np.inf, np.nan, np.nan], np.float32)
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "reshape": lambda xp, a: xp.reshape(a(X), (4, -1)),
    "reshape of a view": lambda xp, a: xp.reshape(a(X).mT, 24),
    "reshape copy": lambda xp, a: xp.reshape(a(X), (24,), copy=True),
    "squeeze": lambda xp, a: xp.squeeze(a(X[:, :1, None]), (1, -2)),
    "expand_dims": lambda xp, a: xp.expand_dims(a(X), axis=-2),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a(X[:, :1]), (2, 2, 3, 4)),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a(X), a(X[0, :, :1]), a(V[:4])),
    "broadcast_shapes": lambda xp, a: np.array(xp.broadcast_shapes((2, 1), (1, 3), ())),
    "flip": lambda xp, a: xp.flip(a(X)),
    "flip axes": lambda xp, a: xp.flip(a(X), axis=(0, -1)),
    "flip twice": lambda xp, a: xp.flip(xp.flip(a(X), axis=1), axis=1),
    "moveaxis": lambda xp, a: xp.moveaxis(a(X), (0, 1), (-1, 0)),
    "permute_dims": lambda xp, a: xp.permute_dims(a(X), axes=(2, 0, 1)),
    "roll": lambda xp, a: xp.roll(a(X), -5),
    "roll axes": lambda xp, a: xp.roll(a(X), (1, -6), axis=(0, 2)),
    "roll nothing": lambda xp, a: xp.roll(a(X[:0]), 3, axis=0),
    "repeat": lambda xp, a: xp.repeat(a(X), 3),
    "repeat axis": lambda xp, a: xp.repeat(a(X), 2, axis=1),
    "repeat each": lambda xp, a: xp.repeat(a(X), a(np.array([2, 0, 3])), axis=1),
    "repeat none": lambda xp, a: xp.repeat(a(X), a(np.array([0, 0, 0])), axis=1),
    "tile": lambda xp, a: xp.tile(a(X), (2, 1, 1, 3)),
    "tile short": lambda xp, a: xp.tile(a(X), (2,)),
    "tile none": lambda xp, a: xp.tile(a(X), (0, 1)),
    "unstack": lambda xp, a: xp.unstack(a(X), axis=1),
    "concat flat": lambda xp, a: xp.concat([a(X), a(X[0, 1])], axis=None),
    "concat mixed": lambda xp, a: xp.concat([a(V), a(V[:1].astype(np.int8)), a(V[1:].astype(np.int32))]),
    "meshgrid": lambda xp, a: xp.meshgrid(a(V), a(V[:2]), a(V[:3])),
    "meshgrid ij": lambda xp, a: xp.meshgrid(a(V), a(V[:2]), indexing="ij"),
    "tril": lambda xp, a: xp.tril(a(X), k=-1),
    "triu": lambda xp, a: xp.triu(a(X), k=1),
    "triu of bool": lambda xp, a: xp.triu(a(M)),
    "tril of int8": lambda xp, a: xp.tril(a(X.astype(np.int8)), k=2),
    "diff": lambda xp, a: xp.diff(a(X), axis=1, n=2),
    "diff to nothing": lambda xp, a: xp.diff(a(V), n=9),
    "diff with ends": lambda xp, a: xp.diff(a(V), prepend=a(V[:1]), append=a(V[:2])),
    "nonzero": lambda xp, a: xp.nonzero(a(X * (X % 3))),
    "nonzero of a mask": lambda xp, a: xp.nonzero(a(M)),
    "nonzero of none": lambda xp, a: xp.nonzero(a(np.zeros((3, 2), np.float32))),
    "searchsorted": lambda xp, a: xp.searchsorted(a(SORTED), a(SPECIAL)),
    "searchsorted right": lambda xp, a: xp.searchsorted(a(SORTED), a(X), side="right"),
    "searchsorted sorter": lambda xp, a: xp.searchsorted(a(V), a(V[:3]), sorter=a(np.argsort(V))),
    "searchsorted in nothing": lambda xp, a: xp.searchsorted(a(V[:0]), a(V)),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a(X / 4), axis=1),
    "cumulative_prod initial": lambda xp, a: xp.cumulative_prod(a(V[:3]), include_initial=True),
    "cumulative_prod of nothing": lambda xp, a: xp.cumulative_prod(a(X[:, :0]), axis=1),
    "matmul": lambda xp, a: xp.matmul(a(X), a(X).mT),
    "matrix times vector": lambda xp, a: xp.matmul(a(X), a(X[0, 0])),
    "vector times matrix": lambda xp, a: xp.matmul(a(X[0, :, 0]), a(X)),
    "vector times vector": lambda xp, a: xp.matmul(a(X[0, 0]), a(X[1, 2])),
    "matmul of int8": lambda xp, a: xp.matmul(a(X[0].astype(np.int8)), a((20 * X[1]).astype(np.int8)).mT),
    "matmul of int64": lambda xp, a: xp.matmul(a(V * 2**40), a(V)),
    "matmul of nothing": lambda xp, a: xp.matmul(a(X[:, :, :0]), a(X[:, :0, :])),
    "operator @": lambda xp, a: a(X) @ a(V[:4].astype(np.float32)),
    "vecdot": lambda xp, a: xp.vecdot(a(X), a(X[1:, :1])),
    "vecdot axis": lambda xp, a: xp.vecdot(a(X), a(X), axis=-3),
    "tensordot": lambda xp, a: xp.tensordot(a(X), a(X), axes=((0, 2), (0, 2))),
    "tensordot number": lambda xp, a: xp.tensordot(a(X), a(X[0].T.copy()), axes=1),
    "tensordot outer": lambda xp, a: xp.tensordot(a(X[0, 0]), a(X[0]), axes=0),
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a(X)),
    "outer": lambda xp, a: xp.linalg.outer(a(X[0, 0]), a(X[0, :, 0])),
    "diagonal": lambda xp, a: xp.linalg.diagonal(a(X), offset=1),
    "diagonal below": lambda xp, a: xp.linalg.diagonal(a(X), offset=-2),
    "diagonal outside": lambda xp, a: xp.linalg.diagonal(a(X), offset=9),
    "trace": lambda xp, a: xp.linalg.trace(a(X), offset=-1),
    "vector_norm": lambda xp, a: xp.linalg.vector_norm(a(X), axis=(0, 2)),
    "vector_norm 1": lambda xp, a: xp.linalg.vector_norm(a(X), axis=1, ord=1, keepdims=True),
    "vector_norm inf": lambda xp, a: xp.linalg.vector_norm(a(X), ord=math.inf),
    "vector_norm -inf": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=-math.inf),
    "vector_norm 0": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=0),
    "vector_norm 3": lambda xp, a: xp.linalg.vector_norm(a(X), axis=0, ord=3),
    "matrix_norm": lambda xp, a: xp.linalg.matrix_norm(a(X)),
    "matrix_norm 1": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=1),
    "matrix_norm -1": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=-1, keepdims=True),
    "matrix_norm inf": lambda xp, a: xp.linalg.matrix_norm(a(X), ord=math.inf),
    "astype": lambda xp, a: xp.astype(a(X), xp.int32),
    "mask and": lambda xp, a: a(M) & ~a(M)[::-1],
    "mask or": lambda xp, a: a(M) | a(M)[:, ::-1],
    "mask xor": lambda xp, a: a(M) ^ True,
    "integer &": lambda xp, a: a(V) & 3,
    "integer |": lambda xp, a: 4 | a(V),
    "integer ~": lambda xp, a: ~a(V),
    "integer <<": lambda xp, a: a(V) << 2,
    "integer >>": lambda xp, a: a(V) >> 1,
    "reflected <<": lambda xp, a: 1 << a(abs(V)),
    "%": lambda xp, a: a(X) % 3,
    "integer %": lambda xp, a: a(V) % a(np.full(5, -2)),
    "reflected %": lambda xp, a: 7 % a(V[:3]),
    "//": lambda xp, a: a(X) // 2.5,
    "integer //": lambda xp, a: a(V) // -2,
    "divmod": lambda xp, a: divmod(a(V), 2),
    "reflected divmod": lambda xp, a: divmod(7, a(V[:3])),
    "unary +": lambda xp, a: +a(X),
    "methods": lambda xp, a: [a(X).sum(), a(X).mean(1), a(X).max(axis=2), a(X).min(), a(X).argmax(axis=0)],
    "bool methods": lambda xp, a: [a(M).any(0), a(M).all(axis=1, keepdims=True)],
    "round, clip, take, nonzero": lambda xp, a: [a(X / 3).round(), a(X).clip(-2, 5), a(V).take(a(np.array([0, -1])))],
}  # fmt: skip


def check_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            check_same(one, other)
        return
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), np.asarray(wanted).astype(np.float64), 2e-6, 1e-6)


@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case: str, device: str) -> None:
    wanted = CASES[case](np, lambda x: x)
    found = CASES[case](tc, lambda x: tc.asarray(x, device=device))
    one = found[0] if isinstance(found, (list, tuple)) else found
    assert isinstance(one, np.ndarray) or (isinstance(one, tc.Tensor) and one.device == device)
    check_same(found, wanted)


@pytest.mark.parametrize("case", [c for c in CASES if "method" not in c and ", " not in c and "operator" not in c])
def test_arrays_of_numpy_come_back(case: str) -> None:
    found = CASES[case](tc, lambda x: x)
    assert not isinstance(found, tc.Tensor)
    check_same(found, CASES[case](np, lambda x: x))


def test_in_place_operators(device: str) -> None:
    array, t = V.copy(), tc.asarray(V, device=device, copy=True)
    same = t
    for x in (array, t):
        x %= 3
        x //= 2
        x <<= 4
        x |= 1
        x ^= 3
        x &= 255
        x >>= 1
        x **= 2
    assert same is t
    np.testing.assert_array_equal(t.numpy(), array)
    a, b = tc.asarray(X[0, :, :3], device=device, copy=True), tc.asarray(X[1, :, :3], device=device)
    wanted = X[0, :, :3] @ X[1, :, :3]
    a @= b
    np.testing.assert_allclose(a.numpy(), wanted)
    with pytest.raises(ValueError, match="the product has shape"):
        b @= tc.ones((3, 2), device=device)


def test_what_does_not_fit_is_refused() -> None:
    x = tc.asarray(X)
    for call, error, text in (
        (lambda: tc.reshape(x.mT, 24, copy=False), ValueError, "copy=False, but x is not contiguous"),
        (lambda: tc.expand_dims(x, axis=5), IndexError, "axis must be in"),
        (lambda: tc.flip(x, axis=(1, -2)), ValueError, "names one axis twice"),
        (lambda: tc.broadcast_shapes((2,), (3,)), ValueError, "do not broadcast"),
        (lambda: tc.moveaxis(x, (0, 1), 2), ValueError, "2 axes have 1 destinations"),
        (lambda: tc.roll(x, (1, 2), axis=0), ValueError, "1 axes have 2 shifts"),
        (lambda: tc.repeat(x, -1), ValueError, "must not be negative"),
        (lambda: tc.repeat(x, [1, 2], axis=1), ValueError, "one for each of 3"),
        (lambda: tc.repeat(x, [1, -2, 3], axis=1), ValueError, "must not be negative"),
        (lambda: tc.tile(x, (-1,)), ValueError, "must not be negative"),
        (lambda: tc.meshgrid(x, indexing="yx"), ValueError, 'must be "xy" or "ij"'),
        (lambda: tc.tril(x[0, 0]), ValueError, "at least 2 dimensions"),
        (lambda: tc.nonzero(tc.asarray(1.0)), ValueError, "x has no axis"),
        (lambda: tc.matmul(x, 2.0), ValueError, "use multiply"),
        (lambda: tc.matmul(tc.asarray(V), tc.asarray(V[:2])), ValueError, "they must be equal"),
        (lambda: tc.vecdot(x, x, axis=0), ValueError, "axis must be negative"),
        (lambda: tc.tensordot(x, x, axes=1), ValueError, "Size mismatch"),
        (lambda: tc.linalg.matrix_norm(x, ord="nuc"), NotImplementedError, "'nuc' is not there"),
        (lambda: tc.linalg.vector_norm(tc.asarray(V)), TypeError, "convert it with astype"),
        (lambda: tc.linspace(0, 1, -1), ValueError, "num must not be negative"),
        (lambda: tc.eye(-1), ValueError, "must not be negative"),
        (lambda: x[x.sum()], TypeError, "must be of integers or bool"),
        (lambda: x[tc.asarray(M[:, :2])], IndexError, "does not fit axes"),
        (lambda: x[tc.asarray([5])], IndexError, r"element 0 is 5, expected \[-2, 2\)"),
        (lambda: x[tc.asarray([0, 1]), tc.asarray([0, 3])], IndexError, r"element 1 is 6, expected \[-6, 6\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()


# ---- creation


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "int8", "bfloat16"])
def test_eye(dtype: str, device: str) -> None:
    for shape in ((3,), (2, 5), (4, 0), (5, 2)):
        for k in (-2, 0, 1, 9):
            found = tc.eye(*shape, k=k, dtype=dtype, device=device)
            assert (found.dtype, found.device) == (getattr(tc, dtype), device)
            np.testing.assert_array_equal(np.asarray(found).astype(np.float32), np.eye(*shape, k=k))
    assert tc.eye(2).dtype is tc.float32


def test_linspace(device: str) -> None:
    for arguments in ((0, 1, 5), (3, -2, 7), (1.5, 1.5, 1), (0, 9, 0)):
        for endpoint in (True, False):
            found = tc.linspace(*arguments, device=device, endpoint=endpoint)
            np.testing.assert_allclose(found.numpy(), np.linspace(*arguments, endpoint=endpoint), 1e-6, 1e-6)
    assert tc.linspace(0, 10, 3, dtype=tc.int64).tolist() == [0, 5, 10]


def test_full_takes_the_dtype_of_its_value() -> None:
    assert tc.full(2, True).dtype is tc.bool and tc.full((), fill_value=7).dtype is tc.int64
    assert tc.full(2, 1.5).dtype is tc.float32 and tc.full(2, 3, dtype=tc.int8).dtype is tc.int8
    assert tc.full(1, 2**24 + 1).item() == 2**24 + 1
    assert tc.full_like(tc.zeros(2, dtype=tc.int16), fill_value=3).tolist() == [3, 3]
    assert tc.zeros(2, dtype=None).dtype is tc.ones(2, dtype=None).dtype is tc.empty(2, dtype=None).dtype is tc.float32


def test_astype_and_from_dlpack_copy_as_told() -> None:
    x = tc.asarray(X.copy())
    assert tc.astype(x, tc.float32, copy=False) is x and x.astype(tc.float32, copy=False) is x
    assert tc.astype(x, tc.float32).data_ptr != x.data_ptr and tc.astype(x, tc.int8, copy=False).dtype is tc.int8
    assert tc.from_dlpack(x).data_ptr == x.data_ptr != tc.from_dlpack(x, copy=True).data_ptr
    for device in tc.devices():
        assert tc.from_dlpack(X, device=device).device == device
        assert x.to_device(device, stream=None).device == device


# ---- indexing


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> Any:
    """A key of NumPy for a shape: every part of it is of any kind."""
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 6)):
        n, kind = shape[axis], draw(st.integers(0, 5))
        if kind == 0:
            parts.append(None)
        elif kind == 1 and Ellipsis not in [p for p in parts if p is Ellipsis]:
            parts.append(...)
            axis = len(shape) - draw(st.integers(0, len(shape) - axis))
        elif kind == 2 and n:
            parts.append(draw(st.integers(-n, n - 1)))
            axis += 1
        elif kind == 3 and n:
            sizes = draw(st.sampled_from([(), (3,), (2, 1), (1, 3)]))
            parts.append(
                draw(
                    hnp.arrays(
                        draw(st.sampled_from(["int64", "int32", "int8"])), sizes, elements=st.integers(-n, n - 1)
                    )
                )
            )
            axis += 1
        elif kind == 4:
            wide = draw(st.integers(0, min(2, len(shape) - axis)))
            parts.append(draw(hnp.arrays(bool, shape[axis : axis + wide])))
            axis += wide
        else:
            bound = st.none() | st.integers(-n - 1, n + 1)
            step = draw(st.sampled_from([None, 1, 2, 5, -1, -2, -5]))
            parts.append(slice(draw(bound), draw(bound), step))
            axis += 1
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


def as_tensors(key: Any, device: str) -> Any:
    if isinstance(key, tuple):
        return tuple(as_tensors(k, device) for k in key)
    return tc.asarray(key, device=device) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_key_reads_and_writes_as_in_numpy(data: Any, dtype: str, device: str) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    array = data.draw(hnp.arrays(dtype, shape, elements=st.integers(0, 1 if dtype == "bool" else 100)))
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    key = data.draw(keys(array.shape))
    try:
        wanted = array[key]
    except IndexError:
        return
    if wanted.ndim > 6:  # on the way a tensor may have more dimensions than the result
        return
    t = tc.copy(tc.asarray(array).to(device))
    given_key = as_tensors(key, device) if data.draw(st.booleans()) else key
    found = t[given_key]
    assert found.shape == wanted.shape and found.dtype == t.dtype and found.device == device
    np.testing.assert_array_equal(found.numpy(), wanted)
    sizes = tuple(data.draw(st.sampled_from([1, n])) for n in wanted.shape)[data.draw(st.integers(0, wanted.ndim)) :]
    value = data.draw(hnp.arrays(dtype, sizes, elements=st.integers(0, 1)) | st.just(1))
    expected = array.copy()
    expected[key] = value
    t[given_key] = tc.asarray(value, device=device) if isinstance(value, np.ndarray) else value
    np.testing.assert_array_equal(t.numpy(), expected)


def test_lists_index_and_bool_does_not(device: str) -> None:
    t = tc.asarray(X, device=device)
    np.testing.assert_array_equal(t[[1, 0, 1]].numpy(), X[[1, 0, 1]])
    np.testing.assert_array_equal(t[[True, False]].numpy(), X[[True, False]])
    np.testing.assert_array_equal(t[[]].numpy(), X[[]])
    for key in (True, np.True_, (0, False)):
        with pytest.raises(TypeError, match="not bool"):
            t[key]


def test_writing_by_a_mask_or_array_takes_what_is_read_first(device: str) -> None:
    array, t = V.copy(), tc.asarray(V, device=device, copy=True)
    for x, i in ((array, V), (t, tc.asarray(V, device=device))):
        x[i % 5] = x
        x[x > 1] = x[::-1][x > 1]
        x[x == 0] = -9
    np.testing.assert_array_equal(t.numpy(), array)


def test_a_negative_step_is_a_view() -> None:
    t = tc.asarray(X.copy())
    back = t[::-1, :, ::-2]
    back[0, 0, 0] = 99
    assert t[1, 0, 3].item() == 99 and back.strides == (-12, 4, -2)
    np.testing.assert_array_equal((back + 1).numpy(), t.numpy()[::-1, :, ::-2] + 1)


# ---- elementwise functions at their special values, and by hypothesis' own strategies for array API namespaces

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "expm1",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "negative",
    "positive",
    "reciprocal",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]
BINARY = [
    "add",
    "atan2",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "less",
    "less_equal",
    "logaddexp",
    "maximum",
    "minimum",
    "multiply",
    "nextafter",
    "not_equal",
    "pow",
    "remainder",
    "subtract",
]


def check_special(name: str, found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=3e-6, err_msg=name)
    if wanted.dtype.kind == "f" and name not in ("maximum", "minimum"):
        zero = wanted == 0
        np.testing.assert_array_equal(np.signbit(found.numpy()[zero]), np.signbit(wanted[zero]), err_msg=name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNARY)
def test_special_values_of_functions(name: str, device: str) -> None:
    wanted = getattr(np, name)(SPECIAL.astype(np.float64))
    found = getattr(tc, name)(tc.asarray(SPECIAL, device=device))
    check_special(name, found, wanted.astype(np.float32) if wanted.dtype.kind == "f" else wanted)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", SPECIAL)
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_functions_of_two(name: str, first: float, device: str) -> None:
    function = getattr(np, name)
    wanted = (
        function(first, SPECIAL) if name == "nextafter" else function(np.float64(first), SPECIAL.astype(np.float64))
    )
    found = getattr(tc, name)(tc.asarray(np.float32(first), device=device), tc.asarray(SPECIAL, device=device))
    if (
        name == "floor_divide"
    ):  # NumPy leaves the quotient of an infinity by a finite number NaN; the standard does not ask
        finite = np.isfinite(first) & np.isfinite(SPECIAL) & (SPECIAL != 0)
        check_special(name, found[tc.asarray(finite, device=device)], wanted.astype(np.float32)[finite])
        return
    check_special(name, found, wanted.astype(np.float32) if wanted.dtype.kind == "f" else wanted)


xps = make_strategies_namespace(tc, api_version="2023.12")
INTEGERS = [tc.int8, tc.int16, tc.int32, tc.int64, tc.uint8]


@pytest.mark.parametrize(
    "name",
    [
        "add",
        "subtract",
        "multiply",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "less",
        "equal",
        "maximum",
        "floor_divide",
    ],
)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_that_hypothesis_makes_for_the_namespace(data: Any, name: str) -> None:
    one, other = data.draw(st.sampled_from(INTEGERS)), data.draw(st.sampled_from(INTEGERS))
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=4)).input_shapes
    x, y = data.draw(xps.arrays(one, shapes[0])), data.draw(xps.arrays(other, shapes[1]))
    if name == "floor_divide":
        y[y == 0] = 1
    found, wanted = getattr(tc, name)(x, y), getattr(np, name)(x.numpy(), y.numpy())
    assert found.numpy().dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found.numpy(), wanted)
    key = data.draw(xps.indices(found.shape, allow_newaxis=True))
    np.testing.assert_array_equal(found[key].numpy(), wanted[key])
