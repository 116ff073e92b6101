# SPDX-License-Identifier: Apache-2.0
"""Products of float8 and int8 with the scales that quantize gives, beside NumPy in float64."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc

M, N, K = 20, 160, 272


def normal(*shape: int, seed: int = 0) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def quantized(x: Any, device: str, **options: Any) -> tuple[tc.Tensor, tc.Tensor]:
    codes, scales = tc.quantize(tc.asarray(x, device=device), **options)
    return codes, scales


def check(got: Any, a: Any, b: Any) -> None:
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    error = np.abs(np.asarray(tc.asarray(got).astype(tc.float32)) - exact)
    assert error.max() < 2.0**-7 * np.abs(exact).max()


@pytest.mark.parametrize("accumulation", ["promoted", "fast"])
def test_one_scale(device: str, accumulation: str) -> None:
    x, w = normal(M, K), normal(N, K, seed=1)
    a, a_scale = quantized(x, device, scheme="tensor")
    b, b_scale = quantized(w, device, scheme="tensor")
    y = tc.gemm(a, b, transpose_b=True, a_scale=a_scale, b_scale=b_scale, accumulation=accumulation)
    assert y.dtype == tc.bfloat16 and y.shape == (M, N)
    check(y, np.asarray(tc.dequantize(a, a_scale)), np.asarray(tc.dequantize(b, b_scale)))


@pytest.mark.parametrize("dtype", [tc.float8_e4m3fn, tc.float8_e5m2, tc.int8])
@pytest.mark.parametrize("out_dtype", [tc.float32, tc.float16, tc.bfloat16])
def test_scales_of_rows_and_columns(device: str, dtype: tc.DType, out_dtype: tc.DType) -> None:
    a, a_scale = quantized(normal(M, K), device, dtype=dtype, scheme="token")
    b, b_scale = quantized(normal(N, K, seed=1), device, dtype=dtype, scheme="token")
    rows, columns = a_scale.reshape((M, 1)), b_scale.reshape((N,))
    y = tc.gemm(a, b, transpose_b=True, a_scale=rows, b_scale=columns, out_dtype=out_dtype)
    assert y.dtype == out_dtype
    x, w = tc.dequantize(a, a_scale, scheme="token"), tc.dequantize(b, b_scale, scheme="token")
    check(y, np.asarray(x), np.asarray(w))


@pytest.mark.parametrize("scale", [3.25, 3])
@pytest.mark.parametrize("dtype", [tc.float8_e4m3fn, tc.int8])
def test_a_scale_may_be_a_number(device: str, dtype: tc.DType, scale: float) -> None:
    codes = tc.asarray(np.arange(-8, 8, dtype=np.float32).reshape(4, 4), device=device).astype(dtype)
    wanted = codes.astype(tc.float32).numpy()
    y = tc.gemm(codes, codes, transpose_b=True, a_scale=scale, b_scale=0.5, out_dtype=tc.float32)
    np.testing.assert_array_equal(y.numpy(), scale * 0.5 * (wanted @ wanted.T))
    np.testing.assert_array_equal(tc.dequantize(codes, scale).numpy(), scale * wanted)
    if dtype != tc.int8:
        starts = tc.asarray(np.array([0, 1, 4], np.int32), device=device)
        b = tc.stack([codes, codes])
        z = tc.grouped_gemm(codes, b, offsets=starts, transpose_b=True, a_scale=scale, out_dtype=tc.float32)
        np.testing.assert_array_equal(z.numpy(), scale * (wanted @ wanted.T))


@pytest.mark.parametrize("block_shape", ["128x128", "1x128"])
def test_scales_of_blocks(device: str, block_shape: str) -> None:
    a, a_scale = quantized(normal(M, K), device, scheme="block")
    b, b_scale = quantized(normal(N, K, seed=1), device, scheme="block", block_shape=block_shape)
    y = tc.gemm(a, b, transpose_b=True, a_scale=a_scale, b_scale=b_scale)
    x = tc.dequantize(a, a_scale, scheme="block")
    w = tc.dequantize(b, b_scale, scheme="block", block_shape=block_shape)
    check(y, np.asarray(x), np.asarray(w))


@pytest.mark.parametrize("dtype", [tc.float8_e4m3fn, tc.float8_e5m2, tc.int8])
@pytest.mark.parametrize("operands", [tc.float8_e4m3fn, tc.bfloat16, tc.int8])
def test_a_quantised_result(device: str, operands: tc.DType, dtype: tc.DType) -> None:
    if (operands == tc.int8) != (dtype == tc.int8) and operands != tc.bfloat16:
        pytest.skip("float8 gives float8, int8 gives int8")
    x, w = (
        tc.asarray(np.rint(normal(*s, seed=i) * 3), device=device).astype(operands)
        for i, s in enumerate([(M, K), (N, K)])
    )
    wide = tc.gemm(x, w, transpose_b=True, out_dtype=tc.float32)
    scale = tc.asarray(0.25, device=device)
    y = tc.gemm(x, w, transpose_b=True, out_dtype=dtype, out_scale=scale)
    assert y.dtype == dtype and y.shape == (M, N)
    want = tc.quantize(wide, dtype=dtype, scheme="tensor", scales=1 / scale)
    np.testing.assert_array_equal(np.asarray(y.astype(tc.float32)), np.asarray(want.astype(tc.float32)))


def test_int8_is_exact(device: str) -> None:
    random = np.random.default_rng(2)
    a, b = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((M, K), (N, K)))
    y = tc.gemm(tc.asarray(a, device=device), tc.asarray(b, device=device), transpose_b=True)
    assert y.dtype == tc.int32
    np.testing.assert_array_equal(np.asarray(y), a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.mark.parametrize("scheme", ["tensor", "token"])
def test_zero_points(device: str, scheme: str) -> None:
    x, w = normal(M, K) + 2, normal(N, K, seed=1)  # ranges that 0 does not halve
    a, a_scale, a_zero = tc.quantize(tc.asarray(x, device=device), dtype=tc.int8, scheme=scheme, asymmetric=True)
    b, b_scale = quantized(w, device, dtype=tc.int8, scheme="token")
    rows = (M, 1) if scheme == "token" else ()
    y = tc.gemm(a, b, transpose_b=True, a_scale=a_scale.reshape(rows), a_zero=a_zero.reshape(rows), b_scale=b_scale.reshape((N,)),
                out_dtype=tc.float32)  # fmt: skip
    u = tc.dequantize(a, a_scale, scheme=scheme, zero_point=a_zero)
    check(y, np.asarray(u), np.asarray(tc.dequantize(b, b_scale, scheme="token")))
    sums = np.asarray(tc.gemm(a, b, transpose_b=True, a_zero=a_zero.reshape(rows)))
    codes = np.asarray(a).astype(np.int32) - np.asarray(a_zero).reshape(rows)
    np.testing.assert_array_equal(sums, codes @ np.asarray(b).astype(np.int32).T)


def test_what_is_refused() -> None:
    a, a_scale = quantized(normal(5, 300), "cpu", scheme="block")
    b = tc.asarray(normal(140, 300), device="cpu").astype(tc.float8_e4m3fn)
    wide = tc.ones((5, 300), device="cpu")
    one = tc.ones((), device="cpu")
    for options, error, said in [
        ({"a_scale": a_scale}, ValueError, "b_scale: expected one for 128 elements of a column of b"),
        ({"a_scale": tc.ones((5, 2), device="cpu")}, ValueError, "a_scale: expected one number"),
        ({"a_scale": one.astype(tc.float16)}, TypeError, "a_scale"),
        ({"accumulation": "slow"}, ValueError, "accumulation"),
        ({"out_dtype": tc.int32}, TypeError, "out_dtype of float8_e4m3fn operands must be"),
        ({"out_scale": one}, ValueError, "out_scale is a factor of results of 8 bits"),
        (
            {"out_scale": tc.ones(2, device="cpu"), "out_dtype": tc.float8_e4m3fn},
            ValueError,
            "out_scale: expected one number",
        ),
    ]:
        with pytest.raises(error, match=said):
            tc.gemm(a, b, transpose_b=True, **options)
    with pytest.raises(TypeError, match="a_zero is a zero point of int8 operands, and a is float32"):
        tc.gemm(wide, wide, transpose_b=True, a_zero=1)
    with pytest.raises(TypeError, match="takes float8 operands, and a is float32"):
        tc.gemm(wide, wide, transpose_b=True, accumulation="fast")
    with pytest.raises(TypeError):
        tc.gemm(a, wide, transpose_b=True)


def test_the_pages_say_which_rung_of_float8_the_launchers_have_alone() -> None:
    """FP8GEMM launches thread_tiled, which takes no float8 in the library; it has no scales, as gemm has."""
    a = tc.ones((64, 64), "float32", "cpu").astype(tc.float8_e4m3fn)
    verdicts = {v.name: v for v in tc.explain("gemm", a, a, transpose_b=True, arch="sm_90a").variants}
    assert verdicts["wgmma"].accepted and not verdicts["thread_tiled"].accepted
    root = Path(__file__).parents[2]
    page = " ".join((root / "docs" / "header_only.md").read_text().split())
    assert "for every launcher but `FP8GEMM`. That one runs `thread_tiled`, which the library's [`gemm` of float8]" in page
    interface = (root / "tensorcraft" / "kernels" / "gemm_interface.cuh").read_text()
    assert "using FP8GEMM = GEMMInterface<e4m3>;" in interface and "scale" not in interface
    readme = " ".join((root / "tensorcraft" / "ops" / "quantize" / "README.md").read_text().split())
    assert "`FP8GEMM` of the [header-only launchers](../../../docs/header_only.md) quantises nothing either, and has no scales." in readme


@pytest.mark.parametrize("dtype", [tc.float8_e4m3fn, tc.int8])
@pytest.mark.parametrize("k", [96, K])  # one block of 128 along k, and several
@pytest.mark.parametrize("of_a", ["tensor", "token"])
@pytest.mark.parametrize("of_b", ["tensor", "token"])
@pytest.mark.parametrize("transposed", [True, False])
def test_scales_fit_as_quantize_gives_them(device: str, dtype: tc.DType, k: int, of_a: str, of_b: str, transposed: bool) -> None:
    """Beside operands as they were quantised, and beside views of them with the axes exchanged."""
    x, w = normal(M, k), normal(N, k, seed=1)
    a, a_scale = quantized(x, device, dtype=dtype, scheme=of_a)
    b, b_scale = quantized(w, device, dtype=dtype, scheme=of_b)
    turn = (lambda t: t) if transposed else (lambda t: t.mT if t.ndim else t)
    y = tc.gemm(a, turn(b), transpose_b=transposed, a_scale=a_scale, b_scale=turn(b_scale), out_dtype=tc.float32)
    u, v = (np.asarray(tc.dequantize(q, s, scheme=how)) for q, s, how in ((a, a_scale, of_a), (b, b_scale, of_b)))
    check(y, u, v)
    across = tc.gemm(a.mT, turn(b), transpose_a=True, transpose_b=transposed, a_scale=a_scale.mT if a_scale.ndim else a_scale,
                     b_scale=turn(b_scale), out_dtype=tc.float32)  # fmt: skip
    check(across, u, v)


@pytest.mark.parametrize("k", [96, K])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(("of_a", "of_b"), [("tensor", "token"), ("token", "token"), ("token", "tensor"), ("block", "block")])
def test_scales_of_groups_fit_as_quantize_gives_them(device: str, k: int, transposed: bool, of_a: str, of_b: str) -> None:
    x, w = normal(3, M, k), normal(3, N, k, seed=1)
    square = {"block_shape": "128x128"} if of_b == "block" else {}
    a, a_scale = quantized(x, device, scheme=of_a)
    b, b_scale = quantized(w, device, scheme=of_b, **square)
    u, v = np.asarray(tc.dequantize(a, a_scale, scheme=of_a)), np.asarray(tc.dequantize(b, b_scale, scheme=of_b, **square))
    turn = (lambda t: t) if transposed else (lambda t: t.mT if t.ndim else t)
    options = {"transpose_b": transposed, "b_scale": turn(b_scale), "out_dtype": tc.float32}
    counts = tc.asarray(np.full(3, M, np.int32), device=device)
    found = tc.masked_gemm(a, turn(b), counts, a_scale=a_scale, **options)
    rows = a_scale.reshape((3 * M, -1)) if a_scale.ndim else a_scale
    joined = tc.grouped_gemm(a.reshape((3 * M, k)), turn(b), sizes=counts, a_scale=rows, **options).reshape((3, M, N))
    for group in range(3):
        check(found[group], u[group], v[group])
        check(joined[group], u[group], v[group])


def test_zero_points_fit_as_quantize_gives_them(device: str) -> None:
    x, w = normal(M, K) + 2, normal(N, K, seed=1) - 1
    a, a_scale, a_zero = tc.quantize(tc.asarray(x, device=device), dtype=tc.int8, scheme="token", asymmetric=True)
    b, b_scale, b_zero = tc.quantize(tc.asarray(w, device=device), dtype=tc.int8, scheme="token", asymmetric=True)
    y = tc.gemm(a, b, transpose_b=True, a_scale=a_scale, a_zero=a_zero, b_scale=b_scale, b_zero=b_zero, out_dtype=tc.float32)
    u, v = (tc.dequantize(q, s, scheme="token", zero_point=z) for q, s, z in ((a, a_scale, a_zero), (b, b_scale, b_zero)))
    check(y, np.asarray(u), np.asarray(v))


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_sums_of_the_largest_int8_are_exact_by_every_variant_of_the_cpu(rows: int) -> None:
    """Also where a processor adds two products in 16 bits, which would saturate."""
    rng = np.random.default_rng(rows)
    a = rng.choice(np.array([-128, -127, 127], np.int8), (rows, 64))
    b = rng.choice(np.array([-128, -127, 127], np.int8), (96, 64))
    a[0] = b[0] = -128
    expected = a.astype(np.int64) @ b.astype(np.int64).T
    rows_of_table = tc.explain("gemm", a, b, transpose_b=True, out_dtype="int32", device="cpu").variants
    accepted = [row.name for row in rows_of_table if row.accepted]
    assert {"cpu", "reference"} <= set(accepted)
    for variant in accepted:
        got = tc.gemm(a, b, transpose_b=True, out_dtype="int32", device="cpu", variant=variant)
        assert np.array_equal(np.asarray(got), expected), variant
