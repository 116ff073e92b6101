# SPDX-License-Identifier: Apache-2.0
"""What torch must know of an operator, written from the registry: its schema, and text of the functions behind it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from . import _tensorcraft as native
from ._function_text import parameters_text, tuple_text
from ._registry import Operator as Record


def nested_text(value: Any) -> str:
    """Lists of lists, or a word, as text."""
    if isinstance(value, (str, int)):
        return str(value)
    return "(" + "".join([nested_text(v) + ", " for v in value]) + ")"


def nested_of(text: Any) -> Any:
    """The value of such a text."""
    return ast.literal_eval(text) if isinstance(text, str) and text[:1] in "(-0123456789" else text


def settings_text(value: dict[str, Any]) -> str:
    """Names with numbers or words as text: "tile_m=128, schedule=together"."""
    return ", ".join([f"{key}={one}" for key, one in value.items()])


def settings_of(text: str | None) -> dict[str, Any] | None:
    """The value of such a text."""
    if text is None:
        return None
    return {key: _word_of(one) for key, one in [entry.split("=", 1) for entry in text.split(", ") if entry]}


def _word_of(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:  # no number
        return text


def named_of(arrays: Iterable[Any] | None, names: str | None, numbers: str | None) -> dict[str, Any]:
    """The arguments that a caller names: arrays, their names ("x, y"), and numbers ("k=3")."""
    return {**dict(zip((names or "").split(", "), arrays or ())), **(settings_of(numbers) or {})}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, int) else list(value)


class Form(NamedTuple):
    """How torch writes a kind of parameter."""

    type: str
    to_torch: Callable[[Any], Any] | None = None  # makes a value one that torch takes; None: it is one
    back: str = ""  # the function, among those of a text, that makes it the registry's again


# A dtype becomes one of torch where torch is imported.
FORMS = {
    "tensor": Form("Tensor"),
    "boolean": Form("bool"),
    "integer": Form("SymInt"),
    "number": Form("Scalar"),
    "choice": Form("str"),
    "text": Form("str"),
    "dtype": Form("ScalarType"),
    "integers": Form("SymInt[1]", _as_list),
    "integer_lists": Form("str", nested_text, "_nested_of"),
    "settings": Form("str", settings_text, "_settings_of"),
}
HELPERS = {"_nested_of": nested_of, "_settings_of": settings_of, "_named_of": named_of}
"""What the texts call, beside what depends on their use."""


class Argument(NamedTuple):
    """One argument of an operator of torch."""

    name: str
    type: str
    default: Any = ...  # of the schema; `...` if there is none
    optional: bool = False
    keyword: bool = False
    written: str = ""  # the name of the memory that is written: "a"

    def declaration(self) -> str:
        """As a schema has it."""
        alias = f"({self.written}!)" if self.written else ""
        text = self.type.replace("Tensor", "Tensor" + alias) + ("?" if self.optional else "") + " " + self.name
        if self.default is ...:
            return text
        return f'{text}="{self.default}"' if isinstance(self.default, str) else f"{text}={self.default}"

    def parameter(self) -> str:
        """As a function of Python has it."""
        return self.name if self.default is ... else f"{self.name}={self.default!r}"


def _default_of(parameter: dict[str, Any]) -> Any:
    """Of the schema. A dtype that is left out is the registry's own."""
    text, kind = parameter["default"], parameter["kind"]
    if kind == "dtype":
        return None
    if not text:
        return ...
    value, form = ast.literal_eval(text), FORMS[kind]
    return value if value is None or form.to_torch is None else form.to_torch(value)


def _separated(arguments: list[Argument], text: Callable[[Argument], str]) -> str:
    texts = [text(a) for a in arguments if not a.keyword] + ["*"] + [text(a) for a in arguments if a.keyword]
    return ", ".join(texts)


def out_name(output: str) -> str:
    """The argument that gives a result its memory."""
    return output if output.startswith("out") else "out_" + output


