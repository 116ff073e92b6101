# SPDX-License-Identifier: Apache-2.0
"""Operators on device="simt": the GPU's kernels in host memory."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tensorcraft as tc

pytestmark = pytest.mark.skipif("simt" not in tc.devices(), reason="built without the emulator")


def integers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(1).integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("variant", ["naive", "coalesced", "block_tiled", "thread_tiled", "vectorized", "tensor_core"])
def test_every_rung_by_name_on_numpy_arrays(variant: str) -> None:
    a, b = integers(70, 40, dtype="float16"), integers(40, 72, dtype="float16")
    d = tc.gemm(a, b, variant=variant, device="simt")
    assert isinstance(d, np.ndarray) and d.dtype == np.float16
    np.testing.assert_array_equal(d, a.astype(np.float64) @ b)


@pytest.mark.parametrize(
    ("variant", "dtype"),
    [("tiled", "float32"), ("double_buffer", "float32"), ("async", "float32"), ("swizzled", "float16"), ("tma", "float16"), ("persistent", "float16")],
)  # fmt: skip
def test_later_rungs_and_old_names(variant: str, dtype: str) -> None:
    a, b = integers(70, 64, dtype=dtype), integers(64, 72, dtype=dtype)
    np.testing.assert_array_equal(tc.gemm(a, b, variant=variant, device="simt"), a.astype(np.float64) @ b)


def test_a_name_that_there_is_not_is_answered_by_those_that_there_are() -> None:
    with pytest.raises(ValueError, match='no variant is named "tilde".*block_tiled.*naive'):
        tc.gemm(integers(2, 2), integers(2, 2), variant="tilde", device="simt")


def test_writes_into_a_given_array_of_any_strides() -> None:
    x, out = integers(5, 33), np.full((5, 66), 7, np.float32)
    assert tc.relu(x, out=out[:, ::2], device="simt") is not None
    np.testing.assert_array_equal(out[:, ::2], np.maximum(x, 0))
    assert (out[:, 1::2] == 7).all()


def test_tensors_stay_on_the_device() -> None:
    x = tc.asarray(integers(3, 8), device="simt")
    assert x.device == "simt"
    y = tc.softmax(x)
    assert y.device == "simt"
    np.testing.assert_allclose(y.numpy(), tc.softmax(x.numpy(), device="cpu"), rtol=1e-6)
    np.testing.assert_array_equal(np.from_dlpack(y), y.numpy())
    assert y.to("cpu").device == "cpu"
    np.testing.assert_array_equal(y.to("cpu").numpy(), y.numpy())
    assert tc.empty((2, 3), "float32", device="simt").device == "simt"


def test_numpy_shares_the_memory() -> None:
    x = tc.asarray(integers(4), device="simt")
    x.numpy()[:] = 5
    np.testing.assert_array_equal(tc.add(x, 1).numpy(), np.full(4, 6, np.float32))


def test_arrays_of_the_host_join_tensors_of_simt() -> None:
    x = integers(3, 8)
    y = tc.add(tc.asarray(x, device="simt"), x)
    assert y.device == "simt"
    np.testing.assert_array_equal(y.numpy(), 2 * x)


def test_a_tensor_of_another_device_is_refused() -> None:
    x = integers(3)
    with pytest.raises(ValueError, match=r"Device mismatch: expected simt but got cpu; move it with .to\(\"simt\"\)"):
        tc.add(tc.asarray(x, device="simt"), tc.asarray(x, device="cpu"))
    with pytest.raises(ValueError, match='device="simt" contradicts an array on cpu'):
        tc.relu(tc.asarray(x, device="cpu"), device="simt")


def test_a_variant_of_the_cpu_does_not_run_there() -> None:
    with pytest.raises(NotImplementedError, match="reference: runs on cpu, and these tensors are on simt; move them to the CPU"):
        tc.relu(integers(3), variant="reference", device="simt")


def test_several_outputs_and_bfloat16() -> None:
    x = tc.astype(tc.asarray(integers(4, 32), device="simt"), "bfloat16")
    result = tc.layer_norm(x, return_stats=True)
    np.testing.assert_allclose(result.mean.numpy(), integers(4, 32).mean(axis=1), atol=1e-6)


def test_the_environment_makes_it_the_default() -> None:
    code = "import numpy as np, tensorcraft as tc; print(tc.default_device(), tc.exp(np.zeros(3, np.float32)))"
    environment = {**os.environ, "TENSORCRAFT_DEVICE": "simt"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "simt [1. 1. 1.]\n", done.stderr


def test_it_is_listed_last() -> None:
    assert tc.devices()[0] == "cpu" and tc.devices()[-1] == "simt"
