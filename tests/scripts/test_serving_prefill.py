# SPDX-License-Identifier: Apache-2.0
"""benchmarks/serving_prefill.py, as far as it needs no GPU: pairs and rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import serving_prefill
from serving_decode import Case


@pytest.mark.parametrize("window", [0, 1, 3, 100])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (4, 11)])
def test_pairs_are_those_that_a_causal_query_sees(queries: int, keys: int, window: int) -> None:
    case = Case(3, keys, 8, 2, queries, window=window)
    seen = sum(
        1 for i in range(queries) for j in range(keys) if (at := i + keys - queries) >= j > at - (window or keys + 1)
    )
    assert serving_prefill.pairs_of(case) == 3 * seen


def test_each_case_is_there_once_and_named() -> None:
    names = [f"{case.name} {case.cache}" for case in serving_prefill.CASES]
    assert len(set(names)) == len(names) == 24
    assert names[0] == "b1 2k 32/8, 2048 queries bf16"
    assert "b1 34k 32/8, 2048 queries, window 1024 bf16" in names


def test_a_row_has_tflops_and_the_same_columns_without_figures() -> None:
    case = Case(1, 2048, 32, 8, 2048)
    row = serving_prefill.SUITE.row(case, "persistent", {"ours": 100.0, "contiguous": 90.0, "FlashInfer": 120.0}, {})
    assert (row["of arrays"], row["of FlashInfer"], row["of cuDNN"]) == (0.9, 1.2, "n/a")
    assert row["TFLOPS"] == pytest.approx(4 * 128 * 32 * 2048 * 2049 / 2 / 100e-6 / 1e12)
    without = serving_prefill.SUITE.row(case, "n/a", {}, {"ours": "RuntimeError: no"})
    assert list(without) == list(row) and without["us"] == without["TFLOPS"] == "n/a"
