# SPDX-License-Identifier: Apache-2.0
"""The package and a user's code pass mypy --strict with the stubs that are shipped."""

import inspect
import os
import pickle
import re
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pytest
from valid_calls import files, valid_call

import tensorcraft as tc

HERE = Path(__file__).parent
PACKAGE = Path(tc.__file__).parent


def mypy(tmp_path: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *arguments]
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=tmp_path)


class Name:
    """Written as `x`."""

    def __repr__(self) -> str:
        return "x"


def test_the_package_and_its_users_pass_strict_checks(tmp_path: Path) -> None:
    assert (PACKAGE / "py.typed").exists()
    result = mypy(tmp_path, "-p", "tensorcraft")
    assert result.returncode == 0, result.stdout
    result = mypy(tmp_path, str(HERE / "typing_check.py"))
    assert result.returncode == 0, result.stdout


def test_the_stubs_take_every_example_and_every_valid_call(tmp_path: Path) -> None:
    """Both are of the cases files; an array stands there as `x`."""
    lines = ["import numpy as np", "import tensorcraft as tc", "x = np.zeros(1)"]
    lines += [line for file in files() for line in file["examples"]]
    for name in tc.ops():
        args, options = valid_call(name, make=lambda *_: Name())
        given = [*map(repr, args), *(f"{option}={value!r}" for option, value in options.items())]
        lines.append(f"tc.{name}({', '.join(given)})")
    user = tmp_path / "user.py"
    user.write_text("\n".join(lines) + "\n")
    result = mypy(tmp_path, str(user))
    assert result.returncode == 0, result.stdout


ROOT = HERE.parents[1]


def documented_programs() -> list[Path]:
    """Every Python file that a document quotes, and every example."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *ROOT.glob("tensorcraft/ops/*/README.md")]
    quoted = {name for page in pages for name in re.findall(r"<!-- quote: (\S+\.py)\b", page.read_text())}
    assert "examples/quickstart.py" in quoted
    return sorted({*(ROOT / name for name in quoted), *(ROOT / "examples").glob("*.py")})


def test_the_examples_of_the_documents_pass_strict_checks(tmp_path: Path) -> None:
    result = mypy(tmp_path, *map(str, documented_programs()))
    assert result.returncode == 0, result.stdout
    for example in ("sentence_search", "chat", "graph"):  # the packages they use may not be installed
        programs = (ROOT / "examples" / example).glob("*.py")
        result = mypy(tmp_path, "--ignore-missing-imports", *map(str, programs))
        assert result.returncode == 0, result.stdout


WRONG = [
    'tc.softmax(t, axis="a")',
    'tc.gelu([1.0], approximate="erf")',
    'tc.softmax(t, variant="fastest")',
    "tc.softmax(t, axes=1)",
    "tc.softmax(t, 1, 2)",
    'tc.softmax("text")',
    "tc.softmax(None)",
    "tc.astype(t, 3)",
    "tc.relu(t, stream=1.5)",
    "n: int = tc.softmax(t)",
    "m: np.ndarray = tc.topk(t, 2).indices",
    "tc.topk(t, 2).values",
    "tc.explain(3, t)",
    "t.softmax()",
]


def test_each_wrong_call_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import numpy as np", "import tensorcraft as tc", "t = tc.ones((2, 2))", *WRONG]) + "\n")
    result = mypy(tmp_path, "--hide-error-context", str(wrong))
    refused = {int(line) for line in re.findall(r"wrong\.py:(\d+): error", result.stdout)}
    assert [call for number, call in enumerate(WRONG, 4) if number not in refused] == []


def test_functions_have_their_types_at_run_time() -> None:
    for operator in tc.ops().values():
        hints = typing.get_type_hints(operator.function)
        assert set(hints) == {*inspect.signature(operator.function).parameters, "return"}
        names = {v.name for v in operator.variants}
        assert names <= set(typing.get_args(typing.get_args(hints["variant"])[0])), operator.name


def test_results_are_classes_that_can_be_pickled() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = [
        tc.topk(x, 2),
        tc.layer_norm(x, return_stats=True),
        tc.layer_norm(x, residual=x, return_stats=True),
        tc.rms_norm(x, residual=x),
        tc.rope(x.reshape(1, 1, 3, 2), k=x.reshape(1, 1, 3, 2)),
        tc.cross_entropy(x, np.array([0, 1]), return_lse=True),
        tc.batch_norm(x, training=True),
        tc.quantize(x, tc.int8),
        tc.quantize(x, tc.int8, asymmetric=True),
    ]
    for result in results:
        assert getattr(tc, type(result).__name__) is type(result)
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result) and all(map(np.array_equal, again, result))
    assert type(results[0]) is tc.TopkResult and results[0]._fields == ("out", "indices")
    assert inspect.getdoc(tc.TopkResult) == "What topk returns."
    assert all(getattr(tc.TopkResult, field).__doc__ in (tc.topk.__doc__ or "") for field in tc.TopkResult._fields)


def test_an_operator_says_when_it_returns_what() -> None:
    """Whatever options a valid call has, the class of its results is one of the package."""
    for name in tc.ops():
        args, options = valid_call(name)
        result = getattr(tc, name)(*args, **options, device="cpu")
        if isinstance(result, tuple):
            assert type(result) in tc._ops.RESULTS.values(), name
