# SPDX-License-Identifier: Apache-2.0
"""concat, stack and split against NumPy, for arrays of every framework."""

from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

A = np.arange(6, dtype=np.int16).reshape(2, 3)
DEVICES = [d for d in tc.devices() if d != "simt"] + [d for d in tc.devices() if d == "simt"]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_join_as_in_numpy(axis: int) -> None:
    for parts in ([A, A + 10, A.T.copy().T], [A[:, ::2], A[:, ::2]], [A]):
        np.testing.assert_array_equal(tc.concat(parts, axis), np.concatenate(parts, axis))
        np.testing.assert_array_equal(tc.stack(parts, axis), np.stack(parts, axis))


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_stay_tensors_on_their_device(device: str) -> None:
    x = tc.asarray(A, device=device)
    joined = tc.concat([x, x[:1], x[::2]], axis=0)
    assert isinstance(joined, tc.Tensor) and joined.device == device
    np.testing.assert_array_equal(joined.to("cpu").numpy(), np.concatenate([A, A[:1], A[::2]]))
    np.testing.assert_array_equal(tc.stack([x] * 20, axis=2).to("cpu").numpy(), np.stack([A] * 20, axis=2))


def test_lists_numbers_and_many_arrays() -> None:
    np.testing.assert_array_equal(tc.stack([1.0, 2.0]), np.float32([1, 2]))
    np.testing.assert_array_equal(tc.concat([[1, 2], [3]]), [1, 2, 3])
    np.testing.assert_array_equal(tc.concat([A] * 33), np.concatenate([A] * 33))


def test_out_is_written_and_returned() -> None:
    out = np.zeros((4, 3), np.int16)
    assert tc.concat([A, A], out=out) is out
    np.testing.assert_array_equal(out, np.concatenate([A, A]))
    line = np.zeros(2, np.int16)
    assert tc.stack([A[0, 0], A[1, 1]], out=line) is line
    np.testing.assert_array_equal(line, [0, 4])


def test_torch_gets_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(6).reshape(2, 3)
    joined = tc.concat([x, x.T[:, :1].T.expand(2, 3)[:1]], 0)
    assert isinstance(joined, torch.Tensor) and joined.shape == (3, 3)
    assert torch.equal(tc.stack([x, x], 1), torch.stack([x, x], 1))


@pytest.mark.parametrize("make", [np.asarray, tc.asarray])
def test_split_gives_views(make: Any) -> None:
    memory = np.arange(24).reshape(4, 6)
    x = make(memory)
    for how, axis in ((2, 0), (3, 1), ([1, 3], 0), ([2, -1, 9], 1), ((), -1), ([3, 1], 0)):
        parts = tc.split(x, how, axis)
        wanted = np.split(memory, how, axis)
        assert len(parts) == len(wanted)
        for part, right in zip(parts, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(part), right)
    before = memory[0, 0]
    first = tc.split(x, 2)[0]
    first[0, 0] = before + 5
    assert memory[0, 0] == before + 5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tc.concat([]), ValueError, "concat: arrays: expected at least one"),
        (lambda: tc.concat(A), TypeError, "concat: arrays must be a list or tuple of arrays, got ndarray"),
        (lambda: tc.concat([A, A > 0]), TypeError, "concat: no dtype is common to int16 and bool"),
        (
            lambda: tc.concat([A, A[:, :2]]),
            ValueError,
            r"arrays\[1\]: shape \(2, 2\) does not go with \(2, 3\) along axis 0",
        ),
        (lambda: tc.concat([A, A[0]], 1), ValueError, r"arrays\[1\]: shape \(3,\) does not go"),
        (lambda: tc.stack([A, A[:1]]), ValueError, r"arrays\[1\]: shape \(1, 3\)"),
        (lambda: tc.concat([A], axis=2), ValueError, r"concat: axis must be in \[-2, 2\), got 2"),
        (lambda: tc.concat([A], axis=0.5), TypeError, "concat: axis must be an integer, got float"),
        (lambda: tc.concat([1.0]), ValueError, "expected at least 1 dimension"),
        (lambda: tc.concat([A, A], out=np.zeros((2, 3), np.int16)), ValueError, "out: expected shape"),
        (lambda: tc.concat([tc.asarray(A, device="cpu"), tc.asarray(A, device="simt")]), ValueError, "Device mismatch"),
        (lambda: tc.split(A, 4), ValueError, "split: sections must divide axis 0 with size 2, got 4"),
        (lambda: tc.split(A, "x"), TypeError, "indices_or_sections must be an integer, got str"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_out_must_lie_apart() -> None:
    x = np.arange(8, dtype=np.int16)
    with pytest.raises(ValueError, match=r"out overlaps the memory of arrays\[1\]"):
        tc.concat([A[0, :1], x[:7]], out=x)
    np.testing.assert_array_equal(x, np.arange(8))
