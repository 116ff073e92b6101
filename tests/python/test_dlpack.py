# SPDX-License-Identifier: Apache-2.0
"""DLPack in and out: no copies, owners kept alive, read-only kept, the C exchange API."""

import ctypes
import gc
import sys
import threading
import types
import weakref
from typing import Any

import numpy as np
import pytest

import tensorcraft as tc


class Producer:
    """An array of a framework that speaks the DLPack protocol and nothing else."""

    def __init__(self, array: Any, legacy: bool = False) -> None:
        self.array, self.legacy = array, legacy

    def __dlpack__(self, **options: Any) -> Any:
        if self.legacy:
            if "max_version" in options:
                raise TypeError("unexpected keyword argument 'max_version'")
            return self.array.__dlpack__()
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("legacy", [False, True])
def test_an_import_shares_memory_and_strides(legacy: bool) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    t = tc.from_dlpack(Producer(array, legacy))
    assert t.data_ptr == array.ctypes.data and t.strides == (4, 2)
    array[2, 1] = -5
    assert t[2, 1].item() == -5


def test_an_export_shares_memory_and_strides() -> None:
    t = tc.zeros((3, 4), device="cpu")
    array = np.from_dlpack(t.mT)
    assert array.ctypes.data == t.data_ptr and array.shape == (4, 3)
    t[1, 2] = 9
    assert array[2, 1] == 9


def test_the_source_of_an_import_can_go_first() -> None:
    array = np.full(1000, 3, np.float32)
    gone = weakref.ref(array)
    t = tc.asarray(array)
    del array
    gc.collect()
    assert gone() is not None and t[-1].item() == 3
    del t
    gc.collect()
    assert gone() is None


def test_the_source_of_an_export_can_go_first() -> None:
    t = tc.full(1000, 3, device="cpu")
    array, view = np.from_dlpack(t), t.numpy()
    del t
    gc.collect()
    assert array[-1] == 3 and view[-1] == 3


VIEWS = [lambda t: t, lambda t: t[1:], lambda t: t.mT, lambda t: t[::2, 5], lambda t: tc.reshape(t, (-1,))]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("export", [np.from_dlpack, tc.Tensor.numpy, np.asarray])
def test_an_export_of_a_view_keeps_the_memory(view: Any, export: Any) -> None:
    array = export(view(tc.full((300, 300), 3.0, device="cpu")))
    gc.collect()
    assert array.tobytes() == np.full(array.shape, 3, np.float32).tobytes()
    array[...] = 4
    assert np.asarray(tc.add(array, 1, device="simt")).tolist() == np.full(array.shape, 5).tolist()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("legacy", [None, False, True])
def test_a_view_of_an_import_keeps_the_memory(view: Any, legacy: bool | None) -> None:
    array = np.full((300, 300), 3, np.float32)
    tensor = view(tc.asarray(array) if legacy is None else tc.from_dlpack(Producer(array, legacy)))
    del array
    gc.collect()
    assert tensor.numpy().tobytes() == np.full(tensor.shape, 3, np.float32).tobytes()
    tc.multiply(tensor, 2, out=tensor)
    assert np.asarray(tc.add(tensor.numpy(), 1, device="simt")).tolist() == np.full(tensor.shape, 7).tolist()


def test_an_unused_capsule_frees_its_share() -> None:
    array = np.ones(4, np.float32)
    gone = weakref.ref(array)
    for version in (None, (1, 0)):
        tc.asarray(array).__dlpack__(max_version=version)
    del array
    gc.collect()
    assert gone() is None


def test_read_only_memory_stays_read_only() -> None:
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    for t in (tc.asarray(array), tc.from_dlpack(Producer(array))):
        assert t.read_only and t[1:].read_only
        assert not np.from_dlpack(t).flags.writeable and not t.numpy().flags.writeable
        with pytest.raises(BufferError, match="read-only"):
            tc.relu(t, out=t)
        with pytest.raises(BufferError, match="only DLPack 1.0 or newer"):
            t.__dlpack__()
    assert tc.asarray([1.0], device="cpu").numpy().flags.writeable


def test_torch_gets_read_only_memory_as_a_copy_alone() -> None:
    def from_dlpack(x: Any, **options: Any) -> Any:
        return x.__dlpack__(max_version=(1, 0), **options)

    # As torch.utils.dlpack has it: a function of Python in a module of torch.
    of_torch = types.FunctionType(from_dlpack.__code__, {**globals(), "__name__": "torch.utils.dlpack"})
    array = np.ones(4, np.float32)
    array.flags.writeable = False
    with pytest.raises(BufferError, match=r"torch has no such tensors; give it a copy, torch\.from_dlpack\(x\.copy\(\)\)"):
        of_torch(tc.asarray(array))
    for given, options in ((tc.asarray(array).copy(), {}), (tc.asarray(array), {"copy": True}), (tc.ones(4), {})):
        assert "dltensor_versioned" in repr(of_torch(given, **options))


def test_the_keywords_of_the_protocol() -> None:
    t = tc.asarray(np.ones(4, np.float32))
    assert t.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(t, copy=True)
    assert copied.ctypes.data != t.data_ptr
    assert np.from_dlpack(t, device="cpu").ctypes.data == t.data_ptr
    with pytest.raises(BufferError, match="the tensor is on cpu"):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError, match="Tensor must be on CUDA device"):
        t.__dlpack__(stream=1)


def test_a_copy_is_made_if_it_is_asked_for() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = tc.asarray(x)

    class Asks:
        def __init__(self, copy: Any) -> None:
            self.copy = copy

        def __dlpack__(self, **options: Any) -> Any:
            return t.__dlpack__(**{**options, "copy": self.copy})

        def __dlpack_device__(self) -> tuple[int, int]:
            return t.__dlpack_device__()

    for copy, shares in ((None, True), (False, True), (np.False_, True), (True, False), (np.True_, False)):
        assert np.shares_memory(np.from_dlpack(Asks(copy)), x) == shares


