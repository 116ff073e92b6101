# SPDX-License-Identifier: Apache-2.0
"""Operators of JAX, made from the registry; `tensorcraft.jax` has their functions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _ops
from . import _tensorcraft as native
from ._function_text import function_of, parameters_text, tuple_text
from ._registry import Operator as Record
from .errors import TensorCraftTypeError, Unsupported

jax: Any = importlib.import_module("jax")
np: Any = importlib.import_module("numpy")
_core: Any = importlib.import_module("jax.extend.core")
_ad: Any = importlib.import_module("jax.interpreters.ad")
_batching: Any = importlib.import_module("jax.interpreters.batching")
_mlir: Any = importlib.import_module("jax.interpreters.mlir")
_xla: Any = importlib.import_module("jax.interpreters.xla")

_enable_x64: Any = (jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")).enable_x64
TARGET = "tensorcraft"
"""The name by which XLA knows the handler of all operators."""


class Number(NamedTuple):
    """A setting that is no text: its type is part of it, as 1 == 1.0 == True would be one to JAX; a float is text, as 0.0 == -0.0."""

    type: str
    value: Any


class Settings(tuple[tuple[str, Any], ...]):
    """Names and values as a key that can be hashed, which XLA gets as a dictionary."""

    __slots__ = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> Settings:
        """Without those that are None."""
        return cls((name, _hashable(value)) for name, value in values.items() if value is not None)

    def attributes(self) -> dict[str, Any]:
        """As JAX passes them to XLA."""
        return {name: _attribute(value) for name, value in self}


def _hashable(value: Any) -> Any:
    if isinstance(value, float):
        return Number("float", value.hex())
    if isinstance(value, (bool, int)):
        return Number(type(value).__name__, value)
    if isinstance(value, list):  # of sizes: XLA has dictionaries, whose names it sorts
        return Settings((str(i), sizes) for i, sizes in enumerate(value))
    return Settings.of(value) if isinstance(value, dict) else value


def _attribute(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.attributes()
    if isinstance(value, Number):
        number = float.fromhex(value.value) if value.type == "float" else value.value
        return {"float": np.float64, "int": np.int64, "bool": np.bool_}[value.type](number)
    return value if isinstance(value, str) else np.array(value, dtype=np.int64)


class Result(NamedTuple):
    """What the checks say of a result."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    in_place_of: int  # the array that it is, changed; -1: none


def _refused(operator: str, what: str) -> Unsupported:
    return Unsupported(f"{operator}: {what}")


# The one primitive of all operators. Its parameters are those that Operator.call() gives.
_primitive = _core.Primitive("tensorcraft")
_primitive.multiple_results = True


def _shapes(*arrays: Any, results: tuple[Result, ...], **_: Any) -> list[Any]:
    return [jax.core.ShapedArray(r.shape, np.dtype(getattr(jax.numpy, "bool_" if r.dtype == "bool" else r.dtype))) for r in results]


def _lower(
    context: Any, *arrays: Any, operator: str, variant: str, settings: Settings, tensors: Settings, results: tuple[Result, ...]
) -> Any:
    aliases = {r.in_place_of: i for i, r in enumerate(results) if r.in_place_of >= 0}
    rule = jax.ffi.ffi_lowering(TARGET, operand_output_aliases=aliases)
    attributes = {"operator": operator, "variant": variant, "settings": settings.attributes(), "tensors": tensors.attributes()}
    return rule(context, *arrays, **attributes)


def _refuse_gradients(*_: Any, operator: str, **__: Any) -> Any:
    raise _refused(operator, "an array requires gradients, and TensorCraft computes none; give jax.lax.stop_gradient(array)")


def _refuse_vmap(*_: Any, operator: str, **__: Any) -> Any:
    raise _refused(operator, "jax.vmap cannot map it; give arrays with the batch as a dimension, or use jax.lax.map")


_primitive.def_abstract_eval(_shapes)
# JAX's own way to run one primitive, under `disable_jit` and where `debug_nans` meets a NaN too.
_primitive.def_impl(functools.partial(_xla.apply_primitive, _primitive))
_mlir.register_lowering(_primitive, _lower)
_ad.primitive_jvps[_primitive] = lambda _, __, **parameters: _refuse_gradients(**parameters)
_batching.primitive_batchers[_primitive] = lambda _, __, **parameters: _refuse_vmap(**parameters)


def register(platform: str) -> None:
    """Tells XLA the handlers of a platform; Unsupported if its interface is of another version."""
    try:
        jax.ffi.register_ffi_target(TARGET, native.xla_handlers(platform), platform=platform)
    except Exception as error:
        ours, theirs = native.xla_versions()
        raise Unsupported(
            f"tensorcraft.jax: XLA does not take the handlers for {platform}: TensorCraft speaks version {ours} of XLA's FFI, "
            f"jax {jax.__version__} has {theirs or 'another'}; use another version of jax ({error})"
        ) from error


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _array(value: Any) -> Any:
    return value if isinstance(value, jax.Array) or _is_number(value) else jax.numpy.asarray(value)


