# SPDX-License-Identifier: Apache-2.0
"""Every public callable: it has a signature, refuses what it does not take, and says by one class that an axis is not there."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_wrong_kinds import FOREIGN
from valid_calls import valid_call

import tensorcraft as tc

MODULES: dict[str, Any] = {
    "tc": tc,
    "tc.cache": tc.cache,
    "tc.dispatch": tc.dispatch,
    "tc.linalg": tc.linalg,
    "tc.memory": tc.memory,
    "tc.sparse": tc.sparse,
}
OPERATORS = {tc.ops()[name].function for name in tc.ops()}
X = np.ones((2, 2), np.float32)


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """What a module offers, by name, but the dtypes and modules."""
    for name in module.__all__:
        found = getattr(module, name)
        if callable(found) and not isinstance(found, tc.DType):
            yield name, found


FUNCTIONS = {
    f"{module}.{name}": found
    for module, owner in MODULES.items()
    for name, found in public(owner)
    if not isinstance(found, type) and found not in OPERATORS
}
CLASSES = {
    f"{module}.{name}": found
    for module, owner in {**MODULES, "tc.errors": tc.errors}.items()
    for name, found in (public(owner) if hasattr(owner, "__all__") else vars(owner).items())
    if isinstance(found, type) and not name.startswith("_")
}


def own_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods that the package gives a class, without those of Python's own classes."""
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        if not name.startswith("_") and owner.__module__.startswith("tensorcraft") and not issubclass(cls, tuple):
            method = getattr(cls, name)
            if callable(method) and not isinstance(method, tc.DType):
                yield name, method


# Signatures.


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES, *(f"tc.{name}" for name in tc.ops())])
def test_has_a_signature(name: str) -> None:
    found = FUNCTIONS.get(name) or CLASSES.get(name) or tc.ops()[name.removeprefix("tc.")].function
    assert str(inspect.signature(found)).startswith("(")
    for method_name, method in own_methods(found) if isinstance(found, type) else ():
        assert str(inspect.signature(method)).startswith("("), method_name


def test_the_signatures_of_what_is_native() -> None:
    assert list(inspect.signature(tc.Stream).parameters) == ["device", "priority"]
    assert list(inspect.signature(tc.Event).parameters) == ["device", "timing"]
    assert list(inspect.signature(tc.Graph).parameters) == ["work", "stream"]
    assert list(inspect.signature(tc.stream_wait_value).parameters) == ["flag", "value", "condition", "stream"]
    assert list(inspect.signature(tc.Event.wait).parameters) == ["self", "value", "stream", "timeout"]
    for cls in (tc.Stream, tc.Event, tc.Graph):
        assert (cls.__doc__ or "").startswith(("An order of", "A point in", "Calls on")), "the signature is no part of the text"


# Axes.

# Another array for those that a matrix does not suit.
OF_AXES: dict[str, tuple[Any, ...]] = {
    "tc.concat": ([X, X],),
    "tc.stack": ([X, X],),
    "tc.moveaxis": (X,),
    "tc.roll": (X, 1),
    "tc.repeat": (X, 2),
    "tc.split": (X, 2),
    "tc.vecdot": (X, X),
    "tc.linalg.vecdot": (X, X),
    "tc.linalg.tensordot": (X, X),
    "tc.tensordot": (X, X),
}
AXES = ("axis", "axes", "destination")


def with_an_axis() -> Iterator[str]:
    for name, function in {**FUNCTIONS, **{f"tc.{n}": tc.ops()[n].function for n in tc.ops()}}.items():
        if set(AXES) & set(inspect.signature(function).parameters):
            yield name


def axis_error(call: Callable[[], Any]) -> bool:
    with pytest.raises(tc.errors.TensorCraftAxisError, match="axis") as caught:
        call()
    return isinstance(caught.value, ValueError) and isinstance(caught.value, IndexError)


@pytest.mark.parametrize("device", [d for d in ("cpu", "simt") if d in tc.devices()])
@pytest.mark.parametrize("name", sorted(with_an_axis()))
def test_an_axis_that_is_not_there_is_one_class(name: str, device: str) -> None:
    if name in FUNCTIONS:
        function, options = FUNCTIONS[name], {}
        arguments: list[Any] = list(OF_AXES.get(name, (X,)))
        here = [tc.asarray(a, device=device) if isinstance(a, np.ndarray) else a for a in arguments]
        here = [[tc.asarray(one, device=device) for one in a] if isinstance(a, list) else a for a in here]
    else:
        function = tc.ops()[name.removeprefix("tc.")].function
        arguments, options = valid_call(name.removeprefix("tc."))
        here, options = arguments, {**options, "device": device}
    if name.endswith("moveaxis"):
        assert axis_error(lambda: function(*here, 7, 0)) and axis_error(lambda: function(*here, 0, -8))
        return
    if name.endswith("tensordot"):
        assert axis_error(lambda: function(*here, axes=([7], [0]))) and axis_error(lambda: function(*here, axes=([0], [-8])))
        return
    (parameter,) = set(AXES) & set(inspect.signature(function).parameters)
    for wrong in (-9,) if name.endswith("vecdot") else (9, -9, 2**40):
        given = (wrong, *range(1, here[0].ndim)) if parameter == "axes" else wrong
        assert axis_error(lambda: function(*here, **{**options, parameter: given})), wrong  # noqa: B023


