# SPDX-License-Identifier: Apache-2.0
"""How the figure scripts time."""

import json
import math
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import timing


def test_many_calls_are_timed_at_once_and_in_turns() -> None:
    order: list[str] = []
    given: list[int] = []

    def quick(call: int) -> None:
        given.append(call)
        order.append("quick")

    def slow(call: int) -> None:
        order.append("slow")
        time.sleep(0.001)

    found = timing.interleaved_many({"quick": quick, "slow": slow}, rounds=3, calls=4)
    assert order == (["quick"] * 4 + ["slow"] * 4) * 3
    assert given == [0, 1, 2, 3] * 3
    assert found["slow"]["runs"] == 3
    assert found["slow"]["median_ms"] >= 1  # of one call
    assert found["quick"]["median_ms"] < 1


def test_a_results_file_has_a_line_for_each_row_and_seven_digits() -> None:
    rows = [{"name": "a", "ms": 1 / 3, "bytes": 134217728.0, "seed": 1234567890123}, {"name": "b", "ms": [2e-9 / 3, math.nan]}]
    text = timing.text_of({"title": "t", "rows": rows, "lost": []})
    assert text.splitlines() == [
        "{",
        ' "title": "t",',
        ' "rows": [',
        '  {"name": "a", "ms": 0.3333333, "bytes": 134217728.0, "seed": 1234567890123},',
        '  {"name": "b", "ms": [6.666667e-10, NaN]}',
        " ],",
        ' "lost": []',
        "}",
    ]


def test_the_committed_files_are_of_that_form() -> None:
    for file in sorted((timing.ROOT / "benchmarks" / "results").glob("*.json")):
        lines, document = file.read_text().splitlines(), json.loads(file.read_text())
        rows = sum(len(value) for value in document.values() if isinstance(value, list) and value and isinstance(value[0], dict))
        lists = sum(isinstance(value, list) and bool(value) and isinstance(value[0], dict) for value in document.values())
        assert len(lines) == 2 + len(document) + rows + lists, f"{file.name}: run benchmarks/timing.py's text_of on it"
