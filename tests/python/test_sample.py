# SPDX-License-Identifier: Apache-2.0
"""sample takes its settings as numbers, lists, or arrays with one for each row."""

import numpy as np
import pytest

import tensorcraft as tc

LOGITS = np.random.default_rng(1).standard_normal((4, 300)).astype(np.float32)


def test_settings_are_numbers_or_arrays(device: str) -> None:
    x = tc.asarray(LOGITS, device=device)
    whole = np.asarray(tc.sample(x, temperature=0.7, top_k=20, top_p=0.9, min_p=0.01, seed=5, offset=6))
    each = {"temperature": [0.7] * 4, "top_k": [20] * 4, "top_p": [0.9] * 4, "min_p": [0.01] * 4, "offset": [6] * 4}
    if not device.startswith("cuda"):  # there a host array beside a device array is refused
        np.testing.assert_array_equal(np.asarray(tc.sample(x, **each, seed=5)), whole)
    arrays = {
        name: tc.asarray(np.asarray(v, np.int64 if isinstance(v[0], int) else np.float32), device=device)
        for name, v in each.items()
    }
    np.testing.assert_array_equal(
        np.asarray(tc.sample(x, **arrays, seed=tc.asarray(np.int64(5), device=device))), whole
    )
    np.testing.assert_array_equal(np.asarray(tc.sample(x, **arrays, seed=np.int64(5))), whole)


def test_every_device_draws_the_same(device: str) -> None:
    wanted = tc.sample(LOGITS, top_p=0.8, seed=3, device="cpu")
    assert isinstance(wanted, np.ndarray) and wanted.dtype == np.int64
    np.testing.assert_array_equal(np.asarray(tc.sample(LOGITS, top_p=0.8, seed=3, device=device)), wanted)


def test_a_seed_for_each_row_goes_with_the_row(device: str) -> None:
    seeds = [11, 12, 13, 14]
    whole = np.asarray(tc.sample(LOGITS, seed=seeds, device=device))
    back = np.asarray(tc.sample(LOGITS[::-1].copy(), seed=seeds[::-1], device=device))
    np.testing.assert_array_equal(back[::-1], whole)
    equal = np.zeros((64, 1000), np.float32)
    assert len(set(np.asarray(tc.sample(equal, seed=1, device=device)).tolist())) > 50, "rows of one seed draw apart"
    assert len(set(np.asarray(tc.sample(equal, seed=[1] * 64, device=device)).tolist())) == 1


def test_what_does_not_fit_is_refused(device: str) -> None:
    x = tc.asarray(LOGITS, device=device)
    with pytest.raises(
        ValueError, match="sample: top_p must be above 0 and at most 1; leave it out to keep all, got 0"
    ):
        tc.sample(x, top_p=0)
    with pytest.raises(ValueError, match=r"sample: top_k: expected a number, or a tensor of shape \(\) or "):
        tc.sample(x, top_k=tc.asarray([1, 2], device=device))
    with pytest.raises(TypeError, match="sample: temperature must not be None; leave it out for 1.0"):
        tc.sample(x, temperature=None)
    with pytest.raises(TypeError, match="sample: seed must be a number or a tensor, got a bool"):
        tc.sample(x, seed=True)
    with pytest.raises(
        TypeError, match=r"sample: top_k: Dtype value \[float32\] not in the allowed options: \[int32, int64\]"
    ):
        tc.sample(x, top_k=tc.asarray(np.ones(4, np.float32), device=device))
