# SPDX-License-Identifier: Apache-2.0
"""tc.pack_weight and products with what it makes."""

import copy
import pickle

import numpy as np
import pytest

import tensorcraft as tc

FORMATS = ["int4", "mxfp4", "nvfp4"]


def normal(*shape: int, seed: int = 0) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("format", FORMATS)
def test_a_product_is_that_of_the_unpacked_weight(device: str, format: str) -> None:
    w = tc.asarray(normal(256, 40), device=device)
    packed = tc.pack_weight(w, format=format)
    assert packed.shape == (256, 40) and packed.format == format and packed.device == device
    assert packed.nbytes < w.nbytes / 6
    whole = np.asarray(packed.unpack())
    error = np.linalg.norm(whole - np.asarray(w)) / np.linalg.norm(np.asarray(w))
    assert 0.02 < error < 0.15
    x, bias = normal(3, 256, seed=1), normal(40, seed=2)
    np.testing.assert_allclose(tc.asarray(x, device=device) @ packed, x @ whole, rtol=1e-4, atol=1e-3)
    y = packed.matmul(tc.asarray(x, device=device), bias=tc.asarray(bias, device=device))
    np.testing.assert_allclose(np.asarray(y), x @ whole + bias, rtol=1e-4, atol=1e-3)
    batched = tc.asarray(normal(2, 3, 256, seed=3), device=device) @ packed
    assert batched.shape == (2, 3, 40)
    one = tc.asarray(x[0], device=device) @ packed
    np.testing.assert_allclose(np.asarray(one), x[0] @ whole, rtol=1e-4, atol=1e-3)


def test_sixteen_bits_use_the_same_numbers(device: str) -> None:
    packed = tc.pack_weight(tc.asarray(normal(256, 24), device=device), group=32)
    assert packed.group == 32 and "int4" in repr(packed)
    x = tc.asarray(normal(5, 256, seed=4), device=device).astype(tc.bfloat16)
    exact = np.asarray(x.astype(tc.float32)) @ np.asarray(packed.unpack())
    np.testing.assert_allclose(np.asarray((x @ packed).astype(tc.float32)), exact, rtol=2e-2, atol=2e-2)


def test_zero_points_are_nearer(device: str) -> None:
    w = normal(256, 24) + 2
    plain, near = (tc.pack_weight(tc.asarray(w, device=device), group=32, zero_points=zero) for zero in (False, True))
    assert plain.zeros is None and near.zeros is not None and near.nbytes == plain.nbytes + 8 * 24
    errors = [np.square(np.asarray(p.unpack()) - w).mean() for p in (plain, near)]
    assert errors[1] < 0.6 * errors[0]
    x = normal(3, 256, seed=6)
    np.testing.assert_allclose(
        np.asarray(tc.asarray(x, device=device) @ near), x @ np.asarray(near.unpack()), rtol=1e-4, atol=1e-3
    )


def test_float_zero_points_keep_weights_that_have_16_levels(device: str) -> None:
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 16, (8, 32, 24)).astype(np.float32)
    codes[:, 0], codes[:, 1] = 0, 15
    step, least = (rng.uniform(low, high, (8, 1, 24)).astype(np.float16) for low, high in [(0.01, 0.1), (-1, 2)])
    w = (codes * step.astype(np.float32) + least.astype(np.float32)).reshape(256, 24)
    packed = tc.pack_weight(tc.asarray(w, device=device), group=32, zero_points="float")
    assert packed.zeros is not None and packed.zeros.dtype == packed.scales.dtype == tc.float16
    assert packed.format == "int4" and packed.nbytes == 256 * 24 // 2 + 2 * 2 * 8 * 24
    np.testing.assert_array_equal(np.asarray(packed.unpack()), w)
    np.testing.assert_array_equal(np.asarray(packed.scales), step[:, 0].T)
    np.testing.assert_array_equal(np.asarray(packed.zeros), least[:, 0].T)
    x = normal(3, 256, seed=8)
    np.testing.assert_allclose(np.asarray(tc.asarray(x, device=device) @ packed), x @ w, rtol=1e-4, atol=1e-3)
    half = tc.asarray(x, device=device).astype(tc.bfloat16)
    exact = np.asarray(half.astype(tc.float32)).astype(np.float64) @ w
    np.testing.assert_allclose(np.asarray((half @ packed).astype(tc.float32)), exact, rtol=1e-2, atol=0.1)


