# SPDX-License-Identifier: Apache-2.0
"""Every mistake is one typed error that names operator and argument and says what is accepted."""

import re
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from valid_calls import valid_call

import tensorcraft as tc

X = np.ones((2, 3), np.float32)


def read_only() -> Any:
    array = np.ones((2, 3), np.float32)
    array.flags.writeable = False
    return array


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "dtype": (lambda: tc.relu(np.ones(3, np.int32)), TypeError, r"relu: .*int32.*float32"),
    "float64": (lambda: tc.relu(np.ones(3)), TypeError, r"relu: x: dtype float64 is not supported; convert it"),
    "complex": (lambda: tc.relu(np.ones(3, np.complex64)), TypeError, r"relu: x: dtype complex64"),
    "text array": (lambda: tc.relu(np.array(["a"])), TypeError, r"relu: x: dtype <U1"),
    "byte order": (lambda: tc.relu(np.ones(3, ">f4")), TypeError, r"relu: x: dtype >f4"),
    "no array": (lambda: tc.relu(object()), TypeError, r"relu: x must be an array .*got object"),
    "None": (lambda: tc.relu(None), TypeError, r"relu: x must be an array .*got NoneType"),
    "text": (lambda: tc.relu("abc"), TypeError, r"relu: x must be an array .*got str"),
    "shape": (lambda: tc.gemm(X, X), ValueError, r"gemm: b: Size mismatch .*expected 3 but got 2"),
    "rank": (lambda: tc.gemm(np.ones(3, np.float32), X), ValueError, r"gemm: a"),
    "broadcast": (lambda: tc.add(X, np.ones((2, 2), np.float32)), ValueError, r"\[2, 3\].*\[2, 2\]"),
    "axis": (lambda: tc.softmax(X, axis=5), ValueError, r"softmax: axis must be in \[-2, 2\), got 5"),
    "axis type": (lambda: tc.softmax(X, axis="a"), TypeError, r"softmax: axis"),
    "axis float": (lambda: tc.softmax(X, axis=0.5), TypeError, r"softmax: axis"),
    "choice": (lambda: tc.gelu(X, approximate="erf"), ValueError, r"gelu: approximate.*erf.*tanh"),
    "option object": (lambda: tc.softmax(X, axis=[1]), TypeError, r"softmax: axis must be .*got list"),
    "variant": (lambda: tc.softmax(X, variant="nope"), ValueError, r'softmax: no variant is named "nope"; there are .*cpu'),
    "variant type": (lambda: tc.softmax(X, variant=3), TypeError, r"variant must be text, got int"),
    "device": (lambda: tc.softmax(X, device="tpu"), ValueError, r"tpu"),
    "device type": (lambda: tc.softmax(X, device=0), TypeError, r"device must be text, got int"),
    "contradiction": (
        lambda: tc.softmax(tc.asarray(X), device="cuda:0"), ValueError, r'device="cuda:0" contradicts an array on cpu'
    ),
    "stream on the host": (
        lambda: tc.softmax(X, stream=1, device="cpu"), ValueError, r"softmax: Tensor must be on CUDA device"
    ),
    "out list": (lambda: tc.relu(X, out=[0.0]), TypeError, r"relu: out must be an array that can be written to, got list"),
    "out number": (lambda: tc.relu(X, out=1.0), TypeError, r"relu: out must be an array .*got float"),
    "out read-only": (lambda: tc.relu(X, out=read_only(), device="cpu"), BufferError, r"relu: out: the tensor is read-only"),
    "out shape": (lambda: tc.relu(X, out=np.ones((3, 2), np.float32), device="cpu"), ValueError, r"relu: out"),
    "out dtype": (lambda: tc.relu(X, out=np.ones((2, 3), np.float16), device="cpu"), TypeError, r"relu: out"),
    "out overlaps": (lambda: overlapping(), ValueError, r"relu: out overlaps the memory of x"),
    "number too large": (lambda: tc.add(np.ones(2, np.int32), 2**40), ValueError, r"1099511627776 does not fit .* int32"),
    "number beyond 64 bits": (lambda: tc.add(np.ones(2, np.int64), 2**70), ValueError, r"number does not fit 64 bits"),
    "no NumPy dtype": (lambda: no_ml_dtypes(), TypeError, r"NumPy has no bfloat16; keep it in a tc.Tensor"),
    "dtype name": (lambda: tc.astype(X, "float99"), TypeError, r"dtype float99 is not supported; there are float32"),
    "empty shape": (lambda: tc.empty((2, -1)), ValueError, r"-1"),
    "empty shape type": (lambda: tc.empty("ab"), TypeError, r"shape must be an integer or a sequence of integers, got str"),
    "empty too large": (lambda: tc.empty((2**40, 2**40), device="cpu"), ValueError, r"1099511627776"),
    "empty out of memory": (lambda: tc.empty(2**60, device="cpu"), MemoryError, r"out of host memory"),
    "Stream": (lambda: tc.Stream("cpu"), ValueError, r"Tensor must be on CUDA device"),
    "set_default_device": (lambda: tc.set_default_device(1), TypeError, r"device must be text, got int"),
    "no GPU of that number": (lambda: tc.empty(1, device="cuda:99"), Exception, r"."),
    "from_dlpack": (lambda: tc.from_dlpack([1]), TypeError, r"from_dlpack: list has no __dlpack__"),
    "reshape": (lambda: tc.asarray(X).reshape("a"), TypeError, r"shape must be an integer"),
    "permute": (lambda: tc.asarray(X).permute_dims(0, 0), ValueError, r"axis 0 is named twice"),
    "assignment to read-only": (lambda: tc.asarray(read_only()).__setitem__(0, 1), BufferError, r"read-only"),
    "out shares elements": (lambda: tc.relu(X, out=one_row()), ValueError, r"relu: out: (elements of .* share memory|.*must be contiguous)"),
    "axis beyond 32 bits": (lambda: tc.asarray(X).permute_dims(2**32, 1), ValueError, r"permute: axis must be in"),
    "axis to remove": (lambda: tc.asarray(X[None]).squeeze(2**32), ValueError, r"squeeze: axis must be in"),
    "axis to add": (lambda: tc.asarray(X).expand_dims(2**32), ValueError, r"expand_dims: axis must be in"),
    "index beyond 64 bits": (lambda: tc.asarray(X)[2**70], IndexError, r"index \d+ is out of bounds for axis 0 with size 2"),
    "explain variant": (lambda: tc.explain("relu", X, variant="nope"), ValueError, r'relu: no variant is named "nope"'),
    "list beyond int8": (lambda: tc.asarray([300], tc.int8), ValueError, r"asarray: .*300.*int8"),
    "ragged list": (lambda: tc.asarray([[1], [1, 2]], tc.int8), ValueError, r"asarray: "),
    "path with NUL": (lambda: tc.load_safetensors("/dev/null\0x"), ValueError, r"the path has a NUL character"),
    "DLPack device": (lambda: tc.relu(BadDevice()), TypeError, r"BadDevice: __dlpack_device__\(\) must give .*got str"),
    "no capsule": (lambda: tc.relu(Gives(5)), TypeError, r"relu: x: Gives: __dlpack__\(\) must give a DLPack capsule, got int"),
    "consumed capsule": (lambda: tc.relu(Gives(consumed())), BufferError, r"relu: x: Gives: .*was consumed before"),
    "half of DLPack": (lambda: tc.relu(HalfProducer()), TypeError, r"relu: x: HalfProducer has __dlpack__ but no __dlpack_device__"),
    "a class": (lambda: tc.relu(tc.Tensor), TypeError, r"relu: x must be an array .*got nb_type"),
    "no constructor": (lambda: tc.relu(tc.Tensor.__new__(tc.Tensor)), TypeError, r"a tc.Tensor is not made by its class; use tc.asarray"),
    "dimensions": (lambda: tc.relu(np.ones((1,) * 9, np.float32)), ValueError, r"relu: x: a tensor has more than 8 dimensions"),
    "masked": (lambda: tc.relu(np.ma.masked_array(X, X > 0)), TypeError, r"relu: x: a masked array is not supported; give x.filled\("),
    "ragged argument": (lambda: tc.relu([[1.0], [1.0, 2.0]]), ValueError, r"relu: x: .*inhomogeneous shape"),
    "number beyond float64": (lambda: tc.add(X, 2**2000), ValueError, r"number does not fit float64"),
    "option beyond 64 bits": (lambda: tc.elu(X, alpha=2**70), ValueError, r"elu: alpha does not fit 64 bits"),
    "option beyond float32": (lambda: tc.elu(X, alpha=1e300), ValueError, r"elu: alpha must be at most 3.40282e\+38"),
    "complex option": (lambda: tc.elu(X, alpha=1j), TypeError, r"elu: alpha must be a number, got complex"),
    "array option": (lambda: tc.elu(X, alpha=X), TypeError, r"elu: alpha must be a number, got ndarray"),
    "None for an axis": (lambda: tc.softmax(X, axis=None), TypeError, r"softmax: axis must not be None; leave it out for -1"),
    "softmax of a scalar": (lambda: tc.softmax(1.0), ValueError, r"softmax: expected at least 1 axis, got a scalar"),
    "dtype of an operand": (lambda: tc.elementwise("g + u", g=X, u=X.astype(np.float64)), TypeError, r"elementwise: u: dtype float64"),
    "variant of a GPU": (
        lambda: tc.softmax(X, variant="online", device="cpu"), NotImplementedError,
        r'online: runs on cuda, and these tensors are on cpu; device "simt" runs it without a GPU',
    ),
    "scales of another scheme": (
        lambda: tc.dequantize(*tc.quantize(X, tc.int8, scheme="token")), ValueError,
        r'scales: expected one number for scheme "tensor", got shape \[2, 1\]; name the scheme',
    ),
    "lone surrogate": (lambda: tc.gelu(X, approximate="\ud800"), ValueError, r"gelu: approximate must be valid Unicode"),
    "variant with NUL": (lambda: tc.gelu(X, variant="a\0b"), ValueError, r"the variant has a NUL character"),
    "result out of memory": (lambda: tc.relu(np.broadcast_to(X[0, 0], (2**46,)), device="cpu"), tc.OutOfMemory, r"shape \[70368744177664\]"),
    "argument out of memory": (
        lambda: tc.relu(np.lib.stride_tricks.as_strided(X, (2**24, 2**24), (4, 4)), device="cuda:0"), tc.OutOfMemory, r"row-major order",
    ),
    "result beyond 64 bits": (
        # On the CPU, where no argument is copied first: some machines promise any amount of memory.
        lambda: tc.add(np.broadcast_to(X[0, 0], (2**40, 1)), np.broadcast_to(X[0, 0], (1, 2**40)), device="cpu"),
        ValueError, r"add: out: shape .*64 bits count",
    ),
    "unaligned": (lambda: tc.relu(unaligned()), ValueError, r"relu: x: the array's elements are not aligned"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(tc.ops()))