def test_an_axis_of_a_tensors_methods() -> None:
    x = tc.asarray(X, device="cpu")
    for call in (
        lambda: x.squeeze(2), lambda: x.expand_dims(-4), lambda: x.permute_dims(0, 2), lambda: x.sum(2), lambda: x.argmax(-3),
        lambda: x.take([0], 2), lambda: x.cumulative_sum(2),
    ):  # fmt: skip
        assert axis_error(call)


# Wrong kinds of value.

WRONG: dict[str, Any] = {
    "None": None,
    "text": "a",
    "object": object(),
    "negative": -1,
    "huge": 10**30,
    "float": 1.5,
    "list": [None],
    "dict": {"a": 1},
}
CODES = np.zeros((16, 1), np.int32)
# Arguments that a callable takes, where those of their names do not suit.
CALLS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "tc.broadcast_to": ([X, (2, 2)], {}),
    "tc.reshape": ([X, (4,)], {}),
    "tc.cumulative_prod": ([X], {"axis": 0}),
    "tc.explain": (["softmax", X], {}),
    "tc.tune": (["softmax", X], {"device": "cpu"}),
    "tc.iinfo": (["int8"], {}),
    "tc.isdtype": (["float32", "integral"], {}),
    "tc.kernel": (["__global__ void k(float* y) {}", "k(float* y)"], {}),
    "tc.load_jit": (["wrong"], {}),
    "tc.make_cpp_args": ([1], {}),
    "tc.result_type": (["float32"], {}),
    "tc.searchsorted": ([X[0], X[0]], {}),
    "tc.pack_weight": ([np.ones((128, 8), np.float32)], {"format": "int4"}),
    "tc.pack_conv_weight": ([np.ones((2, 2, 3, 3), np.float32)], {}),
    "tc.pack_weight_from_gptq": ([CODES, np.zeros((1, 1), np.int32), np.ones((1, 8), np.float16)], {}),
    "tc.linalg.outer": ([X[0], X[0]], {}),
    "tc.outer": ([X[0], X[0]], {}),
    "tc.sparse.csr": ([[1.0], [0], [0, 1, 1]], {"shape": (2, 2)}),
    "tc.sparse.csc": ([[1.0], [0], [0, 1, 1]], {"shape": (2, 2)}),
    "tc.trace": ([], {}),
    "MemoryPool.allocate": ([64], {}),
    "Scheduler.submit": ([int], {}),
    "TransferEngine.copy": ([X], {"out": tc.ones((2, 2), device="cpu")}),
    "TransferEngine.to": ([X, "cpu"], {}),
    "PackedConvWeight.as_layout": (["nchw"], {}),
    "PackedWeight.matmul": ([np.ones((2, 128), np.float32)], {}),
    "Event.wait": ([-1], {}),
    "Event.synchronize": ([-1], {"timeout": 1.0}),
    "Operator.__call__": ([X], {}),
    "Tensor.reshape": ([4], {}),
    "Tensor.permute_dims": ([1, 0], {}),
    "tc.PackedWeight": ([tc.zeros((8, 64), "uint8", "cpu"), tc.ones((8, 1), device="cpu")], {}),
    "tc.PackedConvWeight": ([tc.ones((2, 2, 3, 3), device="cpu"), "nchw"], {}),
    "tc.Event": (["cpu"], {}),
    "tc.Graph": ([int], {}),
    "tc.MemoryPool": ([1 << 20, "cpu"], {}),
    "tc.Scheduler": (["cpu"], {}),
    "tc.TransferEngine": (["cpu"], {}),
}
BY_NAME: dict[str, Any] = {
    "x": X, "x1": X, "x2": X, "obj": X, "w": X, "a": tc.sparse.from_dense(X, device="cpu"), "b": X, "arrays": [X, X], "array": X,
    "shape": (2,), "device": "cpu", "dtype": "float32", "type": "float32", "from_": "float32", "to": "float32", "axis": 0,
    "source": 0, "destination": 0, "shift": 1, "repeats": 2, "repetitions": 2, "fill_value": 1, "indices_or_sections": 2,
    "start": 0, "stop": 3, "num": 3, "n_rows": 2, "n_cols": 2, "path": "there_is_none", "bytes": 0, "count": 3, "launches": 0,
    "flag": np.ones(1, np.int32), "value": 1, "quota": 0, "block": 1, "qweight": CODES, "qzeros": CODES, "scales": X,
    "begin": tc.Event("cpu"), "end": tc.Event("cpu"), "key": (1, 1),
}  # fmt: skip