class Operator:
    """An operator as torch knows it: the arguments of its schema and how they become those of the registry."""

    def __init__(self, record: Record) -> None:
        described = native.describe(record._index)
        self.name, self.index, self.plain = record.name, record._index, record.function
        self.inputs: list[str] = [p["name"] for p in described["inputs"]]
        self.options: list[dict[str, Any]] = described["options"]
        self.outputs: list[tuple[str, list[str]]] = [(name, when.split()) for name, when in described["outputs"]]
        self.takes = {p["name"]: p["dtypes"] for p in [*described["inputs"], *self.options] if p["kind"] == "tensor"}
        self.named = any(p["kind"] == "named_values" for p in self.options)
        # The inputs that are written are the first results, in their order.
        self.written = sum(p["written"] for p in described["inputs"])
        self.arguments = [
            Argument(p["name"], "Tensor", optional=p["optional"], written=_memory(i) if p["written"] else "")
            for i, p in enumerate(described["inputs"])
        ]
        for p in sorted(self.options, key=lambda p: not p["positional"]):
            self.arguments += self._arguments(p)
        self.arguments.append(Argument("variant", "str", None, optional=True, keyword=True))

    def _arguments(self, p: dict[str, Any]) -> list[Argument]:
        name, keyword = p["name"], not p["positional"]
        if p["kind"] == "named_values":
            # An optional list of arrays does not tell torch on which device they are.
            arrays = Argument("arrays", "Tensor[]", None, True, True) if self.inputs else Argument("arrays", "Tensor[]", keyword=True)
            return [arrays, *(Argument(text, "str", None, True, True) for text in ("names", "numbers"))]
        default = _default_of(p)
        if not self.inputs and not keyword:
            default = ...
        made = [Argument(name, FORMS[p["kind"]].type, default, p["optional"] or default is None, keyword)]
        if p["or_tensor"]:
            made.append(Argument(name + "_tensor", "Tensor", None, True, True))
        return made

    @property
    def results(self) -> list[tuple[str, list[str]]]:
        """The outputs that a call returns: all but the inputs that it writes."""
        return self.outputs[self.written :]

    @property
    def returns(self) -> str:
        """The type of what is returned. torch allows no list of tensors beside memory that is written."""
        if any(when for _, when in self.results) and not self.written:
            return "Tensor[]"
        return "Tensor" if len(self.results) == 1 else _tuple_type(len(self.results))

    def schema(self) -> str:
        """The declaration of the operator."""
        return f"{self.name}({_separated(self.arguments, Argument.declaration)}) -> {self.returns}"

    def out_schema(self) -> str:
        """The declaration of the overload that writes results into memory that the caller gives."""
        return f"{self.name}.out({_separated(self._with_out(), Argument.declaration)}) -> ()"

    def _with_out(self) -> list[Argument]:
        memory = [
            Argument(out_name(name), "Tensor", None if when else ..., bool(when), True, _memory(i))
            for i, (name, when) in enumerate(self.outputs)
        ]
        return [*self.arguments, *memory]

    def kernel_text(self) -> str:
        """A function of torch's arguments that passes those of the registry to `_call`."""
        written = tuple_text(self.inputs[: self.written])
        return self._function_text(self.arguments, f"return _results(_call({self._passed('None')}), {written})")

    def out_text(self) -> str:
        """The same of the overload for given memory, which passes it on in the order of the results."""
        entries = [f"({_condition(when)}, {out_name(name)})" for name, when in self.outputs]
        out = out_name(self.outputs[0][0]) if len(self.outputs) == 1 else f"_memory_of({tuple_text(entries)})"
        return self._function_text(self._with_out(), f"_call({self._passed(out)})")

    def _function_text(self, arguments: list[Argument], statement: str) -> str:
        tensors = tuple_text(a.name for a in arguments if a.type == "Tensor")
        lists = "".join(f" + tuple({a.name} or ())" for a in arguments if a.type == "Tensor[]")
        return (
            f"def {self.name}({_separated(arguments, Argument.parameter)}):\n"
            f"    if _grad_is_on(): _refuse('{self.name}', {tensors}{lists})\n"
            f"    {statement}\n"
        )

    def _passed(self, out: str) -> str:
        options = tuple_text(map(_option_text, self.options))
        return f"{self.index}, {tuple_text(self.inputs)}, {options}, {out}, None, variant, None"

    def public_text(self) -> str:
        """A function of the operator's own arguments: `_traced` in a graph, else the call itself."""
        parameters = inspect.signature(self.plain).parameters.values()
        given = [f"**{p.name}" if p.kind is p.VAR_KEYWORD else f"{p.name}={p.name}" for p in parameters]
        arrays = tuple_text([*self.inputs, *(p["name"] for p in self.options if p["kind"] == "tensor" or p["or_tensor"])])
        named = next((p["name"] for p in self.options if p["kind"] == "named_values"), "")
        options = tuple_text(p["name"] for p in self.options)
        return (
            f"def {self.name}({parameters_text(self.plain)}):\n"
            f"    if _is_compiling(): return _traced({', '.join(given)})\n"
            f"    if _grad_is_on(): _refuse('{self.name}', {arrays}{f' + tuple({named}.values())' if named else ''})\n"
            f"    return _call({self.index}, {tuple_text(self.inputs)}, {options}, out, stream, variant, device)\n"
        )


def _memory(i: int) -> str:
    return chr(ord("a") + i)


def _tuple_type(count: int) -> str:
    return "(" + ", ".join(["Tensor"] * count) + ")"


def _option_text(p: dict[str, Any]) -> str:
    """What the registry takes, of the arguments of torch."""
    name, kind = p["name"], p["kind"]
    if kind == "named_values":
        return "_named_of(arrays, names, numbers)"
    if p["or_tensor"]:
        return f"{name} if {name}_tensor is None else {name}_tensor"
    if kind == "dtype" and p["default"] != "None":
        return f"{p['default']!r} if {name} is None else {name}"
    return f"{FORMS[kind].back}({name})" if FORMS[kind].back else name


def _condition(when: list[str]) -> str:
    """Does a call ask for an output?"""
    words = [f"not _is_given({word[1:]})" if word.startswith("!") else f"_is_given({word})" for word in when]
    return " and ".join(words) or "True"