def test_out_of_another_kind_is_told_what_it_must_be(name: str, device: str) -> None:
    """A copy, which helps what is read, would take the result."""
    if device.startswith("cuda") and name in ("append_kv", "transfer_hicache_all_layer", "transfer_hicache_one_layer"):
        pytest.skip("writes arrays of the caller, which are on the host here")
    function, (args, options) = tc.ops()[name].function, valid_call(name)
    found = function(*args, **options, device=device)
    first = found[0] if isinstance(found, tuple) else found
    wanted = f"must be an array of {first.dtype} of shape {re.escape(str(list(first.shape)))} for a call on {device}$"
    wrong = {"dtype float64 is not supported": np.empty(first.shape), "a masked array": np.ma.masked_array(np.empty(first.shape))}
    if isinstance(first, np.ndarray) and first.dtype.itemsize > 1 and first.size:
        room = np.empty(first.nbytes + 1, np.uint8)
        wrong["the array's elements are not aligned"] = room[1:].view(first.dtype).reshape(first.shape)
    for what, out in wrong.items():
        with pytest.raises((TypeError, ValueError), match=rf"{name}: out: {what}.*; \w+ {wanted}") as error:
            function(*args, **options, device=device, out=out)
        assert isinstance(error.value, tc.errors.Error) and str(error.value).count(";") == 1
    other = next((d for d in tc.devices() if d != device), None)
    if other is None or name.startswith("transfer_hicache"):  # whose tensors may lie on the host
        return
    with pytest.raises(ValueError, match=f"expected {device} but got {other}; give a tensor of {first.dtype} on {device}$"):
        function(*args, **options, device=device, out=tc.zeros(first.shape, str(first.dtype), other))


