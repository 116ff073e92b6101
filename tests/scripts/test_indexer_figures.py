# SPDX-License-Identifier: Apache-2.0
"""benchmarks/indexer_figures.py, as far as it needs no GPU: names, bytes and products of its cases."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import indexer_figures
from indexer_figures import Case


def test_products_are_those_of_keys_that_queries_see() -> None:
    case = Case("float8_e4m3fn", 64, 4096, 32768)
    assert case.flops == 2 * 4096 * 32768 * 64 * 128
    assert case._replace(queries=2, keys=5, causal=True).flops == 2 * (4 + 5) * 64 * 128
    assert Case("bfloat16", 16, 1, 32768, batch=64).flops == 2 * 64 * 32768 * 16 * 128


def test_sets_fill_the_cache_more_than_once() -> None:
    assert Case("bfloat16", 16, 1, 32768, batch=64).key_bytes == 64 * 32768 * 128 * 2
    for case in indexer_figures.CASES:
        assert case.sets >= 2 and case.sets * (case.key_bytes + case.queries * case.heads * 128) >= 120e6


def test_names_tell_cases_apart() -> None:
    names = [f"{case.name} {case.dtype}" for case in indexer_figures.CASES]
    assert len(set(names)) == len(names) == 8
    assert names[1] == "prefill 4096 x 32768 keys, 64 heads, causal float8_e4m3fn"
    assert names[4] == "decode 64 x 32768 keys, 16 heads float8_e4m3fn"
