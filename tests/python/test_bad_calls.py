# SPDX-License-Identifier: Apache-2.0
"""Generated bad calls of every operator: each ends in the right exception or in the right result, and keeps nothing.

A failure names the seed of its call; `TC_TEST_SEED=N pytest test_bad_calls.py` repeats that one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from valid_calls import valid_call

import tensorcraft as tc

COUNT = 100_000 if os.environ.get("TC_TEST_FULL") else 30_000
FORBIDDEN = re.compile(r"incompatible function arguments|nanobind|std::|bad_cast|<unknown>|PyCapsule_", re.IGNORECASE)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


# Arguments and options of one right call of every operator.
RIGHT = {name: valid_call(name) for name in tc.ops()}


class Producer:
    """Speaks DLPack, wrongly."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule() if callable(self.capsule) else self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class WithoutDevice:
    def __dlpack__(self, **_: Any) -> Any:
        return X.__dlpack__()


class Raises:
    """Every look at it fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class RaisesInside:
    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("this array lies elsewhere")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


class WrongExchange(Producer):
    __dlpack_c_exchange_api__ = "no capsule"


class Number:
    """Converts to a number by failing."""

    def __index__(self) -> int:
        raise ValueError("no index")

    def __float__(self) -> float:
        raise ValueError("no float")


class TextSubclass(str):
    pass


# The C exchange API of a type whose functions fail without saying why, or give a tensor that is none.
class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


Borrow = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
Other = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
FAILS = Other(lambda *_: -1)


class ExchangeApi(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", Other),
        ("from_object", Other), ("to_object", Other), ("borrow", Borrow), ("current_stream", Other),
    ]  # fmt: skip


MEMORY = X.copy()
SHAPE = (ctypes.c_int64 * 2)(2, 3)
HUGE = (ctypes.c_int64 * 2)(2**40, 2**40)
STRIDES = (ctypes.c_int64 * 2)(-(2**63), 2**62)


def described(**changes: Any) -> DLTensor:
    values = {"data": MEMORY.ctypes.data, "device_type": 1, "device_id": 0, "ndim": 2, "code": 2, "bits": 32, "lanes": 1}
    tensor = DLTensor(**values, shape=ctypes.addressof(SHAPE), strides=None, byte_offset=0)
    for name, value in changes.items():
        setattr(tensor, name, value)
    return tensor


BORROWED = [
    described(data=None), described(ndim=-1), described(ndim=33), described(shape=None), described(lanes=4), described(code=77),
    described(bits=64), described(device_type=99), described(byte_offset=1), described(shape=ctypes.addressof(HUGE)),
    described(strides=ctypes.addressof(STRIDES)), described(device_type=2, device_id=-1), described(device_type=2, device_id=99),
]  # fmt: skip


def exchange_type(borrow: Any, other: Any = FAILS) -> type:
    """An array type that publishes these functions."""
    api = ExchangeApi(1, 3, None, other, other, other, borrow, other)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.c_char_p(b"dlpack_exchange_api")
    capsule = new(ctypes.addressof(api), name, None)
    return type("Exchanged", (), {"__dlpack_c_exchange_api__": capsule, "kept": (api, name)})


def fails_in_silence(_: Any, __: Any) -> int:
    return -1


def borrow_described(obj: Any, out: Any) -> int:
    out[0] = BORROWED[obj.which]
    return 0


Silent, SilentCopy = exchange_type(Borrow(fails_in_silence)), exchange_type(Borrow())
Incomplete = exchange_type(Borrow(), Other())
Exchanged = exchange_type(Borrow(borrow_described))


def exchanged(which: int) -> Any:
    obj = Exchanged()
    obj.which = which
    return obj


def consumed() -> Any:
    capsule = X.__dlpack__()
    np.from_dlpack(Producer(capsule))
    return capsule


def fresh() -> Any:
    return X.copy()


def read_only(x: Any) -> Any:
    array = np.array(x)
    array.flags.writeable = False
    return array


def unaligned() -> Any:
    return np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)


def huge(*shape: int) -> Any:
    """More elements than an address space holds bytes, in the memory of one."""
    return np.lib.stride_tricks.as_strided(fresh(), shape, (0,) * len(shape))


def endless_list() -> Any:
    endless: list[Any] = []
    endless.append(endless)
    return endless


# What stands where an array, an option or out should be. Each call makes its own.
STRANGE: list[Callable[[], Any]] = [
    lambda: None, lambda: True, lambda: 0, lambda: -1, lambda: 2**31, lambda: 2**63, lambda: -(2**63) - 1, lambda: 2**2000,
    lambda: 0.5, lambda: float("nan"), lambda: float("inf"), lambda: -1e300, lambda: 1e-320, lambda: 1j, lambda: "", lambda: "relu",
    lambda: "float32", lambda: "int8", lambda: "cuda:99", lambda: "\ud800", lambda: "a\0b", lambda: TextSubclass("tanh"),
    lambda: b"ab", lambda: bytearray(8), lambda: memoryview(b"abcd"), list, lambda: [1.0, 2.0, 3.0], lambda: (1, 2), lambda: [None],
    lambda: [[1.0], [1.0, 2.0]], lambda: [2**70], lambda: ["a"], endless_list, dict, lambda: {1.0}, lambda: range(3),
    lambda: iter([1.0]), lambda: object(), lambda: tc, lambda: np.ndarray, lambda: tc.Tensor, lambda: np.float32, lambda: lambda x: x,
    lambda: tc.float16, lambda: tc.int64, lambda: np.dtype("f4"), lambda: Number(), lambda: np.float32(2), lambda: np.float64(2),
    lambda: np.int8(1), lambda: np.True_, lambda: np.str_("a"), lambda: np.datetime64(0, "s"), lambda: np.longdouble(1), lambda: np.complex64(1),
    lambda: X.astype(np.float64), lambda: X.astype(np.float16), lambda: X.astype(np.int8), lambda: X.astype(np.int64),
    lambda: X.astype(np.uint16), lambda: X.astype(np.uint64), lambda: X.astype(bool), lambda: X.astype(np.complex64), lambda: X.astype(np.longdouble),
    lambda: X.astype(object), lambda: X.astype("U3"), lambda: X.astype("S2"), lambda: X.astype("M8[s]"), lambda: X.astype(">f4"), lambda: X.astype(">i8"),
    lambda: np.zeros((2, 3), "f4,i4"), lambda: np.zeros((2, 3), [("a", "f4")]), lambda: np.zeros((2, 3), "V4"), lambda: np.zeros((2, 3), "V0"),
    lambda: np.zeros((), np.float32), lambda: np.zeros((0,), np.float32), lambda: np.zeros((2, 0), np.float32), lambda: np.zeros((1,) * 8, np.float32),
    lambda: np.zeros((1,) * 9, np.float32), lambda: np.zeros((1,) * 33, np.float32), lambda: np.zeros((1,) * 64, np.float32), lambda: np.zeros((3, 2), np.float32),
    lambda: np.zeros((2, 3, 1), np.float32), lambda: np.zeros(3, np.float32), lambda: np.zeros(2, np.float32), lambda: np.zeros((2, 4), np.float32)[:, :3],
    lambda: fresh()[::-1], lambda: fresh()[:, ::-1], lambda: fresh().T, lambda: np.broadcast_to(X[:1], (2, 3)), lambda: read_only(X), unaligned, lambda: huge(2**48),
    lambda: huge(2**48, 2**12), lambda: np.ma.masked_array(X, mask=X > 2), lambda: np.matrix(X),
    lambda: np.rec.array(np.zeros(3, "f4,i4")), lambda: Producer(5), lambda: Producer(None), lambda: Producer(consumed()),
    lambda: Producer(fresh().__dlpack__, (99, 0)), lambda: Producer(fresh().__dlpack__, "ab"), lambda: Producer(fresh().__dlpack__, (2**40, -1)),
    lambda: Producer(fresh().__dlpack__, (2, 99)), lambda: Producer(fresh().__dlpack__, None), lambda: Producer(fresh().T.__dlpack__), lambda: Producer(X.astype("f8").__dlpack__),
    WithoutDevice, Raises, RaisesInside, lambda: WrongExchange(fresh().__dlpack__), Silent, SilentCopy, Incomplete, lambda: tc.asarray(fresh(), device="cpu"),
    lambda: tc.asarray(fresh(), device="cpu").mT, lambda: tc.asarray(read_only(X)), lambda: tc.ones((2, 3), dtype=tc.bfloat16, device="cpu"),
    lambda: tc.ones((2, 3), dtype=tc.float8_e5m2, device="cpu"), lambda: tc.empty((0, 3), device="cpu"), lambda: tc.asarray(huge(2**48)), lambda: tc.asarray(huge(1, 2**48)),
    *(lambda which=which: exchanged(which) for which in range(len(BORROWED))),
]  # fmt: skip
NAMES = ["out", "variant", "device", "stream", "axis", "eps", "alpha", "Out", "no_such_option", "c", "bias", "x", "a"]
WORDS = ["nope", "", "reference", "cpu", "naive", "simt", "cuda", "cuda:0", "cuda:-1", "cuda:99", "cpu:1", "CPU", "gpu\n", "v" * 300]


class BadCall:
    """A right call with one or two things wrong, made from a seed."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.name = draw.choice(sorted(RIGHT))
        args, options = RIGHT[self.name]
        self.args, self.options = list(args), dict(options)
        self.options["device"] = "cpu"
        self.change = ""
        for _ in range(draw.choice([1, 1, 1, 2])):
            self.break_it(draw)
        self.explained = draw.random() < 0.2

    def break_it(self, draw: random.Random) -> None:
        kind = draw.randrange(10)
        which = draw.randrange(len(STRANGE))
        self.change += f"kind {kind}, strange thing {which}; "
        if kind < 4 and self.args:
            self.args[draw.randrange(len(self.args))] = STRANGE[which]()
        elif kind < 6 and len(self.options) > 1:
            self.options[draw.choice(sorted(self.options))] = STRANGE[which]()
        elif kind == 6:
            self.options["out"] = STRANGE[which]()
        elif kind == 7:
            self.options[draw.choice(NAMES)] = STRANGE[which]()
        elif kind == 8:
            self.options[draw.choice(["variant", "device"])] = draw.choice(WORDS)
        elif draw.random() < 0.5 and self.args:
            self.args.pop()
        else:
            self.args.append(STRANGE[which]())

    def run(self) -> Any:
        if self.explained:
            tc.explain(self.name, *self.args, **self.options)
        return tc.ops()[self.name].function(*self.args, **self.options)

    def is_right(self, result: Any) -> bool:
        """Does the reference, in an output of its own, give the same?"""
        options = {**self.options, "variant": "reference", "device": "cpu"}
        for name in ("out", "stream"):
            options.pop(name, None)
        try:
            expected = tc.ops()[self.name].function(*self.args, **options)
        except IndexError:
            return self.options["device"] != "cpu"  # a kernel cannot say that an index is outside
        got, wanted = (r if isinstance(r, tuple) else (r,) for r in (result, expected))
        return all(is_close(g, w) for g, w in zip(got, wanted, strict=True))