# Makes an object of each class whose methods a program calls.
INSTANCES: dict[str, Callable[[], Any]] = {
    "Copy": lambda: tc.TransferEngine("cpu").to(X, "cpu"),
    "Event": lambda: tc.Event("cpu"),
    "MemoryPool": lambda: tc.MemoryPool(1 << 24, "cpu"),
    "Operator": lambda: tc.ops()["softmax"],
    "PackedConvWeight": lambda: tc.pack_conv_weight(np.ones((2, 2, 3, 3), np.float32)),
    "PackedWeight": lambda: tc.pack_weight(np.ones((128, 8), np.float32), format="int4"),
    "Scheduler": lambda: tc.Scheduler("cpu"),
    "Task": lambda: tc.Scheduler("cpu").submit(int),
    "Tensor": lambda: tc.ones((2, 2), device="cpu"),
    "Trace": tc.Trace,
    "TransferEngine": lambda: tc.TransferEngine("cpu"),
    "sparse.Matrix": lambda: BY_NAME["a"],
    "kernel": lambda: tc.kernel("__global__ void k(float* y) {}", "k(float* y)", device="simt"),
}


class TooLong(BaseException):
    """A call that did not end."""


@pytest.fixture
def ends(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place of its own, and calls that may take seconds at most."""

    def stop(*_: Any) -> None:
        raise TooLong

    monkeypatch.chdir(tmp_path)
    default, handler = tc.default_device(), signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, handler)
    tc.set_default_device(default)
    tc.dispatch.record(False)


def refused(call: Callable[[], Any], what: str) -> None:
    """A result, or an error of ours in our words."""
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        call()
    except tc.errors.Error as error:
        assert str(error) and not FOREIGN.search(str(error)), f"{what}: {error}"
    except (Exception, TooLong) as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def walk(name: str, function: Callable[..., Any]) -> None:
    """Gives each parameter each wrong kind of value, beside arguments that the others take."""
    parameters = list(inspect.signature(function).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if name in CALLS:
        arguments, options = CALLS[name]
    else:
        arguments = [BY_NAME[p.name] for p in needed if p.kind is not p.KEYWORD_ONLY]
        options = {p.name: BY_NAME[p.name] for p in needed if p.kind is p.KEYWORD_ONLY}
    for place, parameter in enumerate(parameters):
        for kind, value in WRONG.items():
            given, by_name = list(arguments), dict(options)
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                given = [*given[:place], value]
            elif parameter.kind is parameter.KEYWORD_ONLY or place > len(given):
                by_name[parameter.name] = value
            else:
                given[place : place + 1] = [value]
                by_name.pop(parameter.name, None)
            refused(lambda: function(*given, **by_name), f"{name}: {parameter.name}: {kind}")  # noqa: B023


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_refuses_wrong_kinds(name: str) -> None:
    walk(name, FUNCTIONS[name])


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("name", INSTANCES)
def test_a_method_refuses_wrong_kinds(name: str) -> None:
    instance = INSTANCES[name]()
    for method, _ in own_methods(type(instance)):
        if method not in tc.ops():
            walk(f"{name}.{method}", getattr(instance, method))


@pytest.mark.usefixtures("ends")
@pytest.mark.parametrize("name", [n for n, c in CLASSES.items() if n.startswith("tc.") and not issubclass(c, (tuple, Exception))])
def test_a_constructor_refuses_wrong_kinds(name: str) -> None:
    if name in ("tc.DType", "tc.Operator"):
        pytest.skip("an enumeration of Python's, and a record that the package makes")
    cls = CLASSES[name]
    if name in ("tc.Task", "tc.Copy", "tc.JitModule", "tc.sparse.Matrix"):
        count = len(inspect.signature(cls).parameters)
        for value in WRONG.values():
            with pytest.raises(tc.errors.TensorCraftTypeError, match="is not made by its class; use"):
                cls(*[value] * count)
        return
    walk(name, cls)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.submit(int, after=s.submit(int)), "Scheduler: after must be a list of tasks of this scheduler, got Task"),
        (lambda s: s.submit(3), "Scheduler: work must be a function, got int"),
        (lambda _: tc.Scheduler("cpu", shares=1), "Scheduler: shares must be a dict by stream, got int"),
        (lambda _: tc.tune("softmax", X, seconds="a"), "tune: seconds must be a number, got str"),
        (lambda _: tc.tune("softmax", X, every="a"), "tune: every must be True or False, got str"),
        (lambda _: tc.memory.pinned(None), "shape must be an integer or a sequence of integers, got NoneType"),
        (lambda _: tc.isdtype("float32", ["integral"]), r"dtype \['integral'\] is not supported"),
    ],
)
def test_the_text_names_argument_value_and_what_is_accepted(call: Callable[[Any], Any], text: str) -> None:
    with tc.Scheduler("cpu") as scheduler, pytest.raises(tc.errors.TensorCraftTypeError, match=text):
        call(scheduler)
