# SPDX-License-Identifier: Apache-2.0
"""A public operator has a CPU path, docstring, stub, example and case; every public name is documented."""

import ast
import inspect
import sys
from pathlib import Path

import pytest
from valid_calls import entries

import tensorcraft as tc

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import operators_table

PACKAGE = Path(tc.__file__).parent
OPERATORS = tc.ops()


def stub(name: str) -> ast.Module:
    return ast.parse((PACKAGE / name).read_text())


def test_the_exports_are_the_registered_operators() -> None:
    names = {*OPERATORS, *(alias for o in OPERATORS.values() for alias in o.aliases)}
    results = {cls.__name__ for cls in tc._ops.RESULTS.values()}
    written_over = {"astype", "clip", "matmul"}  # by functions that take more
    assert set(tc._ops.__all__) == (names - written_over) | results and names <= set(tc.__all__)
    assert all(callable(getattr(tc, name)) for name in names)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_a_cpu_path_docstring_and_case(name: str) -> None:
    operator = OPERATORS[name]
    assert {"cpu", "reference"} <= {v.name for v in operator.variants if v.device == "cpu"}
    assert operator.summary and operator.dtypes and all(v.idea for v in operator.variants)
    text = inspect.getdoc(operator.function) or ""
    parameters = inspect.signature(operator.function).parameters
    assert text.startswith(operator.summary) and all(f"\n    {p}: " in text for p in parameters)
    assert {"out", "stream", "variant", "device"} <= set(parameters)
    assert name in entries("cases"), "no case in tests/ops/cases"


def test_every_operator_has_one_valid_call() -> None:
    calls = entries("calls")
    assert {name: len(calls.get(name, [])) for name in OPERATORS} == dict.fromkeys(OPERATORS, 1)
    assert set(calls) <= set(OPERATORS)


def test_docstrings_wrap_and_hold_their_example() -> None:
    for name, operator in OPERATORS.items():
        text = operator.function.__doc__ or ""
        assert max(map(len, text.splitlines())) <= 100, name
        assert f"    Example:\n        >>> {operators_table.examples()[name]}\n" in text, name
        assert all(f"tc.{alias}" in text for alias in operator.aliases), name


def test_nothing_leaks_into_the_package() -> None:
    modules = {name for name, value in vars(tc).items() if inspect.ismodule(value) and not name.startswith("_")}
    imported = {"jax", "torch"}  # there once another test has imported tensorcraft.torch
    modules -= imported
    assert modules == {"cache", "dispatch", "errors", "linalg", "memory", "sparse"}
    assert {name for name in dir(tc) if not name.startswith("_")} - imported == {*tc.__all__, "bool", "newaxis"}  # None, which has no docstring


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_an_example_that_runs(name: str) -> None:
    example = operators_table.examples()[name]
    assert example.startswith(f"tc.{name}(") and operators_table.run(example)


def test_no_example_is_left_of_an_operator_that_went() -> None:
    assert set(operators_table.examples()) <= set(OPERATORS)


def test_the_stub_of_an_operator_has_its_signature() -> None:
    stubs = {f.name: f for f in stub("_ops.pyi").body if isinstance(f, ast.FunctionDef)}
    assert set(stubs) == set(OPERATORS)
    for name, function in stubs.items():
        real = inspect.signature(OPERATORS[name].function).parameters.values()
        last = [function.args.kwarg] if function.args.kwarg else []
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs, *last)]
        assert names == [p.name for p in real]
        assert [a.arg for a in function.args.kwonlyargs] == [p.name for p in real if p.kind is p.KEYWORD_ONLY]


def members(node: ast.ClassDef | ast.Module) -> set[str]:
    found = set()
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found.add(item.name)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found.add(item.target.id)
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            found.add(item.targets[0].id)
    return found


def test_the_native_stub_names_what_the_module_has() -> None:
    tree, native = stub("_tensorcraft.pyi"), tc._native
    public = {n for n in vars(native) if not n.startswith("__")} | {"__version__"}
    assert members(tree) == public
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name != "DType":
            declared, real = members(node), vars(getattr(native, node.name))
            assert declared <= set(real)
            assert {n for n in real if not n.startswith("_")} <= declared
    assert {*tc.DType.__members__, "itemsize", "kind"} == members(next(n for n in tree.body if getattr(n, "name", "") == "DType"))


def test_every_public_name_has_a_docstring() -> None:
    for name in tc.__all__:
        value = getattr(tc, name)
        if not isinstance(value, tc.DType):
            assert inspect.getdoc(value), name
    for cls in (tc.Tensor, tc.Stream, tc.Event, tc.Trace, tc.Explanation, tc.Operator):
        for name, value in vars(cls).items():
            if not name.startswith("_") and (callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{cls.__name__}.{name}"


def test_no_two_operators_share_a_name() -> None:
    names = [*OPERATORS, *(alias for o in OPERATORS.values() for alias in o.aliases)]
    assert len(names) == len(set(names))
