"""Values of the elementwise operators, on the CPU and on the emulator, which runs the CUDA variants."""

import math

import numpy as np
import pytest

import tensorcraft as tc

DEVICES = ["cpu", "simt"]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]
SPECIAL = np.float32([-np.inf, -2.5, -1.0, -0.0, 0.0, 1e-40, 0.3, 1.0, 1.5, 3e38, np.inf, np.nan])
NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "pow": "power",
    "round": "rint",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}
UNARY = [
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "floor",
    "ceil",
    "trunc",
    "round",
    "sign",
    "square",
    "reciprocal",
    "positive",
    "abs",
    "isnan",
    "isinf",
    "isfinite",
    "signbit",
]
BINARY = ["atan2", "hypot", "logaddexp", "copysign", "nextafter", "remainder", "floor_divide", "logical_xor", "pow"]


def numpys(name):
    return getattr(np, NUMPY.get(name, name))


def expect_equal(got, expected, ulp=4):
    """Within units in the last place of float32; zeros with their sign."""
    got = np.asarray(got)
    assert got.shape == expected.shape
    if got.dtype.kind != "f":
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
        return
    expected = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(expected.astype(np.float32)).clip(1e-38, 3e38)).astype(np.float64)
        near = np.abs(got - expected) <= ulp * unit
        rounded = np.float32(expected) == got  # an infinity beyond the range
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    wrong = ~(near & (got != 0) | same | rounded & (expected != 0) | np.isnan(got) & np.isnan(expected))
    assert not wrong.any(), f"{got[wrong][:5]} for {expected[wrong][:5]}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_floats_are_numpys(name, device):
    x = np.concatenate([SPECIAL, np.random.default_rng(0).normal(0, 3, 300).astype(np.float32)])
    with np.errstate(all="ignore"):
        expected = numpys(name)(x if name == "signbit" else x.astype(np.float64))
        if name == "square":
            expected = np.square(x)
    expect_equal(getattr(tc, name)(x, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_floats_are_numpys(name, device):
    x = np.concatenate([SPECIAL, np.random.default_rng(0).normal(0, 3, 60).astype(np.float32)])
    a, b = x[:, None], x[None, :]
    exact = name in ("nextafter", "floor_divide", "remainder")  # of float32 itself
    with np.errstate(all="ignore"):
        expected = numpys(name)(a, b) if exact else numpys(name)(a.astype(np.float64), b.astype(np.float64))
    if name == "floor_divide":  # NumPy has NaN for the quotient of an infinity
        expected = np.where(np.isinf(a) & np.isfinite(b), a * np.where(np.signbit(b), -1, 1), expected).astype(
            np.float32
        )
    if name == "logaddexp":  # a unit of what is added, if they cancel
        got = np.asarray(getattr(tc, name)(a, b, device=device)).astype(np.float64)
        size = np.maximum(np.abs(expected), np.abs(np.maximum(a, b)))
        with np.errstate(all="ignore"):
            near = np.abs(got - expected) <= 4 * np.spacing(size.astype(np.float32))
        assert (near | (got == expected) | (np.isnan(got) & np.isnan(expected))).all()
        return
    expect_equal(getattr(tc, name)(a, b, device=device), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers_are_numpys(dtype, device):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least + 1, 0, 1, 2, 3, 7, 33, most - 1, most] + ([-7, -1] if least else []), dtype)
    for name in ["sign", "square", "abs", "positive", "bitwise_invert"]:
        expect_equal(getattr(tc, name)(x, device=device), numpys(name)(x))
    for name in ["floor", "ceil", "trunc", "round"]:
        expect_equal(getattr(tc, name)(x, device=device), x)
    for name in ["isnan", "isinf", "isfinite"]:
        expect_equal(getattr(tc, name)(x, device=device), numpys(name)(x))
    a, b = x[:, None], x[None, :]
    names = "floor_divide remainder bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"
    with np.errstate(all="ignore"):
        for name in names.split():
            expect_equal(getattr(tc, name)(a, b, device=device), numpys(name)(a, b))


@pytest.mark.parametrize("device", DEVICES)
def test_bits_of_bool(device):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor"]:
        expect_equal(getattr(tc, name)(a, b, device=device), numpys(name)(a, b))
    expect_equal(tc.bitwise_invert(a, device=device), ~a)
    with pytest.raises(TypeError, match="bool"):
        tc.bitwise_left_shift(a, b, device=device)
    with pytest.raises(TypeError, match="float32"):
        tc.bitwise_and(np.float32([1]), np.float32([1]), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_symbols_bind_as_in_python(device):
    a, b = np.array([-7, 0, 5, 123456]), np.array([3, 1, 2, 4])
    got = tc.elementwise("~a & 12 | (b << 2) ^ 3 - a % 3 // 2 | -b ** 2 >> 1 == a", a=a, b=b, device=device)
    np.testing.assert_array_equal(np.asarray(got), ~a & 12 | (b << 2) ^ 3 - a % 3 // 2 | -(b**2) >> 1 == a)
    x = np.float32([-7.5, 7.5, 0.1])
    got = tc.elementwise("x // 2 + x % 2", x=x, device=device)
    np.testing.assert_allclose(np.asarray(got), x // 2 + x % 2, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_nextafter_counts_in_the_dtype_of_its_operands(device):
    for dtype in (tc.float16, tc.bfloat16, tc.float32):
        one = tc.full((1,), 1.0, dtype, device=device)
        step = float(tc.astype(tc.nextafter(one, tc.full((1,), 2.0, dtype, device=device)), tc.float32)) - 1
        assert step == {tc.float16: 2**-10, tc.bfloat16: 2**-7, tc.float32: 2**-23}[dtype]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("second", INTEGERS)
@pytest.mark.parametrize("first", INTEGERS)
def test_integers_promote_and_wrap_as_in_numpy(first, second, device):
    if {first, second} == {np.uint8, np.int8}:  # also where neither is the result's
        assert tc.add(np.array([1], first), np.array([1], second), device=device).dtype == np.int16
    a = np.array([np.iinfo(first).min, 0, 1, 5, 100, np.iinfo(first).max], first)[:, None]
    b = np.array([np.iinfo(second).min, 0, 1, 3, 77, np.iinfo(second).max], second)[None, :]
    with np.errstate(all="ignore"):
        for name in [
            "add",
            "subtract",
            "multiply",
            "maximum",
            "minimum",
            "floor_divide",
            "remainder",
            "equal",
            "less",
            "bitwise_xor",
        ]:
            expect_equal(getattr(tc, name)(a, b, device=device), getattr(np, name)(a, b))
        expect_equal(tc.where(b > 1, a, b, device=device), np.where(b > 1, a, b))
        expect_equal(tc.negative(a, device=device), -a)
        expect_equal(tc.add(a, 3, device=device), a + first(3))
        expect_equal(tc.clip(a, 1, 5, device=device), np.clip(a, 1, 5))
    with pytest.raises(ValueError, match="does not fit|fit"):
        tc.add(a, 2**40 if first is not np.int64 else 2**64, device=device)


def sigmoid(d):
    e = np.exp(-np.abs(d))
    return np.where(d >= 0, 1, e) / (1 + e)


BETA = np.float32(1.7)
FORMULAS = {
    "elu": lambda d: np.where(d > 0, d, np.expm1(d)),
    "sigmoid": sigmoid,
    "silu": lambda d: d * sigmoid(d),
    "swish": lambda d: d * sigmoid(float(BETA) * d),
    "gelu": lambda d: d * 0.5 * np.vectorize(math.erfc)(-d * math.sqrt(0.5)),
    "gelu_tanh": lambda d: d * sigmoid(2 * math.sqrt(2 / math.pi) * (d + 0.044715 * d**3)),
    "tanh": np.tanh,
    "exp": np.exp,
    "rsqrt": lambda d: 1 / np.sqrt(d),
    "erf": np.vectorize(math.erf),
}


def sweep():
    """Every exponent with mantissas at and between its ends, and the arguments around 0; both signs."""
    mantissas = np.concatenate([[1, 1.5, 2 - 2**-23], 1 + np.random.default_rng(1).random(20)])
    wide = np.outer(2.0 ** np.arange(-126, 128), mantissas).ravel()
    x = np.concatenate([wide, np.linspace(0, 20, 8001), np.linspace(0, 110, 2001)]).astype(np.float32)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(set(UNARY[: UNARY.index("floor")]) | {"sqrt", "reciprocal"} | set(FORMULAS)))
def test_every_size_of_argument_is_within_four_units_in_the_last_place(name, device):
    x = sweep()
    options = {"swish": {"beta": float(BETA)}, "gelu_tanh": {"approximate": "tanh"}}.get(name, {})
    got = np.asarray(getattr(tc, name.removesuffix("_tanh"))(x, device=device, **options)).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = (FORMULAS[name] if name in FORMULAS else numpys(name))(x.astype(np.float64))
        unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
        off = np.abs(got - expected) / unit
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    judged = (np.abs(expected) >= 2.0**-120) & (np.abs(expected) < 3.4e38)
    worst = np.where(judged, off, 0).argmax()
    assert off[worst] <= (6 if name == "gelu" else 4), f"{x[worst]}: {got[worst]}, not {expected[worst]}"
    assert (np.abs(got)[~judged & (np.abs(expected) < 1)] <= 2.0**-119).all()


BYTES = np.tile(np.array([2, 0, 1, 255, 0, 128], np.uint8), (3, 11))
READERS = {
    **{
        f"astype {dtype.__name__}": (lambda b, dtype=dtype, **k: tc.astype(b, dtype, **k))
        for dtype in (*INTEGERS, np.float32, np.float16)
    },
    "equal": lambda b, **k: tc.equal(b, True, **k),
    "not_equal": lambda b, **k: tc.not_equal(b, BYTES != 0, **k),
    "logical_and": lambda b, **k: tc.logical_and(b, BYTES != 0, **k),
    "logical_or": lambda b, **k: tc.logical_or(b, BYTES == 0, **k),
    "logical_xor": lambda b, **k: tc.logical_xor(b, BYTES != 0, **k),
    "logical_not": tc.logical_not,
    "bitwise_and": lambda b, **k: tc.bitwise_and(b, BYTES != 0, **k),
    "bitwise_xor": lambda b, **k: tc.bitwise_xor(b, BYTES != 0, **k),
    "bitwise_invert": tc.bitwise_invert,
    "where": lambda b, **k: tc.where(b, np.float32(1), np.float32(2), **k),
    "where of bool": lambda b, **k: tc.where(BYTES != 0, b, b, **k),
    "elementwise": lambda b, **k: tc.elementwise("float32(b) + int32(b) * 2 + where(b, 1, 0)", b=b, **k),
    "sum": tc.sum,
    "any": lambda b, **k: tc.any(b, axis=1, **k),
    "all": lambda b, **k: tc.all(b, axis=0, **k),
    "softmax": lambda b, **k: tc.softmax(np.ones(BYTES.shape, np.float32), mask=b, **k),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reader", READERS)
def test_every_byte_of_a_bool_but_0_is_true(reader, device):
    read, odd, plain = READERS[reader], BYTES.view(bool), BYTES != 0
    kind = {"cpu": "cpu", "simt": "cuda"}[device]
    name = reader.split()[0]
    names = [v.name for v in tc.ops()[name].variants if v.device == kind]
    ran = 0
    for variant in [None, *names]:
        for part in (np.s_[:, :], np.s_[1:, 1:]):  # aligned and not
            if part != np.s_[:, :] and not name.startswith(("astype", "sum", "bitwise_invert", "logical_not")):
                continue
            try:
                expected = np.asarray(read(plain[part], device=device, variant=variant))
            except tc.errors.Error:
                continue  # what the variant does not take
            got = np.asarray(read(odd[part], device=device, variant=variant))
            assert got.tobytes() == expected.tobytes(), f"{variant}: {got} {expected}"
            ran += 1
    assert ran > 0


EDGES = [2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("edge", EDGES)
def test_integers_of_64_bits_are_exact_as_numbers(edge, device):
    x = np.array([*EDGES, 0, 1])
    for variant in [None, "reference"] if device == "cpu" else [None]:
        options = {"device": device, "variant": variant}
        np.testing.assert_array_equal(tc.clip(x, min=edge, **options), np.clip(x, edge, None))
        np.testing.assert_array_equal(tc.clip(x, max=edge, **options), np.clip(x, None, edge))
        np.testing.assert_array_equal(tc.fill(x, edge, **options), np.full(x.shape, edge))
        np.testing.assert_array_equal(tc.pad(x, 1, edge, **options), np.pad(x, 1, constant_values=edge))
        for text in (f"max(x, {edge})", f"where(x == {edge}, {edge}, max(x, e))"):
            got = tc.elementwise(text, x=x, **({"e": edge} if "e)" in text else {}), **options)
            np.testing.assert_array_equal(got, np.maximum(x, edge))
    np.testing.assert_array_equal(tc.equal(x, edge, device=device), x == edge)
    np.testing.assert_array_equal(tc.less(x, edge, device=device), x < edge)
    np.testing.assert_array_equal(tc.where(x > 0, edge, x, device=device), np.where(x > 0, edge, x))
    np.testing.assert_array_equal(tc.full((3,), edge, tc.int64, device=device).numpy(), np.full(3, edge))
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        tc.elementwise("max(x, 9223372036854775808)", x=x)


def test_a_number_that_an_integer_dtype_lacks_becomes_the_nearest():
    assert tc.fill(np.zeros(1, np.int8), 2**40).tolist() == [127]
    assert tc.fill(np.zeros(1, np.uint8), -(2**63)).tolist() == [0]
    assert tc.fill(np.zeros(1, bool), True).tolist() == [True]
    assert tc.fill(np.zeros(1, np.float32), 2**62 + 1).tolist() == [2.0**62]


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_stand_for_any_argument_of_where(device):
    a = np.float32([1, -2])
    np.testing.assert_array_equal(tc.where(True, a, 0.0, device=device), a)
    np.testing.assert_array_equal(tc.where(False, a, 0.0, device=device), [0, 0])
    np.testing.assert_array_equal(tc.where(a > 0, 1.5, a, device=device), [1.5, -2])
    np.testing.assert_array_equal(tc.where(a > 0, True, False, device=device), [True, False])


def test_clip_without_a_bound_copies():
    x = tc.asarray(np.float32([1, 2]))
    y = tc.clip(x)
    y[0] = 5.0
    assert x.tolist() == [1, 2] and y.tolist() == [5, 2]
    assert tc.clip(x, min=[0.0, 3.0]).tolist() == [1, 3] and tc.clip(x, 0, x[:1]).tolist() == [1, 1]
    np.testing.assert_array_equal(tc.elementwise("clip(x, low, 9)", x=x, low=np.float32([1.5, 0])), [1.5, 2])


def test_keywords_of_every_operator_are_no_names_of_arrays():
    x = np.float32([1])
    with pytest.raises(ValueError, match="device, out, out_dtype, stream and variant are keywords of every operator"):
        tc.elementwise("device * 2", device=x)
    with pytest.raises(ValueError, match="device is a keyword of every operator"):
        tc.elementwise("device * x", x=x)
    with pytest.raises(ValueError, match=r"'\(' at column 5 is not closed"):
        tc.elementwise("silu(x * 2", x=x)
    with pytest.raises(ValueError, match="unknown function 'sulu'; did you mean silu"):
        tc.elementwise("sulu(x)", x=x)