def test_an_unaligned_tensor_can_be_copied_and_nothing_else() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)

    class Unaligned:
        def __dlpack__(self, **options: Any) -> Any:
            return array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    t = tc.from_dlpack(Unaligned())
    for whole in (t.copy(), tc.copy(t), t.T.copy().T, tc.copy(t, variant="reference")):
        np.testing.assert_array_equal(whole.numpy(), x)
    with pytest.raises(ValueError, match=r"relu: x: address .* is not a multiple of the size of float32; copy the tensor first"):
        tc.relu(t)


def test_unsupported_dtypes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="float64"):
        tc.from_dlpack(Producer(np.ones(2)))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="NumPy has no bfloat16"):
        tc.ones(2, dtype=tc.bfloat16, device="cpu").numpy()


def test_a_producer_gets_back_what_its_package_makes() -> None:
    """A package without from_dlpack gets tc.Tensor; NumPy arrays behind the protocol work as input."""
    result = tc.relu(Producer(np.array([-1.0, 2.0], np.float32)))
    assert isinstance(result, tc.Tensor) and result.tolist() == [0, 2]


# The C structs of DLPack 1.x, to call the exchange API as another library would.
class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    pass


Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter),
    ("flags", ctypes.c_uint64), ("tensor", DLTensor),
]  # fmt: skip
ManagedPointer = ctypes.POINTER(Managed)
SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ManagedPointer), ctypes.c_void_p, SetError
)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ManagedPointer))
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ManagedPointer, ctypes.POINTER(ctypes.py_object))
BORROW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class ExchangeApi(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p), ("allocate", ALLOCATE),
        ("from_object", FROM_OBJECT), ("to_object", TO_OBJECT), ("borrow", BORROW), ("current_stream", STREAM),
    ]  # fmt: skip


def exchange_api() -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ExchangeApi.from_address(get(tc.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def test_the_exchange_api_borrows_without_a_copy() -> None:
    api, t, borrowed = exchange_api(), tc.asarray(np.ones((2, 3), np.float16)), DLTensor()
    assert api.major == 1 and api.borrow(t, ctypes.byref(borrowed)) == 0
    assert borrowed.data == t.data_ptr and borrowed.ndim == 2 and (borrowed.code, borrowed.bits) == (2, 16)
    assert borrowed.shape[:2] == [2, 3] and borrowed.strides[:2] == [3, 1]


def test_the_exchange_api_gives_and_takes_tensors() -> None:
    api, t = exchange_api(), tc.asarray(np.arange(6, dtype=np.int32))
    managed, back = ManagedPointer(), ctypes.py_object()
    assert api.from_object(t, ctypes.byref(managed)) == 0
    pointer = t.data_ptr
    del t
    assert api.to_object(managed, ctypes.byref(back)) == 0
    result = back.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))  # to_object gave us a reference, `value` took its own
    assert isinstance(result, tc.Tensor) and result.data_ptr == pointer and result.tolist() == list(range(6))


def test_the_exchange_api_allocates() -> None:
    api, managed = exchange_api(), ManagedPointer()
    shape = (ctypes.c_int64 * 2)(3, 5)
    prototype = DLTensor(None, 1, 0, 2, 2, 32, 1, shape, None, 0)
    errors: list[bytes] = []
    report = SetError(lambda context, kind, text: errors.append(text))
    assert api.allocate(ctypes.byref(prototype), ctypes.byref(managed), None, report) == 0
    assert managed.contents.tensor.shape[:2] == [3, 5]
    managed.contents.deleter(managed)
    prototype.bits = 64
    assert api.allocate(ctypes.byref(prototype), ctypes.byref(managed), None, report) == -1
    assert b"float64 is not supported" in errors[0]


def test_the_exchange_api_reports_a_wrong_object() -> None:
    with pytest.raises(RuntimeError):
        exchange_api().from_object(object(), ctypes.byref(ManagedPointer()))


def test_the_exchange_api_knows_the_current_stream() -> None:
    stream = ctypes.c_void_p(1)
    assert exchange_api().current_stream(1, 0, ctypes.byref(stream)) == 0 and not stream.value


def test_deleters_may_run_on_any_thread_without_the_gil() -> None:
    api, array = exchange_api(), np.ones(4, np.float32)
    gone = weakref.ref(array)
    shares = []
    for _ in range(4000):
        managed = ManagedPointer()
        api.from_object(tc.asarray(array), ctypes.byref(managed))
        shares.append(managed)
    # A ctypes function pointer is called with the GIL released, as a thread of another library calls it.
    parts = [shares[i::4] for i in range(4)]
    threads = [threading.Thread(target=lambda p=part: [m.contents.deleter(m) for m in p]) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del array
    for _ in range(1000):  # queued decrements run between two instructions of the main thread
        if gone() is None:
            break
    assert gone() is None


def test_an_object_with_the_exchange_api_is_used_through_it() -> None:
    class Other:
        """A framework whose arrays are tensors of ours in disguise: only the table tells."""

        __dlpack_c_exchange_api__ = tc.Tensor.__dlpack_c_exchange_api__

    with pytest.raises(RuntimeError):  # our table refuses objects that are not ours: the error passes through
        tc.relu(Other())


def test_torch_tensors_in_and_out() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 4)
    result = tc.relu(x)
    assert isinstance(result, torch.Tensor)
    torch.testing.assert_close(result, torch.relu(x))
    assert tc.asarray(x).data_ptr == x.data_ptr()
