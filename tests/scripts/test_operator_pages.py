# SPDX-License-Identifier: Apache-2.0
"""What an operator's page must have: each part that is taken away is missed."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import operator_pages as pages

RUNGS = {"00_naive.cuh": "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n// One thread, one output.\n"}
PAGE = """# lift

What it does.

| rung | idea |
| --- | --- |
| `naive` | one thread |

<!-- tests -->
<!-- /tests -->

## Measured

<!-- results: lift -->
<!-- /results -->
"""


def found(text=PAGE, rungs=RUNGS, measured=frozenset({"lift"})):
    return list(pages.problems("lift", text, set(measured), rungs))


def test_a_page_with_all_it_must_have_passes():
    assert found() == [] and found(PAGE.replace("results: lift", "results: ladder lift")) == []


@pytest.mark.parametrize(("part", "instead", "problem"), [
    ("What it does.\n\n", "", "no introduction follows the title"),
    ("`naive`", "`other`", "the page does not name the rung naive"),
    ("results: lift", "results: drop", "lift was measured, and the page has no region for it"),
    ("<!-- tests -->", "", "no region names its tests"),
])  # fmt: skip
def test_a_part_that_is_missing_is_named(part, instead, problem):
    assert found(PAGE.replace(part, instead)) == [f"lift: {problem}"]


def test_a_rung_opens_with_what_is_new():
    bare = {"00_naive.cuh": RUNGS["00_naive.cuh"].replace("// One thread, one output.", "#include")}
    assert found(rungs=bare) == ["lift: 00_naive.cuh does not open with what is new"]


def test_what_was_not_measured_needs_no_table():
    assert found(PAGE.replace("results: lift", "none"), measured=frozenset()) == []


def test_every_operator_has_tests_and_cases():
    for op in pages.pages(pages.regions.ROOT):
        line = pages.tests(op)
        assert f"{op}_test.cpp" in line and ".json](" in line, op