def is_close(got: Any, wanted: Any) -> bool:
    a, b = (np.asarray(tc.asarray(x).tolist(), np.float64) for x in (got, wanted))
    loose = "16" in str(wanted.dtype) or "float8" in str(wanted.dtype)
    return a.shape == b.shape and np.allclose(a, b, rtol=2e-2 if loose else 1e-4, atol=1e-4, equal_nan=True)


def problem_of(error: BaseException) -> str:
    """Why the exception is not one that a user may see; empty where it is."""
    if FORBIDDEN.search(str(error)):
        return "the text is the machinery's"
    if isinstance(error, tc.errors.Error):
        return "" if str(error) else "it has no text"
    # Python's own word on names and counts of arguments, and what an argument's own methods throw.
    own = (BufferError, RuntimeError, ValueError) if re.search(r"lies elsewhere|no index|no float|__", str(error)) else ()
    if isinstance(error, TypeError) and re.search(r"argument|required|takes", str(error)):
        return ""
    return "" if own and isinstance(error, own) else "it is not typed"


ANY_ERROR = (
    ArithmeticError, AssertionError, AttributeError, BufferError, ImportError, LookupError, MemoryError, OSError, RuntimeError, SystemError,
    TypeError, ValueError,
)  # fmt: skip
# Others refer to these too.
SHARED = (type(None), bool, int, float, complex, str, bytes, type, type(tc), np.dtype, np.generic, tc.DType)