def test_numpy_arrays_are_packed_and_multiplied() -> None:
    packed = tc.pack_weight(normal(128, 8))
    y = normal(2, 128, seed=5) @ packed
    assert y.shape == (2, 8)


def test_gemm_takes_a_packed_weight(device: str) -> None:
    packed = tc.pack_weight(tc.asarray(normal(128, 24), device=device), group=32)
    x, bias = tc.asarray(normal(3, 128, seed=1), device=device), tc.asarray(normal(24, seed=2), device=device)
    wanted = np.asarray(packed.matmul(x, bias=bias))
    np.testing.assert_array_equal(np.asarray(tc.gemm(x, packed, bias=bias)), wanted)
    out = tc.empty((3, 24), dtype=tc.float32, device=device)
    assert tc.gemm(x, packed, bias=bias, out=out, out_dtype=tc.float32, allow_tf32=True) is out
    np.testing.assert_array_equal(np.asarray(out), wanted)
    naive = tc.gemm(x, packed, bias=bias, variant="reference" if device == "cpu" else "naive")
    np.testing.assert_allclose(np.asarray(naive), wanted, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(np.asarray(tc.matmul(x, packed)), np.asarray(x @ packed))
    assert tc.gemm(tc.asarray(normal(2, 3, 128), device=device), packed).shape == (2, 3, 24)
    assert np.asarray(tc.gemm([[1.0] * 128], packed)).shape == (1, 24)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("c", np.ones((3, 24), np.float32)), ("alpha", 2.0), ("beta", 1.0), ("activation", "relu"), ("transpose_a", True),
        ("transpose_b", True), ("b_scale", np.ones(24, np.float32)), ("gated", "silu"), ("epilogue", "x + 1"),
        ("out_dtype", tc.float16), ("batch_invariant", True), ("config", {"block_m": 64}),
    ],
)  # fmt: skip
def test_gemm_says_which_options_a_packed_weight_has_not(option: str, value: object) -> None:
    packed, x = tc.pack_weight(normal(128, 24)), normal(3, 128)
    with pytest.raises(NotImplementedError, match=f"gemm: {option}: a product with a PackedWeight takes bias, out"):
        tc.gemm(x, packed, **{option: value})  # type: ignore[arg-type]


def test_weights_of_another_program_with_zero_points() -> None:
    codes = tc.asarray(np.full((1, 8), 0x99, np.uint8), device="cpu")
    scales = tc.asarray(np.full((1, 1), 0.5, np.float16), device="cpu")
    zeros = tc.asarray(np.full((1, 1), 7, np.uint8), device="cpu")
    weight = tc.PackedWeight(codes, scales, zeros)
    np.testing.assert_array_equal(np.asarray(weight.unpack()), 1.0)
    np.testing.assert_array_equal(np.ones((1, 16), np.float32) @ weight, [[16.0]])