def test_a_framework_s_out_of_float64_is_told_what_it_must_be() -> None:
    class Producer:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    with pytest.raises(TypeError, match=r"relu: out: .*dtype float64 is not supported; out must be an array of float32 of shape \[2, 3\]"):
        tc.relu(X, out=Producer(np.empty((2, 3))), device="cpu")
    with pytest.raises(TypeError, match=r"topk: out: dtype float64 .*; indices must be an array of int64 of shape \[2, 1\]"):
        tc.topk(X, 1, out=(None, np.empty((2, 1))), device="cpu")


def no_ml_dtypes() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ml_dtypes", None)
        return tc.astype(X, "bfloat16").numpy()


def overlapping() -> Any:
    memory = np.ones(8, np.float32)
    return tc.relu(memory[:6], out=memory[2:], device="cpu")


def one_row() -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), X.shape, (0, 4))


class BadDevice:
    def __dlpack__(self, **_: Any) -> Any: ...

    def __dlpack_device__(self) -> str:
        return "x"


class HalfProducer:
    def __dlpack__(self, **_: Any) -> Any: ...


class Gives:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __dlpack__(self, **_: Any) -> Any:
        return self.answer

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def consumed() -> Any:
    capsule = X.__dlpack__()
    np.from_dlpack(Gives(capsule))
    return capsule


