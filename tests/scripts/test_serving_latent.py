# SPDX-License-Identifier: Apache-2.0
"""benchmarks/serving_latent.py, as far as it needs no GPU: bytes, pairs and rows."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import serving_latent
from serving_latent import LatentCase


def test_a_key_is_read_once_for_all_heads() -> None:
    case = LatentCase(2, 128, 16, 1)
    assert (case.pages, case.cache_bytes) == (2, 2 * 128 * 576 * 2)
    assert case.read_bytes == case.cache_bytes + 2 * 16 * 576 * 2


def test_pairs_are_those_that_a_causal_query_sees() -> None:
    case = LatentCase(3, 11, 8, 1, 4)
    assert case.pairs == 3 * sum(i + 7 >= j for i in range(4) for j in range(11))


def test_each_case_is_there_once() -> None:
    names = [case.name for case in serving_latent.CASES]
    assert len(set(names)) == len(names) and "b64 4k 16/1, 4 queries" in names
    assert {type(case) for case in serving_latent.CASES} == {LatentCase}


def test_a_row_has_tflops_of_both_products() -> None:
    row = serving_latent.SUITE.row(LatentCase(1, 64, 128, 1), "latent_wgmma", {"ours": 2.0, "FlashInfer": 1.0}, {})
    assert row["of FlashInfer"] == 0.5 and row["of copy"] == "n/a"
    assert row["TFLOPS"] == pytest.approx(2 * 128 * 64 * (576 + 512) / 2e-6 / 1e12)
