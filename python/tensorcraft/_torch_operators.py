# SPDX-License-Identifier: Apache-2.0
"""Operators of torch, made from the registry; `tensorcraft.torch` has their functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

from . import _ops
from . import _tensorcraft as native
from ._function_text import function_of
from ._torch_schema import FORMS, HELPERS, Operator, out_name, settings_text
from .errors import TensorCraftTypeError, Unsupported

torch: Any = importlib.import_module("torch")
_library = torch.library.Library("tensorcraft", "DEF")


def _refuse(operator: str, values: Iterable[Any]) -> None:
    """The functions compute no gradients, and a result without them would end a chain without a word."""
    for value in values:
        try:
            if value is None or not value.requires_grad:
                continue
        except AttributeError:  # no tensor of torch
            continue
        raise Unsupported(
            f"{operator}: an array requires gradients, and TensorCraft computes none; call it under torch.no_grad() "
            "or torch.inference_mode(), or give array.detach()"
        )


def _is_given(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (value is not None and value is not False)


def _memory_of(entries: tuple[tuple[bool, Any], ...]) -> Any:
    """The memory of the results that a call asks for."""
    wanted = [memory for is_wanted, memory in entries if is_wanted]
    return tuple(wanted) if len(wanted) > 1 else wanted[0]


def _as_list(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def _results(operator: Operator) -> Callable[[Any, tuple[Any, ...]], Any]:
    """How results become what the schema says, beside the inputs that are written or None."""
    count = len(operator.results)

    def behind_written(results: Any, written: tuple[Any, ...]) -> Any:
        all_results = _as_list(results)
        made = all_results[sum(one is not None for one in written) :]
        made += [all_results[0].new_empty(0) for _ in range(count - len(made))]  # a result that is not asked for is empty
        return made[0] if count == 1 else tuple(made) if count else None

    if operator.written:
        return behind_written
    return (lambda results, _: _as_list(results)) if operator.returns == "Tensor[]" else lambda results, _: results


def _spec(value: Any) -> Any:
    """A tensor as the checks of the registry see it; sizes become numbers."""
    if isinstance(value, dict):
        return {key: _spec(one) for key, one in value.items()}
    if not isinstance(value, torch.Tensor):
        return value
    shape, strides = [int(size) for size in value.shape], [int(stride) for stride in value.stride()]
    return native.ArraySpec(str(value.dtype).removeprefix("torch."), shape, strides, str(value.device))


def _tensors(values: Iterable[Any]) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, dict):
            found += _tensors(value.values())
        elif isinstance(value, torch.Tensor):
            found.append(value)
    return found


def _infer(index: int, inputs: tuple[Any, ...], options: tuple[Any, ...], variant: str | None) -> list[Any]:
    checked = native.infer(index, tuple(map(_spec, inputs)), tuple(map(_spec, options)), variant)
    return checked["results"]  # type: ignore[no-any-return]


def _fake_call(
    index: int, inputs: tuple[Any, ...], options: tuple[Any, ...], out: Any, stream: Any, variant: str | None, device: Any
) -> Any:
    """What a call returns, without its elements."""
    beside = _tensors((*inputs, *options))[0]
    specs = _infer(index, inputs, options, variant)
    made = [
        inputs[place] if place >= 0 else beside.new_empty(shape, dtype=getattr(torch, dtype))
        for _, dtype, shape, place in specs
    ]
    return tuple(made) if len(made) > 1 else made[0]


def _fake_call_out(
    index: int, inputs: tuple[Any, ...], options: tuple[Any, ...], out: Any, stream: Any, variant: str | None, device: Any
) -> None:
    """Does the memory have the dtypes and shapes of the results?"""
    given = out if isinstance(out, tuple) else (out,)
    for (name, dtype, shape, _), memory in zip(_infer(index, inputs, options, variant), given):
        if memory is not None and (str(memory.dtype) != f"torch.{dtype}" or tuple(memory.shape) != shape):
            raise TensorCraftTypeError(
                f"{out_name(name)}: the result is {dtype}{list(shape)}, "
                f"and the memory is {str(memory.dtype).removeprefix('torch.')}{list(memory.shape)}"
            )


def _made(text: str, name: str, **names: Any) -> Callable[..., Any]:
    """The function of a text, which may use the names."""
    names = {**HELPERS, "_grad_is_on": torch.is_grad_enabled, "_refuse": _refuse, **names}
    return function_of(text, name, "tensorcraft.torch", **names)


def _register(name: str, schema: str, call: Callable[..., Any], fake: Callable[..., Any]) -> None:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        _library.impl(name, call, key)
    torch.library.register_fake(f"tensorcraft::{name}", fake, lib=_library)


def _implement(operator: Operator) -> None:
    """The same text computes, with the registry's call, and says what would be computed, with its checks."""
    name, results = operator.name, _results(operator)
    call, fake = (
        _made(operator.kernel_text(), name, _call=one, _results=results) for one in (native.call, _fake_call)
    )
    _register(name, operator.schema(), call, fake)
    if operator.written:
        return
    call, fake = (
        _made(operator.out_text(), name, _call=one, _memory_of=_memory_of, _is_given=_is_given)
        for one in (native.call, _fake_call_out)
    )
    _register(f"{name}.out", operator.out_schema(), call, fake)


