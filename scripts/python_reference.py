#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Python reference from docstrings, and fails where a public name has none or refers to what is not there.

usage: python_reference.py FOLDER    where Python finds the built package

A field of a class may have a comment at the end of its line instead. `tc.NAME` in a docstring becomes a link.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
import types
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pdoc
import pdoc.doc
import pdoc.render

import tensorcraft as tc
from tensorcraft import _dtypes, _explain, _namespace, _registry, _stream

MODULES = ["tensorcraft", "tensorcraft.cache", "tensorcraft.errors", "tensorcraft.linalg"]
REFERENCE = re.compile(r"\btc((?:\.[A-Za-z]\w*)+)")
RETURNED = (
    _explain.Verdict, _explain.Kernel, _registry.Variant, _stream.TraceRow, _dtypes.FloatInfo, _dtypes.IntegerInfo,
    _namespace.NamespaceInfo,
)  # not for users to make
OBVIOUS = re.compile(r"__\w+__|_\w*")


def field_comments(cls: type) -> dict[str, str]:
    """The comment at the end of the line of each field, or of each attribute that __init__ sets."""
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):  # a class of the native part
        return {}
    comments = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.AnnAssign, ast.Assign)):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
            comments[name] = lines[node.end_lineno - 1][node.end_col_offset :].partition("#")[2].strip()
    return comments


def stubs() -> types.SimpleNamespace:
    """What the stub file declares: signatures of the native part."""
    names: dict[str, Any] = {"__package__": "tensorcraft", "__name__": "tensorcraft"}
    exec((Path(tc.__file__).parent / "_tensorcraft.pyi").read_text(), names)  # noqa: S102, our own file
    return types.SimpleNamespace(**names)


def show_typed(namespace: pdoc.doc.Namespace[Any], declared: Any) -> None:
    """Makes functions of what is callable in the native part, with the signatures of the stub."""
    for name, member in namespace.members.items():
        stub, value = getattr(declared, name, None), getattr(namespace.obj, name, None)
        native = type(value).__name__ in ("nb_func", "nb_method")
        if isinstance(member, pdoc.doc.Class) and stub is not None:
            show_typed(member, stub)
        if isinstance(member, pdoc.doc.Variable) and native:
            member = pdoc.doc.Function(member.modulename, member.qualname, value, member.taken_from)
            namespace.members[name] = member
        if inspect.isfunction(stub) and native:
            assert isinstance(member, pdoc.doc.Function)
            # Annotations are text here, as a stub may name a class before it is there.
            stub.__annotations__ = typing.get_type_hints(stub)
            member.signature = pdoc.doc.Function("tensorcraft", member.qualname, stub, member.taken_from).signature
        # What is native begins its documentation with its signatures.
        member.docstring = re.sub(
            rf"\A(({name})?\(.*\) -> .*\n*)+", "", member.docstring or (native and value.__doc__) or ""
        )


def unresolved(docstring: str) -> Iterator[str]:
    for match in REFERENCE.finditer(docstring):
        thing: Any = tc
        for part in match[1][1:].split("."):
            thing = getattr(thing, part, None)
            if thing is None:
                yield match[0]
                break


def linked(docstring: str, module: str) -> str:
    def link(match: re.Match[str]) -> str:
        first, *rest = match[1][1:].split(".")
        if not hasattr(tc, first):
            return match[0]  # unresolved() says so
        if inspect.ismodule(getattr(tc, first)):
            page = f"tensorcraft/{first}.html" if module == "tensorcraft" else f"{first}.html"
            return f"[tc{match[1]}]({page}{'#' + '.'.join(rest) if rest else ''})"
        page = "" if module == "tensorcraft" else "../tensorcraft.html"
        return f"[tc{match[1]}]({page}#{'.'.join([first, *rest])})"

    # Code stays as it is: indented lines and what stands between backticks.
    parts = re.split(r"(`[^`]*`|^    .*$)", docstring, flags=re.MULTILINE)
    parts[::2] = [REFERENCE.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def walk(doc: pdoc.doc.Doc[Any], module: str) -> Iterator[str]:
    """Completes the documentation of a name and of what is in it; yields what is wrong."""
    if isinstance(doc, pdoc.doc.Class):
        comments = field_comments(doc.obj)
        for member in doc.own_members:
            if not member.docstring or member.docstring.startswith("Alias for field number"):
                member.docstring = comments.get(member.name, "")
    name = f"{doc.modulename}.{doc.qualname}".rstrip(".")
    obvious = OBVIOUS.fullmatch(doc.name) or isinstance(getattr(doc, "default_value", None), tc.DType)
    if not doc.docstring.strip() and not obvious:
        yield f"{name}: has no docstring"
    yield from (f"{name}: refers to {text}, which does not exist" for text in unresolved(doc.docstring))
    doc.docstring = linked(doc.docstring, module)
    if isinstance(doc, pdoc.doc.Namespace):
        for member in doc.own_members if isinstance(doc, pdoc.doc.Class) else doc.members.values():
            if not isinstance(member, pdoc.doc.Module):
                yield from walk(member, module)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__)
        return 2
    warnings.simplefilter("error")
    folder = Path(arguments[0])
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"TensorCraft {tc.__version__}")
    modules = {name: pdoc.doc.Module.from_name(name) for name in MODULES}
    declared = stubs()
    for module in modules.values():
        show_typed(module, declared)
    for cls in RETURNED:
        shown = pdoc.doc.Class("tensorcraft", cls.__name__, cls, (cls.__module__, cls.__qualname__))
        modules["tensorcraft"].members[cls.__name__] = shown
    found = [problem for name, module in modules.items() for problem in walk(module, name)]
    print(*found, sep="\n", end="\n" if found else "")
    for name, module in modules.items():
        page = folder / (name.replace(".", "/") + ".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(pdoc.render.html_module(module, modules))
    (folder / "index.html").write_text(pdoc.render.html_index(modules))
    (folder / "search.js").write_text(pdoc.render.search_index(modules))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
