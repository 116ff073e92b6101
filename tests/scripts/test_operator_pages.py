# SPDX-License-Identifier: Apache-2.0
"""What an operator's page must have: each part that is taken away is missed."""

import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import operator_pages as pages
import results_table

MADE_UP = Path(__file__).parents[1] / "cli" / "made_up_results.json"
RUNGS = {"00_naive.cuh": "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n// One thread, one output.\n"}
PAGE = """# lift

What it does.

| rung | idea |
| --- | --- |
| `naive` | one thread |

<!-- tests -->
<!-- /tests -->

## Measured

<!-- results: short lift -->
<!-- /results -->
"""


def found(text=PAGE, rungs=RUNGS, measured=frozenset({"lift"})):
    return list(pages.problems("lift", text, set(measured), rungs))


def test_a_page_with_all_it_must_have_passes():
    assert found() == [] and found(PAGE.replace("short", "ladder")) == []


@pytest.mark.parametrize(("part", "instead", "problem"), [
    ("What it does.\n\n", "", "no introduction follows the title"),
    ("`naive`", "`other`", "the page does not name the rung naive"),
    ("results: short lift", "results: drop", "lift was measured, and the page has no region for it"),
    ("<!-- tests -->", "", "no region names its tests"),
])  # fmt: skip
def test_a_part_that_is_missing_is_named(part, instead, problem):
    assert found(PAGE.replace(part, instead)) == [f"lift: {problem}"]


def test_a_rung_opens_with_what_is_new():
    bare = {"00_naive.cuh": RUNGS["00_naive.cuh"].replace("// One thread, one output.", "#include")}
    assert found(rungs=bare) == ["lift: 00_naive.cuh does not open with what is new"]


def test_what_was_not_measured_needs_no_table():
    assert found(PAGE.replace("results: short lift", "none"), measured=frozenset()) == []


def test_every_operator_has_tests_and_cases():
    for op in pages.pages(pages.regions.ROOT):
        line = pages.tests(op)
        assert f"{op}_test.cpp" in line and ".json](" in line, op


def test_a_page_has_a_summary_and_the_cases_stand_elsewhere():
    for op, page in pages.pages(pages.regions.ROOT).items():
        regions = re.findall(r"<!-- results: (.*?) -->", page.read_text())
        assert {region.split(" ")[0] for region in regions} <= {"short", "ladder", "lost"}, op


def test_a_summary_has_a_row_for_each_dtype_and_names_the_case_that_is_furthest_behind(tmp_path):
    shutil.copy(MADE_UP, tmp_path)
    head, _, *lines = results_table.table("short softmax", tmp_path).splitlines()
    assert head == "On imaginary GPU: geometric means, the least in brackets; above 1 ours is faster. " + (
        "[Every case](../../../docs/performance/operators.md#softmax)."
    )
    assert lines[0] == "| dtype | of its roof | of the fastest peer | slower in | furthest behind |"
    assert lines[2].startswith("| bfloat16 | ") and lines[2].endswith(" | 1.52 (1.52) | 0 of 1 |  |")
    assert lines[3].startswith("| float32 | ")
    assert lines[3].endswith(" | 0.94 (0.94) | 1 of 1 | 2048x131072 float32 axis=-1 (torch.compile) |")
    assert len(lines) == 5 and lines[4] == ""


def test_what_has_no_peer_and_no_roof_has_the_link_alone(tmp_path):
    assert results_table.table("short lift", tmp_path) == "[Every case](../../../docs/performance/operators.md#lift).\n\n"


def test_the_page_of_all_cases_has_a_part_for_each_summary(tmp_path):
    shutil.copy(MADE_UP, tmp_path)
    readme = tmp_path / "tensorcraft" / "ops" / "pad" / "README.md"
    readme.parent.mkdir(parents=True)
    readme.write_text("<!-- results: short softmax -->\n<!-- results: ladder gemm -->\n")
    text = results_table.table("operators", tmp_path, tmp_path)
    assert text == "## softmax\n\n" + results_table.table("softmax", tmp_path)
