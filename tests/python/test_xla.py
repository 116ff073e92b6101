# SPDX-License-Identifier: Apache-2.0
"""The handlers that XLA calls, called without XLA: what they say of themselves, a call, and calls that they do not read."""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np
import pytest

import tensorcraft as tc
from tensorcraft import _tensorcraft as native

METADATA, BUFFER, FLOAT32, INT64 = 1, 1, 11, 5
DICTIONARY, SCALAR, TEXT = 2, 3, 4


def struct(**fields):
    """A struct of XLA begins with its size and its extensions."""
    return type("Struct", (ctypes.Structure,), {"_fields_": [("bytes", c_size_t), ("extensions", c_void_p), *fields.items()]})


Version = struct(major=c_int, minor=c_int)
Buffer = struct(dtype=c_int32, data=c_void_p, rank=c_int64, dims=POINTER(c_int64))
Buffers = struct(size=c_int64, types=POINTER(c_int32), buffers=POINTER(c_void_p))
Attributes = struct(size=c_int64, kinds=POINTER(c_int32), names=POINTER(c_void_p), values=POINTER(c_void_p))
Api = struct(version=Version, internal=c_void_p, functions=c_void_p * 18)
Call = struct(api=c_void_p, context=c_void_p, stage=c_int32, arguments=Buffers, results=Buffers, attributes=Attributes, future=c_void_p)
ErrorRequest = struct(message=c_char_p, code=c_int32)


class Text(ctypes.Structure):
    _fields_ = (("data", c_char_p), ("size", c_size_t))


class Scalar(ctypes.Structure):
    _fields_ = (("dtype", c_int32), ("value", c_void_p))


class Metadata(ctypes.Structure):
    _fields_ = (("bytes", c_size_t), ("version", Version), ("traits", c_uint32))


class MetadataExtension(ctypes.Structure):
    _fields_ = (("bytes", c_size_t), ("type", c_int32), ("next", c_void_p), ("metadata", c_void_p))


class Xla:
    """What XLA is to a handler; keeps alive what its calls point to."""

    def __init__(self, platform="cpu", stage="execute", version=(0, 3)):
        self.kept, self.errors = [], []
        capsule = native.xla_handlers(platform)[stage]
        address = ctypes.PyDLL(None).PyCapsule_GetPointer
        address.restype, address.argtypes = c_void_p, [ctypes.py_object, c_char_p]
        self.handler = ctypes.CFUNCTYPE(c_void_p, c_void_p)(address(capsule, None))
        create = self.keep(ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorRequest))(self.create_error))
        functions = (c_void_p * 18)(ctypes.cast(create, c_void_p))
        self.api = Api(ctypes.sizeof(Api), None, Version(ctypes.sizeof(Version), None, *version), None, functions)

    def keep(self, value):
        self.kept.append(value)
        return value

    def pointer(self, value):
        return ctypes.cast(ctypes.pointer(self.keep(value)), c_void_p)

    def create_error(self, request):
        self.errors.append((request.contents.code, request.contents.message.decode()))
        return 1

    def text(self, text):
        return Text(text.encode(), len(text.encode()))

    def attributes(self, entries):
        """Of names with a text, a whole number or a dictionary."""
        kinds, values = [], []
        for value in entries.values():
            if isinstance(value, dict):
                kinds.append(DICTIONARY)
                values.append(self.attributes(value))
            elif isinstance(value, str):
                kinds.append(TEXT)
                values.append(self.text(value))
            else:
                kinds.append(SCALAR)
                values.append(Scalar(INT64, self.pointer(c_int64(value))))
        count = len(entries)
        names = self.keep((c_void_p * count)(*[self.pointer(self.text(name)) for name in entries]))
        pointers = self.keep((c_void_p * count)(*[self.pointer(value) for value in values]))
        return Attributes(ctypes.sizeof(Attributes), None, count, self.keep((c_int32 * count)(*kinds)), names, pointers)

    def buffers(self, arrays):
        all_buffers = []
        for a in arrays:
            dims = self.keep((c_int64 * a.ndim)(*a.shape))
            all_buffers.append(self.pointer(Buffer(ctypes.sizeof(Buffer), None, FLOAT32, a.ctypes.data, a.ndim, dims)))
        count = len(arrays)
        pointers = self.keep((c_void_p * count)(*all_buffers))
        return Buffers(ctypes.sizeof(Buffers), None, count, self.keep((c_int32 * count)(*[BUFFER] * count)), pointers)

    def call(self, arguments=(), results=(), extension=None, size=None, **entries):
        """Is the handler content?"""
        arrays = self.buffers(arguments), self.buffers(results)
        frame = Call(size or ctypes.sizeof(Call), extension, self.pointer(self.api), None, 3, *arrays, self.attributes(entries))
        return self.handler(self.pointer(frame)) is None

    def metadata(self):
        said = Metadata(ctypes.sizeof(Metadata), Version(ctypes.sizeof(Version), None, 9, 9), 9)
        asked = MetadataExtension(ctypes.sizeof(MetadataExtension), METADATA, None, self.pointer(said))
        assert self.call(extension=self.pointer(asked))
        return (said.version.major, said.version.minor), said.traits


@pytest.mark.parametrize(("theirs", "ours"), [((0, 3), (0, 3)), ((0, 1), (0, 1)), ((0, 7), (0, 3)), ((1, 0), (0, 3))])
def test_registration_hears_a_version_that_both_know(theirs, ours):
    assert Xla(version=theirs).metadata()[0] == ours
    assert native.xla_versions() == ("0.3", ".".join(map(str, theirs)))


def test_only_launches_on_a_gpu_may_be_recorded():
    assert [Xla(*where).metadata()[1] for where in (("cpu", "execute"), ("CUDA", "execute"), ("CUDA", "initialize"))] == [0, 1, 1]
    with pytest.raises(ValueError, match="there are cpu and CUDA"):
        native.xla_handlers("tpu")


def test_a_call_runs_an_operator():
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    out = np.full_like(x, np.nan)
    xla = Xla()
    assert xla.call([x], [out], operator="softmax", variant="", settings={"axis": 0}, tensors={}), xla.errors
    np.testing.assert_array_equal(out, tc.softmax(x, axis=0, device="cpu"))


@pytest.mark.parametrize(
    ("entries", "code", "text"),
    [
        ({}, 3, "the call has no attribute operator"),
        ({"operator": "softmaxx", "variant": "", "settings": {}, "tensors": {}}, 3, "softmax"),
        ({"operator": "softmax", "variant": "", "settings": {"axis": 7}, "tensors": {}}, 3, "softmax: axis must be in"),
        ({"operator": "softmax", "variant": "", "settings": {}, "tensors": {"scale": 5}}, 3, "softmax: the call has no array 5"),
        ({"operator": "softmax", "variant": "wgma", "settings": {}, "tensors": {}}, 3, "no variant is named"),
    ],
)
def test_a_wrong_call_is_an_error_of_xla(entries, code, text):
    x = np.ones((3, 8), np.float32)
    xla = Xla()
    assert not xla.call([x], [x.copy()], **entries)
    assert xla.errors[0][0] == code and text in xla.errors[0][1]


@pytest.mark.parametrize(("version", "size"), [((1, 0), None), ((0, 3), 64)])
def test_a_call_of_another_layout_is_refused(version, size):
    xla = Xla(version=version)
    assert not xla.call(size=size, operator="softmax")
    assert xla.errors[0][0] == 12 and "use another version of jax" in xla.errors[0][1]