def unaligned() -> Any:
    return np.zeros(13, np.uint8)[1:].view(np.float32)


FORBIDDEN = re.compile(r"incompatible function arguments|nanobind|std::|<unknown>|Invoked with types", re.IGNORECASE)


def test_an_option_may_be_an_array_of_one_number() -> None:
    for alpha in (np.array(2.0), np.array(2), np.float64(2), np.int8(2)):
        assert tc.leaky_relu(-X, alpha=alpha).tolist() == (-2 * X).tolist()


@pytest.mark.filterwarnings("ignore:nanobind. attempted to access an uninitialized instance")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_typed_error(name: str) -> None:
    make, kind, text = MISTAKES[name]
    with pytest.raises(kind, match=text) as caught:
        make()
    assert isinstance(caught.value, tc.errors.Error), type(caught.value)
    assert str(caught.value) and not FORBIDDEN.search(str(caught.value))


def test_python_itself_reports_wrong_names_and_counts() -> None:
    with pytest.raises(TypeError, match=r"relu\(\) got an unexpected keyword argument 'axi'"):
        tc.relu(X, axi=1)
    with pytest.raises(TypeError, match=r"gemm\(\) missing 1 required positional argument: 'b'"):
        tc.gemm(X)
    with pytest.raises(TypeError, match=r"device_info\(\) takes 1 positional argument but 2 were given"):
        tc.device_info("cpu", 2)


def test_host_and_device_arrays_do_not_mix() -> None:
    if "cuda:0" not in tc.devices():
        pytest.skip("needs a GPU")
    with pytest.raises(ValueError, match="host and device arrays are mixed"):
        tc.add(tc.asarray(X, device="cuda"), X)


def test_errors_are_the_exceptions_of_their_kind() -> None:
    assert issubclass(tc.Unsupported, NotImplementedError) and issubclass(tc.OutOfMemory, MemoryError)
    assert issubclass(tc.CompileError, RuntimeError) and issubclass(tc.DeviceLost, RuntimeError)
    for error in (tc.Unsupported, tc.OutOfMemory, tc.CompileError, tc.DeviceLost):
        assert issubclass(error, tc.errors.Error)
    assert str(tc.errors.TensorCraftKeyError("a 'b'")) == "a 'b'"


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=4), st.binary(max_size=3),
    st.lists(st.one_of(st.integers(-3, 3), st.floats(), st.none(), st.lists(st.floats(), max_size=2)), max_size=3),
    st.sampled_from([X, X.T, X[:0], np.float32(1), X.astype(np.float64), X.astype(np.int8), tc.asarray(X), object, tc]),
)  # fmt: skip
OPERATORS = sorted(tc.ops())


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(OPERATORS), st.lists(ANYTHING, max_size=4), st.dictionaries(
    st.sampled_from(["out", "stream", "variant", "axis", "eps", "dtype", "bias", "scale", "value", "alpha"]), ANYTHING, max_size=3))  # fmt: skip
def test_generated_calls_give_results_or_typed_errors(name: str, args: list[Any], options: dict[str, Any]) -> None:
    try:
        tc.ops()[name].function(*args, **options, device="cpu")
    except (tc.errors.Error, TypeError, ValueError, OverflowError) as error:
        assert not FORBIDDEN.search(str(error)), error
