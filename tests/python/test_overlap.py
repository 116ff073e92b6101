# SPDX-License-Identifier: Apache-2.0
"""Views of one buffer: what is apart is written, what overlaps is read first or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

DEVICES = ["cpu", *(d for d in tc.devices() if d == "simt")]
HALVES = [
    (np.s_[..., :2], np.s_[..., 2:]),
    (np.s_[..., ::2], np.s_[..., 1::2]),
    (np.s_[:3], np.s_[3:]),
    (np.s_[:, 1:3], np.s_[:, ::3]),
]


def counting(*shape: int) -> Any:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def parts(x: Any, device: str, *keys: Any) -> tuple[Any, ...]:
    """A tensor of `x`, and views of it; NumPy's reversal has no view in a Tensor."""
    whole = tc.asarray(x.copy(), device=device, copy=True)
    return (whole, *(whole[k] for k in keys))


def host(t: Any) -> Any:
    return t.to("cpu").numpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("low, high", HALVES)
@pytest.mark.parametrize(
    "write, reads",
    [
        (lambda a, b: tc.relu(a, out=b), lambda x: x),
        (lambda a, b: tc.copy(a, out=b), lambda x: x),
        (lambda a, b: tc.add(a, a, out=b), lambda x: x + x),
        (lambda a, b: tc.multiply(b, a, out=b), None),
        (lambda a, b: tc.elementwise("g * 3", g=a, out=b), lambda x: x * 3),
        (lambda a, b: tc.astype(a, tc.float32, out=b), lambda x: x),
    ],
)
def test_one_half_is_written_from_the_other(device: str, low: Any, high: Any, write: Any, reads: Any) -> None:
    x = counting(6, 4)
    for source, target in ((low, high), (high, low)):
        whole, a, b = parts(x, device, source, target)
        expected = x.copy()
        expected[target] = x[source] * x[target] if reads is None else reads(x[source])
        write(a, b)
        np.testing.assert_array_equal(host(whole), expected)


@pytest.mark.parametrize("device", DEVICES)
def test_rope_turns_slices_of_a_packed_projection_in_place(device: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 5, 8, 16)).astype(np.float32)
    whole, q, k, v = parts(x, device, np.s_[:, :, :4], np.s_[:, :, 4:6], np.s_[:, :, 6:])
    tc.rope(q, start_pos=3, out=q)
    tc.rope(k, start_pos=3, out=k)
    expected = [
        host(tc.rope(tc.asarray(x[:, :, s], device=device, copy=True), start_pos=3)) for s in (np.s_[:4], np.s_[4:6])
    ]
    np.testing.assert_array_equal(host(whole), np.concatenate([*expected, x[:, :, 6:]], 2))
    tc.copy(k, out=v)
    np.testing.assert_array_equal(host(v), host(k))


@pytest.mark.parametrize("device", DEVICES)
def test_norms_and_sums_write_a_slice_beside_their_input(device: str) -> None:
    x = np.random.default_rng(2).standard_normal((6, 64)).astype(np.float32)
    weight = np.ones(32, np.float32)
    for f in (
        lambda t, **k: tc.rms_norm(t, weight=tc.asarray(weight, device=device), **k),
        lambda t, **k: tc.softmax(t, **k),
    ):
        whole, a, b = parts(x, device, np.s_[:, :32], np.s_[:, 32:])
        expected = host(f(tc.asarray(x[:, :32], device=device, copy=True)))
        f(a, out=b)
        np.testing.assert_array_equal(host(whole), np.concatenate([x[:, :32], expected], 1))


