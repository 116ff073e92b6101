# SPDX-License-Identifier: Apache-2.0
"""suites.json holds what it must, and Python expands it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import suites

HEADLINE = {
    "silu", "gelu", "add", "silu_and_mul", "softmax", "layer_norm", "rms_norm", "cross_entropy", "transpose", "sum", "quantize", "rope",
    "batch_norm",
}  # fmt: skip
ROWS = ["32768x1024", "16384x4096", "8192x8192", "4096x32768", "2048x131072"]


def test_every_case_is_filled_in_and_there_once():
    cases = suites.suite("all")
    assert len({(c.op, c.name) for c in cases}) == len(cases) > 120
    for case in cases:
        assert "{" not in case.name
        assert all(suites.SHAPE.fullmatch(shape) for shape in case.shapes), case.name
        assert all("=" in option for option in case.options)


def test_the_headline_has_every_shape_in_both_dtypes():
    cases = suites.suite("headline")
    assert {c.op for c in cases} == HEADLINE
    names = {f"{c.op} {c.name}" for c in cases}
    for dtype in ("bfloat16", "float32"):
        for rows in ROWS:
            cols = rows.split("x")[1]
            wanted = [f"softmax {rows} {dtype}", f"layer_norm {rows} {dtype} weight={cols} bias={cols}",
                      f"rms_norm {rows} {dtype} weight={cols}", f"rms_norm {rows} {dtype} weight={cols} residual={rows}"]  # fmt: skip
            assert names.issuperset(wanted)
    sums = [c for c in cases if c.op == "sum" and not c.at_most_us]
    sizes = {"bfloat16": 2, "float32": 4}
    for case in sums:
        rows, cols = map(int, case.shapes[0].split("x"))
        assert rows * cols * sizes[case.dtype] == 1 << 30
    assert len(sums) == 6


def test_targets_belong_to_their_cases():
    by_name = {f"{c.op} {c.name}": c for c in suites.suite("headline")}
    row = by_name["softmax 8192x8192 bfloat16"]
    assert row.at_least == {"copy": 0.95, "torch": 1.0, "torch.compile": 1.0} and not row.at_most_us
    assert by_name["cross_entropy 8192x131072 8192:int64 bfloat16"].below == {"targets": 131072}
    assert by_name["softmax 512x1024 bfloat16"].at_most_us == {"copy": 1.5}


def test_a_line_of_another_form_and_an_unknown_suite_are_refused():
    assert suites.parse("relu 4x8").name == "4x8 float32"
    with pytest.raises(ValueError, match="there is no --loud"):
        suites.parse("relu 4 --loud")
    with pytest.raises(ValueError, match='no suite "none"; there are headline, '):
        suites.suite("none")
