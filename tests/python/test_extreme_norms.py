"""Norms of rows whose squares a float32 cannot hold, against sums in double precision."""

import numpy as np
import pytest
import tensorcraft as tc

FACTORS = {"huge": 3e37, "tiny": 1e-36}
LENGTHS = [4, 33, 384, 1025, 4096, 8192, 9216, 40960]


def rows_of(dtype, cols, factor):
    """Ordinary rows with such of that magnitude between them, as a tensor and as doubles."""
    values = np.random.default_rng(cols).uniform(-4, 4, (5, cols))
    values[1::2] *= factor
    x = tc.asarray(values.astype(np.float32)).astype(dtype)
    return x, np.asarray(x.astype("float32")).astype(np.float64)


def close(actual, expected, dtype):
    tolerance = 2e-5 if dtype == "float32" else 1.6e-2
    np.testing.assert_allclose(np.asarray(actual.to("cpu").astype("float32")), expected, rtol=tolerance, atol=tolerance)


def each_variant(name, x, device, **options):
    """The result of each variant of the device that runs the call, but of `reference`."""
    kind = {"cpu": "cpu", "simt": "cuda"}[device]
    ran = 0
    for variant in tc.ops()[name].variants:
        if variant.device != kind or variant.name == "reference":
            continue
        try:
            result = getattr(tc, name)(x.to(device), variant=variant.name, **options)
        except NotImplementedError:  # it declines the call
            continue
        ran += 1
        yield result
    assert ran


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", FACTORS)
@pytest.mark.parametrize("cols", LENGTHS)
def test_rows_of_last_axis(cols, size, dtype, device):
    x, v = rows_of(dtype, cols, FACTORS[size])
    eps = 1e-5 if size == "huge" else 0.0
    for y in each_variant("rms_norm", x, device, eps=eps):
        close(y, v / np.sqrt((v**2).mean(1, keepdims=True) + eps), dtype)
    for y in each_variant("layer_norm", x, device, eps=eps):
        d = v - v.mean(1, keepdims=True)
        close(y, d / np.sqrt((d**2).mean(1, keepdims=True) + eps), dtype)
