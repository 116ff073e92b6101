# SPDX-License-Identifier: Apache-2.0
"""Text of the functions that stand before an operator's own, for frameworks with operators of theirs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def tuple_text(texts: Iterable[str]) -> str:
    """A tuple of them."""
    return "(" + "".join([text + ", " for text in texts]) + ")"


def parameters_text(function: Callable[..., Any]) -> str:
    """The parameters of a function, without types."""
    texts = []
    before = None
    for p in inspect.signature(function).parameters.values():
        if before is p.POSITIONAL_ONLY and p.kind is not before:
            texts.append("/")
        if p.kind is p.KEYWORD_ONLY and before is not p.kind:
            texts.append("*")
        texts.append(f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name if p.default is p.empty else f"{p.name}={p.default!r}")
        before = p.kind
    return ", ".join(texts)


def function_of(text: str, name: str, module: str, **names: Any) -> Callable[..., Any]:
    """The function of that name in a text, which may use the names."""
    exec(compile(text, f"<{module} {name}>", "exec"), names)  # noqa: S102  written from the registry
    return names[name]  # type: ignore[no-any-return]
