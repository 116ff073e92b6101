# SPDX-License-Identifier: Apache-2.0
"""tc.elementwise as Python calls it, and the operators of tc.Tensor that came with it."""

import operator
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

G = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)
U = np.cos(G)


def test_an_expression_equals_the_sequence_of_operators() -> None:
    expected = tc.add(tc.multiply(tc.silu(G, device="cpu"), U, device="cpu"), 0.5, device="cpu")
    got = tc.elementwise("silu(g) * u + b", g=G, u=U, b=0.5, device="cpu")
    assert isinstance(got, np.ndarray) and got.dtype == np.float32 and np.array_equal(got, expected)


def test_numbers_keep_their_kind() -> None:
    n = np.arange(5, dtype=np.int32)
    assert tc.elementwise("n * k", n=n, k=2, device="cpu").dtype == np.int32
    assert tc.elementwise("n * k", n=n, k=2.0, device="cpu").dtype == np.float32
    assert tc.elementwise("where(k, n, 0)", n=n, k=True, device="cpu").tolist() == n.tolist()
    exact = tc.elementwise("x * k", x=np.ones(1, np.float32), k=0.1, device="cpu")
    assert exact[0] == np.float32(0.1)


def test_out_out_dtype_and_variant() -> None:
    out = np.empty_like(G)
    assert tc.elementwise("g ** 2", g=G, out=out, device="cpu") is out and np.array_equal(out, G * G)
    half = tc.elementwise("g > 0", g=G, out_dtype=tc.float16, variant="reference", device="cpu")
    assert half.dtype == np.float16 and np.array_equal(half, (G > 0).astype(np.float16))
    tc.elementwise("g + 1", g=out, out=out, device="cpu")
    assert np.array_equal(out, G * G + 1)


def test_tensors_of_the_library_give_tensors() -> None:
    x = tc.asarray(G, dtype=tc.bfloat16, device="cpu")
    y = tc.elementwise("float32(x) / 2", x=x)
    assert isinstance(y, tc.Tensor) and y.dtype == tc.float32 and y.device == "cpu"


@pytest.mark.parametrize(
    ("kind", "text", "operands", "message"),
    [
        (
            ValueError,
            "silu(g) * q",
            {"g": G},
            "unknown name 'q' in the expression; there are g (column 11)\n  silu(g) * q\n            ^",
        ),
        (TypeError, "exp(n)", {"n": np.arange(3)}, "exp takes a float dtype, got int64"),
        (ValueError, "g", {"g": G, "k": 1}, "argument k is not in the expression"),
        (ValueError, "k", {"k": 1}, "takes 1 to 8 arrays as keyword arguments, got 0"),
        (
            ValueError,
            "+".join("abcdefghi"),
            {c: G for c in "abcdefghi"},
            "takes 1 to 8 arrays as keyword arguments, got 9",
        ),
        (ValueError, "g", {"a,b": G}, "'a,b' is not a name"),
        (ValueError, "g * k", {"g": G, "k": 2**70}, "k does not fit 64 bits"),
        (ValueError, "g + u", {"g": G, "u": np.ones(5, np.float32)}, "elementwise: u: shapes"),
    ],
)
def test_errors_say_what_is_wrong(kind: type[Exception], text: str, operands: dict[str, Any], message: str) -> None:
    with pytest.raises(kind) as error:
        tc.elementwise(text, device="cpu", **operands)
    assert message in str(error.value) and isinstance(error.value, tc.errors.Error)


def test_explain_takes_the_same_arguments() -> None:
    found = tc.explain("elementwise", "silu(g) * u + b", g=G, u=U, b=0.5, device="cpu")
    assert found.variant == "cpu" and [v.name for v in found.variants] == ["cpu", "reference"]
    gpu = tc.explain("elementwise", "silu(g) * u + b", arch="sm_90a", g=G, u=U, b=0.5, device="cpu")
    assert [v.name for v in gpu.variants] == ["fused", "strided", "naive"]


def test_the_simt_device_interprets() -> None:
    if "simt" not in tc.devices():
        pytest.skip("built without the emulator")
    got = tc.elementwise("silu(g) * u + 0.5", g=G, u=U, device="simt")
    assert np.array_equal(got, tc.add(tc.multiply(tc.silu(G, device="simt"), U, device="simt"), 0.5, device="simt"))


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "pow"])
def test_tensors_have_the_operators_of_numpy(name: str) -> None:
    function = getattr(operator, name)
    a, b = np.array([1.0, 2.0, 3.0], np.float32), np.array([2.0, 2.0, 2.0], np.float32)
    x = tc.asarray(a, device="cpu")
    for ours, theirs in (
        (function(x, b), function(a, b)),
        (function(x, 2), function(a, 2)),
        (function(2, x), function(2, a)),
    ):
        assert ours.tolist() == theirs.tolist()


def test_abs_hash_and_truth_of_tensors() -> None:
    x = tc.asarray([-1.0, 2.0], device="cpu")
    assert abs(x).tolist() == [1.0, 2.0] and (x == None) is False and len({x, x}) == 1
    assert bool(tc.asarray([2.0], device="cpu") == 2)
    assert tc.where(x > 0, x, 0).tolist() == [0.0, 2.0]
    assert tc.clip(x, 0, 1).tolist() == [0.0, 1.0] and tc.clip(x, max=0).tolist() == [-1.0, 0.0]
