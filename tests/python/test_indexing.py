# SPDX-License-Identifier: Apache-2.0
"""Keys with arrays, masks and negative steps: reading and writing as NumPy does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorcraft as tc

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
V = np.array([3, -1, 2, 0, 2], np.int64)


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
    arrays = [k for k in (key if isinstance(key, tuple) else (key,)) if isinstance(k, np.ndarray)]
    if wanted.ndim + len(arrays) > 8:  # on the way a tensor may have an axis for each array
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
