# SPDX-License-Identifier: Apache-2.0
"""Several GPUs in one process. Skipped where there are fewer than two."""

import threading
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

GPUS = [str(d) for d in tc.devices() if str(d).startswith("cuda")]
pytestmark = pytest.mark.skipif(len(GPUS) < 2, reason="needs two GPUs")


def forward(device: str, seed: int) -> list[np.ndarray]:
    """A few operators on one device; kernels are compiled and loaded there."""
    random = np.random.default_rng(seed)
    x = tc.asarray(random.standard_normal((64, 384), dtype=np.float32), device=device)
    w = tc.asarray(random.standard_normal((384, 384), dtype=np.float32), device=device)
    h = tc.gelu(tc.gemm(x, w))
    return [t.numpy() for t in (h, tc.layer_norm(x + h), tc.softmax(h))]


def test_devices_give_the_same_bits() -> None:
    for one, other in zip(forward(GPUS[0], 1), forward(GPUS[1], 1), strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_on_all_devices_at_once() -> None:
    expected = {seed: forward(GPUS[0], seed) for seed in range(4)}
    failures: list[Any] = []

    def work(device: str) -> None:
        try:
            for turn in range(50):
                for got, want in zip(forward(device, turn % 4), expected[turn % 4], strict=True):
                    np.testing.assert_array_equal(got, want)
        except BaseException as error:  # noqa: BLE001  a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=work, args=(d,)) for d in GPUS * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]


def test_results_stay_on_the_device_of_the_arguments() -> None:
    x = tc.ones((4, 8), device=GPUS[1])
    assert str(tc.exp(x).device) == GPUS[1]
    assert str(x.to(GPUS[0]).device) == GPUS[0]


def test_arguments_of_two_devices_are_refused() -> None:
    a, b = tc.ones((4, 8), device=GPUS[0]), tc.ones((4, 8), device=GPUS[1])
    with pytest.raises(ValueError, match=GPUS[1]):
        tc.add(a, b)
