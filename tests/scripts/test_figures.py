# SPDX-License-Identifier: Apache-2.0
"""benchmarks/figures.py and its cases, as far as they need no GPU: rows, turns and names."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import figures

MODULES = sorted((BENCHMARKS / "cases").glob("*.py"))


def constants(module):
    """{name: value} of `TITLE, REPEATS = "...", 50`"""
    for node in ast.parse(module.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            values = dict(zip((name.id for name in node.targets[0].elts), ast.literal_eval(node.value), strict=True))
            if "TITLE" in values:
                return values
    return {}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_a_module_of_cases_writes_a_file_that_there_is(module):
    said = constants(module)
    titles = [json.loads(file.read_text())["title"] for file in (BENCHMARKS / "results").glob("*.json")
              if '"title"' in file.read_text()]  # fmt: skip
    assert said["TITLE"] in titles and said["REPEATS"] > 0
    functions = {node.name for node in ast.parse(module.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert "rows" in functions


def test_the_command_names_its_modules():
    command = [sys.executable, BENCHMARKS / "figures.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "{" + ",".join(module.stem for module in MODULES) + "}" in done.stdout.replace("\n", "").replace(" ", "")


def test_the_first_candidate_is_timed_beside_the_others(monkeypatch):
    medians = {"ours": 0.5, "copy": 0.25, "two calls": 1.0}
    asked = []

    def interleaved(candidates, repeats, warmup):
        asked.append((list(candidates), repeats, warmup))
        return {name: {"median_ms": medians[name]} for name in candidates}

    monkeypatch.setattr(figures, "interleaved_gpu", interleaved)
    calls = dict.fromkeys(medians, lambda: None)
    assert figures.beside(calls, nbytes=10**9) == {"us": 500.0, "GB/s": 2000.0, "of copy": 0.5, "of two calls": 2.0}
    assert "GB/s" not in figures.beside(calls, repeats=3, warmup=1)
    assert asked == [(list(medians), 50, 10), (list(medians), 3, 1)]


def test_candidates_take_turns_with_other_arrays_and_one_that_declines_is_left_out(monkeypatch, capsys):
    order = []

    def timer(call, turn, sets, graph):
        assert (sets, graph) == (2, True)

        def once():
            call(next(turn))
            return float(len(order))

        return once

    def declines(i):
        raise NotImplementedError("no such window")

    monkeypatch.setattr(figures, "gpu_timer", timer)
    calls = {"a": lambda i: order.append(("a", i)), "none": declines, "b": lambda i: order.append(("b", i))}
    found = figures.in_turn(calls, 2, 3, graph=True)
    assert order == [("a", 0), ("b", 0), ("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 0), ("b", 0)]
    assert found["a"]["median_us"] == 5.0 and found["b"]["runs"] == 3 and list(found) == ["a", "b"]
    assert capsys.readouterr().out == "none: NotImplementedError: no such window\n"