@pytest.mark.parametrize("device", DEVICES)
def test_in_place_operators_give_what_numpy_gives(device: str) -> None:
    x = counting(5, 5)
    cases = {
        "the transpose": (lambda t: t.__iadd__(t.T), lambda t: t.__iadd__(t.T)),
        "rows before": (lambda t: t[1:].__iadd__(t[:-1]), lambda t: t[1:].__iadd__(t[:-1])),
        "rows after": (lambda t: t[:-1].__imul__(t[1:]), lambda t: t[:-1].__imul__(t[1:])),
        "one row": (lambda t: t.__isub__(t[2]), lambda t: t.__isub__(t[2])),
        "one column": (lambda t: t.__itruediv__(t[:, 1:2]), lambda t: t.__itruediv__(t[:, 1:2])),
        "itself": (lambda t: t.__iadd__(t), lambda t: t.__iadd__(t)),
    }
    for name, (ours, theirs) in cases.items():
        t, expected = tc.asarray(x.copy(), device=device, copy=True), x.copy()
        ours(t)
        theirs(expected)
        np.testing.assert_allclose(host(t), expected, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("device", DEVICES)
def test_out_may_be_one_operand_and_lie_across_another(device: str) -> None:
    x = counting(5, 4)
    whole, a, b = parts(x, device, np.s_[1:], np.s_[:-1])
    tc.add(a, b, out=a)
    np.testing.assert_array_equal(host(whole)[1:], x[1:] + x[:-1])
    whole, a, b = parts(x, device, np.s_[1:], np.s_[:-1])
    tc.elementwise("g * u + 1", g=a, u=b, out=a)
    np.testing.assert_array_equal(host(whole)[1:], x[1:] * x[:-1] + 1)


@pytest.mark.parametrize("device", DEVICES)
def test_a_cumulative_sum_may_replace_what_it_sums(device: str) -> None:
    x = counting(3, 70)
    t = tc.asarray(x.copy(), device=device, copy=True)
    tc.cumulative_sum(t, 1, out=t)
    np.testing.assert_allclose(host(t), np.cumsum(x, 1), rtol=1e-6)


def test_what_overlaps_otherwise_is_refused() -> None:
    t = tc.asarray(counting(4, 4))
    with pytest.raises(
        ValueError, match="softmax: out overlaps the memory of x; they must be the same tensor or apart"
    ):
        tc.softmax(t, out=t.T)
    with pytest.raises(ValueError, match="relu: out overlaps the memory of x"):
        tc.relu(t[:3], out=t[1:])
    with pytest.raises(ValueError, match="cumulative_sum: out overlaps the memory of x"):
        tc.cumulative_sum(t[:3], 1, out=t[1:])
    np.testing.assert_array_equal(t.numpy(), counting(4, 4))


def test_what_cannot_be_decided_may_overlap() -> None:
    # Strides without a common divisor: whether they lead to an element is a long search.
    memory = np.zeros(40000, np.float32)
    strides = [4 * s for s in (1007, 1009, 1013, 1019, 1021, 1031, 1033, 1039)]
    knot = np.lib.stride_tricks.as_strided(memory, (5,) * 8, strides)
    with pytest.raises(ValueError, match="sum: out may overlap the memory of x; give it memory of its own"):
        tc.sum(knot, out=memory[16 * 1007 + 1 :][:1].reshape(()), device="cpu")


def test_the_dtype_that_an_argument_takes_is_named() -> None:
    x = np.ones((3, 4), np.float32)
    ids = np.array([0.0, 1.0])
    with pytest.raises(
        TypeError, match=r"embedding: ids: dtype float64 .*int32 or int64; tc.asarray\(ids, dtype=tc.int32\) does too"
    ):
        tc.embedding(ids, x)
    with pytest.raises(TypeError, match=r"softmax: x: dtype float64 .*tc.asarray\(x, dtype=tc.float32\) does too"):
        tc.softmax(x.astype(float))
    with pytest.raises(
        TypeError, match=r"take: indices: Dtype value \[float32\] .*; tc.astype\(indices, tc.int32\) converts it"
    ):
        tc.take(x, ids.astype("f4"), axis=0)


def test_texts_show_the_shapes_and_strides() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match=r"expected 3 but got 2 \(k is a.shape\[1\]\); a is \[2, 3\], b is \[2, 3\]"):
        tc.gemm(x, x)
    with pytest.raises(
        ValueError, match=r"rms_norm: weight: Tensor is not contiguous as expected; strides \[2\], pass weight.copy\(\)"
    ):
        tc.rms_norm(x, np.ones(6, np.float32)[::2])
    with pytest.raises(
        ValueError,
        match=r"softmax: out: Size mismatch for shape#1: expected 3 but got 2; out is \[2, 2\], expected \[2, 3\]",
    ):
        tc.softmax(x, out=np.empty((2, 2), np.float32))
    with pytest.raises(ValueError, match="device, out, out_dtype, stream and variant are keywords of every"):
        tc.elementwise("device * 2", device=x)


def test_key_lengths_may_be_a_list_or_of_64_bits() -> None:
    rng = np.random.default_rng(3)
    q, k = (rng.standard_normal((2, 1, n, 32)).astype(np.float32) for n in (4, 16))
    expected = tc.attention(q, k, k, causal=True, key_lengths=np.array([6, 3], np.int32))
    for lengths in ([6, 3], np.array([6, 3])):
        np.testing.assert_array_equal(tc.attention(q, k, k, causal=True, key_lengths=lengths), expected)
