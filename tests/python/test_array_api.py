# SPDX-License-Identifier: Apache-2.0
"""The package against the array API standard: names and signatures, dtypes, special cases, and values as NumPy's."""

import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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


# ---- elementwise functions at their special values, and by hypothesis' own strategies for array API namespaces

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 7.5, -7.5, np.inf, -np.inf, np.nan], np.float32
)
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