def references(call: BadCall) -> list[int]:
    return [sys.getrefcount(x) for x in (*call.args, *call.options.values()) if not isinstance(x, SHARED)]


def what_is_wrong(seed: int) -> str:
    """Makes one call; empty where all is well."""
    call = BadCall(seed)
    where = f"seed {seed}: {call.name}: {call.change}"
    before = references(call)
    try:
        result = call.run()
    except ANY_ERROR as error:
        if problem := problem_of(error):
            return f"{where}{problem}: {type(error).__name__}: {error}"
    else:
        steep = any(isinstance(v, (int, float)) and abs(v) > 100 for v in (*call.args, *call.options.values()))
        if not steep and not call.is_right(result):
            return f"{where}a wrong result: {result}"
        del result
    after = references(call)
    return "" if before == after else f"{where}references {before} became {after}"


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_call_is_right(name: str) -> None:
    call = BadCall(0)
    call.name, call.explained, (call.args, call.options) = name, True, RIGHT[name]
    call.options = {**call.options, "device": "cpu"}
    assert call.is_right(call.run())


@pytest.mark.filterwarnings("ignore")
def test_bad_calls_are_typed_errors_or_right_after_all() -> None:
    only = os.environ.get("TC_TEST_SEED")
    seeds = range(int(only), int(only) + 1) if only else range(COUNT)
    wrong: list[str] = []
    for seed in seeds:
        if text := what_is_wrong(seed):
            wrong.append(text)
        if len(wrong) == 20:
            break
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
def test_bad_calls_keep_no_memory() -> None:
    """The same calls again and again; what the first rounds load and cache does not count."""

    def used() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def some_rounds(rounds: int) -> None:
        for _ in range(rounds):
            for seed in range(500):
                what_is_wrong(seed)
        gc.collect()

    some_rounds(2)
    before, objects = used(), len(gc.get_objects())
    rounds = 40 if os.environ.get("TC_TEST_FULL") else 4
    some_rounds(rounds)
    assert len(gc.get_objects()) - objects < 100
    assert used() - before < 4 << 20, "a leak of 2 KiB a call, or less, is found"


def test_an_exchange_api_that_fails_without_an_error_is_a_buffer_error() -> None:
    for obj in (Silent(), SilentCopy()):
        with pytest.raises(BufferError, match="relu: x: the array's DLPack exchange API failed and gave no reason"):
            tc.relu(obj)


def test_memory_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="add: b: .* has no memory"):
        tc.add(X, exchanged(0))
    with pytest.raises(ValueError, match="asarray: obj: .* has no memory"):
        tc.asarray(exchanged(0))


def test_the_generator_finds_a_result_that_is_wrong() -> None:
    call = BadCall(0)
    call.name, call.args, call.options = "relu", [X - 2], {"device": "cpu"}
    assert call.is_right(call.run()) and not call.is_right(X)