def _absent() -> Any:
    """Stands in the place of an input that is None, as XLA has arrays alone."""
    return jax.numpy.zeros((0,), "uint8")


def _spec(value: Any) -> Any:
    """An array as the checks of the registry see it."""
    if isinstance(value, dict):
        return {key: _spec(one) for key, one in value.items()}
    if not isinstance(value, jax.Array):
        return value
    shape = [int(size) for size in value.shape]
    strides = [1] * len(shape)
    for i in reversed(range(len(shape) - 1)):
        strides[i] = strides[i + 1] * shape[i + 1]
    return native.ArraySpec(str(value.dtype), shape, strides, "cuda:0" if jax.default_backend() == "gpu" else "cpu")


def _takes_arrays(p: dict[str, Any]) -> bool:
    return p["kind"] in ("tensor", "named_values") or bool(p["or_tensor"])


def _option(p: dict[str, Any], value: Any) -> Any:
    if p["kind"] == "named_values":
        return {name: _array(one) for name, one in value.items()}
    return value if value is None or not _takes_arrays(p) else _array(value)


def _result(array: Any) -> Any:
    """Whole numbers have 32 bits in JAX unless it is told otherwise."""
    return array.astype("int32") if array.dtype == "int64" and not jax.config.jax_enable_x64 else array


class Operator:
    """How the arguments of an operator become the arrays and attributes of a call of XLA."""

    def __init__(self, record: Record) -> None:
        described = native.describe(record._index)
        self.name, self.index, self.plain = record.name, record._index, record.function
        self.options: list[dict[str, Any]] = described["options"]
        self.inputs: list[str] = [p["name"] for p in described["inputs"]]
        self.may_be_absent: list[bool] = [p["optional"] for p in described["inputs"]]
        self.classes = {key[1:]: value for key, value in _ops.RESULTS.items() if key[0] == record.name}

    def text(self) -> str:
        """A function of the operator's own arguments."""
        options = tuple_text(p["name"] for p in self.options)
        given = f"{tuple_text(self.inputs)}, {options}, variant, out=out, stream=stream, device=device"
        return f"def {self.name}({parameters_text(self.plain)}):\n    return _call({given})\n"

    def call(self, inputs: tuple[Any, ...], options: tuple[Any, ...], variant: str | None, **not_of_jax: Any) -> Any:
        """Traces the call, or makes it."""
        for name, value in not_of_jax.items():
            if value is not None:
                raise _refused(self.name, f"{name} cannot be given to a function of tensorcraft.jax; JAX has its own; leave it out")
        arrays = [_absent() if a is None and may else _array(a) for a, may in zip(inputs, self.may_be_absent)]
        chosen = list(map(_option, self.options, options))
        try:
            specs = tuple(map(_spec, arrays)), tuple(_spec(v) if _takes_arrays(p) else v for p, v in zip(self.options, chosen))
        except TensorCraftTypeError as error:  # a dtype
            raise TensorCraftTypeError(f"{self.name}: {error}") from None
        checked = native.infer(self.index, *specs, variant)
        settings, tensors = {}, {}
        for p, option, value in zip(self.options, chosen, checked["settings"]):
            if p["kind"] == "named_values":
                arrays += [v for v in option.values() if not _is_number(v)]
                numbers = {name: number for name, number in value if number is not None}
                settings[p["name"]] = {"names": " ".join(name for name, _ in value), "numbers": numbers}
        for p, option, value in zip(self.options, chosen, checked["settings"]):
            if isinstance(option, jax.Array) or (p["kind"] == "tensor" and _is_number(option)):
                tensors[p["name"]] = len(arrays)
                arrays.append(option)
            elif p["kind"] != "named_values":
                settings[p["name"]] = value
        for i, (value, (dtype, _)) in enumerate(zip(arrays, checked["arrays"])):
            if _is_number(value):
                with _enable_x64(True):  # of the dtype that the checks gave it, which may have 64 bits
                    arrays[i] = jax.numpy.asarray(value, dtype=dtype)
        results = tuple(Result(*one) for one in checked["results"])
        made = map(_result, _primitive.bind(
            *arrays, operator=self.name, variant=variant or "", settings=Settings.of(settings), tensors=Settings.of(tensors),
            results=results,
        ))  # fmt: skip
        return next(made) if len(results) == 1 else self.classes[tuple(r.name for r in results)](*made)


def _all_functions() -> dict[str, Callable[..., Any]]:
    functions = {}
    for record in _ops.OPERATORS.values():
        operator = Operator(record)
        function = function_of(operator.text(), operator.name, "tensorcraft.jax", _call=operator.call)
        function.__doc__, function.__module__ = operator.plain.__doc__, "tensorcraft.jax"
        functions.update(dict.fromkeys((record.name, *record.aliases), function))
    return functions


for _platform in ("cpu", "CUDA"):
    register(_platform)
FUNCTIONS = _all_functions()
