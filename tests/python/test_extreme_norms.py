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


def each_variant(name, arrays, device, **options):
    """The result of each variant of the device that runs the call, but of `reference`."""
    kind = {"cpu": "cpu", "simt": "cuda"}[device]
    places = [a.to(device) for a in (arrays if isinstance(arrays, tuple) else (arrays,))]
    ran = 0
    for variant in tc.ops()[name].variants:
        if variant.device != kind or variant.name == "reference":
            continue
        try:
            result = getattr(tc, name)(*places, variant=variant.name, **options)
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


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", FACTORS)
@pytest.mark.parametrize("cols", LENGTHS)
def test_vectors_get_length_1(cols, size, dtype, device):
    x, v = rows_of(dtype, cols, FACTORS[size])
    for y in each_variant("l2_normalize", x, device, eps=0.0):
        close(y, v / np.sqrt((v**2).sum(1, keepdims=True)), dtype)


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", FACTORS)
@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (2, 16), (4, 64), (3, 55), (32, 400)])
def test_groups_of_channels(shape, size, dtype, device):
    channels, spatial = shape[0] * 2, shape[1] * 4
    x, v = rows_of(dtype, channels * spatial, FACTORS[size])
    v = v.reshape(5, 2, -1)
    eps = 1e-5 if size == "huge" else 0.0
    d = v - v.mean(2, keepdims=True)
    expected = (d / np.sqrt((d**2).mean(2, keepdims=True) + eps)).reshape(5, channels, spatial)
    for y in each_variant("group_norm", x.reshape(5, channels, spatial), device, num_groups=2, eps=eps):
        close(y, expected, dtype)


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("size", FACTORS)
@pytest.mark.parametrize("shape", [(7, 3), (8, 16), (2, 1025), (64, 128)])
def test_channels_in_training_and_back(shape, size, dtype, device):
    batch, spatial = shape
    x, v = rows_of(dtype, batch * spatial, FACTORS[size])
    x = tc.asarray(np.asarray(x.astype("float32")).reshape(5, batch, spatial).swapaxes(0, 1).copy()).astype(dtype)
    eps = 1e-5 if size == "huge" else 0.0
    d = v - v.mean(1, keepdims=True)
    deviation = np.sqrt((d**2).mean(1, keepdims=True) + eps)
    xhat = d / deviation
    expected = xhat.reshape(5, batch, spatial).swapaxes(0, 1)
    grad, g = rows_of(dtype, batch * spatial + 1, 1)
    g = g[:, :-1]
    grad = tc.asarray(g.reshape(5, batch, spatial).swapaxes(0, 1).astype(np.float32)).astype(dtype)
    product = (g * xhat).mean(1, keepdims=True)
    back = (g - g.mean(1, keepdims=True) - xhat * product) / deviation
    means, rstds = (tc.asarray(a.ravel().astype(np.float32)) for a in (v.mean(1), 1 / deviation))
    running = {"running_mean": np.zeros(5, np.float32), "running_var": np.ones(5, np.float32)}
    for result in each_variant("batch_norm", x, device, training=True, eps=eps, **running):
        close(result[0], expected, dtype)
        np.testing.assert_allclose(np.asarray(result[1].to("cpu")), v.mean(1), rtol=2e-5, atol=1e-6 * deviation.max())
        np.testing.assert_allclose(np.asarray(result[2].to("cpu")), 1 / deviation.ravel(), rtol=2e-5)
    options = {"mean": means.to(device), "rstd": rstds.to(device)}
    for gx, gw, _ in each_variant("batch_norm_backward", (grad, x), device, **options):
        values = np.asarray(gx.to("cpu").astype("float32")).astype(np.float64).swapaxes(0, 1).reshape(5, -1)
        np.testing.assert_allclose(values * deviation, back * deviation, atol=1e-4 if dtype == "float32" else 6e-2)
        np.testing.assert_allclose(
            np.asarray(gw.to("cpu").astype("float32")),
            (g * xhat).sum(1),
            rtol=1e-3 if dtype == "float32" else 2e-2,
            atol=2e-2,
        )


@pytest.mark.parametrize("device", ["cpu", "simt"])
def test_rows_of_the_issue(device):
    f = lambda *row: tc.asarray(np.float32([row])).to(device)
    value = lambda t: np.asarray(t.to("cpu"))[0]
    np.testing.assert_allclose(
        value(tc.rms_norm(f(3e19, 4e19, -1e19, 2e19))), [1.0954451, 1.4605935, -0.3651484, 0.7302967], rtol=1e-6
    )
    np.testing.assert_array_equal(value(tc.layer_norm(f(3e38, 3e38))), [0, 0])
    np.testing.assert_allclose(
        value(tc.layer_norm(f(3e38, -3e38, 0, 1))), [2**0.5, -(2**0.5), 0, 0], rtol=1e-6, atol=1e-37
    )
    assert np.isnan(value(tc.layer_norm(f(1, np.inf, 3e38, 2)))).all()
    assert np.isnan(value(tc.rms_norm(f(1, np.nan, 3e38, 2)))).all()


@pytest.mark.parametrize("device", ["cpu", "simt"])
@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_other_forms(name, device):
    x, v = rows_of("float32", 384, FACTORS["huge"])
    d = v * 2 - (v * 2).mean(1, keepdims=True) if name == "layer_norm" else v * 2
    rstd = 1 / np.sqrt((d**2).mean(1) + 1e-5)
    place, norm = x.to(device), getattr(tc, name)
    result = norm(place, residual=place, **({"return_stats": True} if name == "layer_norm" else {}))
    close(result[0], d * rstd[:, None], "float32")
    if name == "layer_norm":
        np.testing.assert_allclose(np.asarray(result.rstd.to("cpu")), rstd, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(result.mean.to("cpu")), (v * 2).mean(1), rtol=1e-5)
    for result in each_variant(name, x, device, residual=place, out_dtype="int8", per_token=True):
        codes, scales = np.asarray(result[0].to("cpu")), np.asarray(result.scales.to("cpu"))
        np.testing.assert_allclose(codes * scales[:, None], d * rstd[:, None], atol=scales.max())
    for y in each_variant(name, x, device, out=None):  # and in place, for the longest walk
        assert np.isfinite(np.asarray(y.to("cpu"))).all()
    copy = place.copy()
    norm(copy, out=copy)
    one = v - v.mean(1, keepdims=True) if name == "layer_norm" else v
    close(copy, one / np.sqrt((one**2).mean(1, keepdims=True) + 1e-5), "float32")