def _number_beside(value: Any, beside: Any, takes: tuple[Any, ...]) -> Any:
    """A number where an array may stand, of the dtype that a call gives it.

    It is float32 where the argument takes that and not the dtype of the array beside it, else that dtype if it holds the
    number's kind.
    """
    fits = beside.dtype.is_floating_point or (isinstance(value, int) and beside.dtype != torch.bool)
    dtype = beside.dtype if fits else (torch.int64 if isinstance(value, int) else torch.float32)
    if torch.float32 in takes and beside.dtype not in takes:
        dtype = torch.float32
    return torch.full((), value, dtype=dtype, device=beside.device)


def _dtype_of(value: Any) -> Any:
    return value if isinstance(value, torch.dtype) else getattr(torch, str(value))


def _traced(operator: Operator) -> Callable[..., Any]:
    """What a function is while torch.compile traces it. It takes every parameter by name."""
    overloads = getattr(torch.ops.tensorcraft, operator.name)
    entry = overloads.default
    entry_out = None if operator.written else overloads.out
    forms: dict[str, Any] = {p["name"]: _dtype_of if p["kind"] == "dtype" else FORMS[p["kind"]].to_torch
                             for p in operator.options if p["kind"] != "named_values"}  # fmt: skip
    inputs, named, name_of, written, outputs = operator.inputs, operator.named, operator.name, operator.written, operator.outputs
    pairs = [p["name"] for p in operator.options if p["or_tensor"]]
    takes = {name: tuple([getattr(torch, dtype) for dtype in dtypes]) for name, dtypes in operator.takes.items()}
    classes = {key[1:]: value for key, value in _ops.RESULTS.items() if key[0] == operator.name}

    def traced(*, out: Any = None, stream: Any = None, device: Any = None, variant: Any = None, **options: Any) -> Any:
        if stream is not None or device is not None:
            raise Unsupported(f"{name_of}: stream and device cannot be given in a graph; torch has the stream")
        chosen: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in options.items():
            if name in inputs:
                chosen[name] = value
            elif name in forms:
                form = forms[name]
                chosen[name] = value if form is None or value is None else form(value)
            else:
                others[name] = value
        for name in pairs:
            if isinstance(chosen.get(name), torch.Tensor):
                chosen[name + "_tensor"] = chosen.pop(name)
        beside = None
        for value in [*chosen.values(), *others.values()]:
            if beside is None and isinstance(value, torch.Tensor):
                beside = value
        for name, dtypes in takes.items():
            if isinstance(chosen.get(name), (bool, int, float)):
                chosen[name] = _number_beside(chosen[name], beside, dtypes)
        if named:
            chosen["arrays"] = [v for v in others.values() if isinstance(v, torch.Tensor)]
            chosen["names"] = ", ".join([k for k, v in others.items() if isinstance(v, torch.Tensor)])
            chosen["numbers"] = settings_text({k: v for k, v in others.items() if not isinstance(v, torch.Tensor)})
        names = []
        for output, when in outputs:
            if all(_is_given(options.get(word.lstrip("!"))) != word.startswith("!") for word in when):
                names.append(output)
        if out is not None and entry_out is not None:
            given_out = out if isinstance(out, tuple) else (out,)
            for output, memory in zip(names, given_out):
                chosen[out_name(output)] = memory
            entry_out(**chosen, variant=variant)
            return classes[tuple(names)](*given_out) if len(names) > 1 else given_out[0]
        made = entry(**chosen, variant=variant)
        results = [chosen[name] for name in inputs[:written] if chosen[name] is not None]
        if made is not None:
            results += list(made) if isinstance(made, (list, tuple)) else [made]
        results = results[: len(names)]
        return classes[tuple(names)](*results) if len(results) > 1 else results[0]

    return traced


def _function(operator: Operator) -> Callable[..., Any]:
    """What a user calls: outside of a graph the call itself."""
    traced, name = TRACED[operator.name], operator.name
    compiling = torch.compiler.is_compiling
    function = _made(operator.public_text(), name, _call=native.call, _is_compiling=compiling, _traced=traced)
    function.__doc__, function.__module__ = operator.plain.__doc__, "tensorcraft.torch"
    return function


def _all_functions() -> dict[str, Callable[..., Any]]:
    functions = {}
    for record in _ops.OPERATORS.values():
        operator = Operator(record)
        _implement(operator)
        TRACED[operator.name] = _traced(operator)
        functions.update(dict.fromkeys((record.name, *record.aliases), _function(operator)))
    return functions


TRACED: dict[str, Callable[..., Any]] = {}
"""What functions are while torch.compile traces them, by the operator's name."""
FUNCTIONS = _all_functions()