def test_what_is_refused() -> None:
    for call, said in [
        (lambda: tc.pack_weight(normal(100, 8)), "k must be a multiple of the group, 128"),
        (lambda: tc.pack_weight(normal(128, 8), format="int3"), "format must be one of int4, mxfp4, nvfp4; got int3"),
        (lambda: tc.pack_weight(normal(128, 8), format="nvfp4", group=32), "nvfp4 has groups of 16, got 32"),
        (lambda: tc.pack_weight(normal(128, 8), group=0), "group must be a multiple of 16, got 0"),
        (lambda: tc.pack_weight(normal(128)), "expected a matrix"),
        (lambda: tc.pack_weight(normal(128, 8), zero_points="int"), "zero_points must be True, False or \"float\"; got 'int'"),
        (lambda: tc.pack_weight(np.full((128, 2), np.inf, np.float32)), "expected finite weights"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(ValueError, match="Size mismatch|codes"):
        normal(2, 64) @ tc.pack_weight(normal(128, 8))


def words(codes: "np.ndarray[tuple[int, ...], np.dtype[np.uint32]]", axis: int, order: "list[int]") -> "np.ndarray":
    """int32 words of 8 neighbours along an axis, in this order from the lowest bits on."""
    moved = np.moveaxis(codes, axis, -1)
    eights = moved.reshape(*moved.shape[:-1], -1, 8)[..., order]
    packed = (eights << (4 * np.arange(8, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)
    return np.ascontiguousarray(np.moveaxis(packed, -1, axis)).view(np.int32)


@pytest.mark.parametrize("style", ["gptq", "gptq_v2", "awq"])
@pytest.mark.parametrize("scale_dtype", [np.float16, np.float32])
def test_checkpoints_of_other_programs_keep_every_weight(device: str, style: str, scale_dtype: type) -> None:
    k, n, group = 256, 40, 64
    rng = np.random.default_rng(12)
    codes = rng.integers(0, 16, (k, n), np.uint32)
    zeros = rng.integers(0, 16, (k // group, n), np.uint32) + (style == "gptq")
    scales = rng.uniform(0.01, 0.1, (k // group, n)).astype(scale_dtype)
    whole = (codes.astype(np.float32) - zeros.astype(np.float32).repeat(group, axis=0)) * scales.astype(np.float32).repeat(group, axis=0)

    def put(array: "np.ndarray") -> tc.Tensor:
        return tc.asarray(array, device=device)

    if style == "awq":
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        packed = tc.pack_weight_from_awq(put(words(codes, 1, order)), put(words(zeros, 1, order)), put(scales), group=group)
    else:
        stored, in_order = zeros - (style == "gptq"), list(range(8))
        packed = tc.pack_weight_from_gptq(
            put(words(codes, 0, in_order)), put(words(stored.astype(np.uint32), 1, in_order)), put(scales),
            put(np.arange(k, dtype=np.int32) // group), group=group, zeros_minus_one=style == "gptq",
        )  # fmt: skip
    assert packed.shape == (k, n) and packed.group == group and packed.device == device
    np.testing.assert_array_equal(np.asarray(packed.unpack()), whole)
    x = normal(3, k, seed=13)
    np.testing.assert_allclose(np.asarray(put(x) @ packed), x @ whole, rtol=1e-4, atol=1e-3)


def test_checkpoints_that_do_not_fit_are_refused() -> None:
    def zeros(*shape: int) -> "np.ndarray":
        return np.zeros(shape, np.int32)

    scales = np.ones((2, 16), np.float16)
    plain = tc.pack_weight_from_gptq(zeros(8, 16), zeros(2, 2) + 0x77777777, scales)
    assert plain.zeros is None and plain.shape == (64, 16)
    with pytest.raises(NotImplementedError, match="g_idx: row 32 is of group 0, expected 1"):
        tc.pack_weight_from_gptq(zeros(8, 16), zeros(2, 2), scales, zeros(64))
    for call, said in [
        (lambda: tc.pack_weight_from_gptq(zeros(8, 16), zeros(2, 4), scales), "expected n / 8 = 2 words a row"),
        (lambda: tc.pack_weight_from_gptq(zeros(8, 16), zeros(2, 2), scales, group=128), "one row for 32 rows of the weight"),
        (lambda: tc.pack_weight_from_awq(zeros(64, 4), zeros(2, 2), scales), "qweight: has 32 columns of 4 bits, scales 16"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()
    with pytest.raises(TypeError, match="qweight"):
        tc.pack_weight_from_awq(zeros(64, 2).astype(np.float32), zeros(2, 2), scales)


def test_a_group_of_minus_one_is_the_whole_column() -> None:
    gptq = (np.zeros((8, 16), np.int32), np.zeros((1, 2), np.int32), np.ones((1, 16), np.float16))
    awq = (np.zeros((64, 2), np.int32), *gptq[1:])
    for packed in (tc.pack_weight_from_gptq(*gptq, group=-1), tc.pack_weight_from_awq(*awq, group=-1)):
        assert packed.shape == (64, 16) and packed.group == 64
    two = (np.zeros((2, 2), np.int32), np.ones((2, 16), np.float16))
    for call in (
        lambda: tc.pack_weight_from_gptq(gptq[0], *two, group=-1),
        lambda: tc.pack_weight_from_awq(awq[0], *two, group=-1),
    ):
        with pytest.raises(ValueError, match="one row for 32 rows of the weight, got -1"):
            call()


def test_what_is_no_array_is_named_in_products() -> None:
    packed = tc.pack_weight(normal(128, 8))
    for call in (
        lambda: [[0.0] * 128] @ packed,  # type: ignore[operator]
        lambda: tc.matmul([[0.0] * 128], packed),
        lambda: packed.matmul(2.0),
        lambda: packed.matmul(np.float32),
    ):
        with pytest.raises(tc.errors.TensorCraftTypeError, match="PackedWeight.matmul: x must be an array of float32"):
            call()


def test_copies_pickles_and_arrays_of_packed_weights() -> None:
    packed, filters = tc.pack_weight(normal(128, 8), zero_points=True), tc.pack_conv_weight(normal(4, 2, 3, 3))
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        np.testing.assert_array_equal(np.asarray(other.unpack()), np.asarray(packed.unpack()))
    for same in (copy.deepcopy(filters), pickle.loads(pickle.dumps(filters))):
        np.testing.assert_array_equal(np.asarray(same), np.asarray(filters.weight))
    with pytest.raises(tc.errors.TensorCraftTypeError, match=r"PackedWeight: .*unpack\(\)"):
        np.asarray(packed)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_packed_filters_give_the_same_convolution(device: str, layout: str) -> None:
    other = "nhwc" if layout == "nchw" else "nchw"
    shapes = ((2, 8, 6, 5), (4, 4, 3, 2)) if layout == "nchw" else ((2, 6, 5, 8), (4, 3, 2, 4))
    x, w = (tc.asarray(normal(*shape), device=device) for shape in shapes)
    packed = tc.pack_conv_weight(w, layout=layout)
    assert packed.shape == shapes[1]
    assert (packed.layout, packed.dtype, packed.nbytes, packed.device) == (layout, w.dtype, w.nbytes, w.device)
    assert repr(packed) == f"PackedConvWeight({shapes[1]}, dtype=float32, layout={layout!r}, device={w.device!r})"
    wanted = np.asarray(tc.conv2d(x, w, padding=1, groups=2, layout=layout))
    np.testing.assert_array_equal(np.asarray(tc.conv2d(x, packed, padding=1, groups=2, layout=layout)), wanted)
    turned = packed.as_layout(other)
    assert turned.as_layout(other) is turned
    order = (0, 2, 3, 1) if layout == "nchw" else (0, 3, 1, 2)
    y = tc.conv2d(x.permute_dims(order), turned, padding=1, groups=2, layout=other)
    np.testing.assert_allclose(np.asarray(y), wanted.transpose(order), rtol=1e-5, atol=1e-5)


def test_packed_filters_of_planes_reach_the_fast_kernels() -> None:
    x = tc.asarray(normal(1, 6, 6, 16), device="simt").astype(tc.bfloat16).permute_dims((0, 3, 1, 2))
    w = tc.asarray(normal(8, 16, 3, 3), device="simt").astype(tc.bfloat16)
    with pytest.raises(NotImplementedError, match="without gaps"):
        tc.conv2d(x, w, variant="implicit_gemm")
    packed = tc.pack_conv_weight(w)
    fast = tc.conv2d(x, packed, variant="implicit_gemm").astype(tc.float32)
    np.testing.assert_allclose(np.asarray(fast), np.asarray(tc.conv2d(x, w).astype(tc.float32)), atol=0.1)


def test_filters_that_are_refused() -> None:
    with pytest.raises(ValueError, match="layout must be one of nchw, nhwc; got hwcn"):
        tc.pack_conv_weight(normal(1, 1, 1, 1), layout="hwcn")
    with pytest.raises(ValueError, match="expected 4 axes, filters, channels, rows, columns, got shape"):
        tc.pack_conv_weight(normal(3, 3, 3))
    with pytest.raises(TypeError, match="expected float32, float16 or bfloat16, got int32"):
        tc.pack_conv_weight(np.zeros((1, 1, 1, 1), np.int32))
