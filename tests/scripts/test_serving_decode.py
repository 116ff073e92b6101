# SPDX-License-Identifier: Apache-2.0
"""benchmarks/serving_decode.py, as far as it needs no GPU: shapes, bytes and rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import serving_decode
from serving_decode import Case


@pytest.mark.parametrize(
    ("text", "sizes"),
    [("b16 4k 64/8", (16, 4096, 64, 8)), ("b1 131k 32/8", (1, 131072, 32, 8)), ("b1 512 32/4", (1, 512, 32, 4))],
)
def test_a_shape_is_read_and_named_alike(text: str, sizes: tuple[int, ...]) -> None:
    case = Case.parse(text)
    assert (case.batch, case.keys, case.heads, case.heads_k) == sizes
    assert case.name == text
    assert case._replace(queries=4).name == f"{text}, 4 queries"


@pytest.mark.parametrize("text", ["16 4k 64/8", "b16 4k 64", "b16 4m 64/8", ""])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        Case.parse(text)


def test_bytes_are_those_of_keys_values_and_queries() -> None:
    case = Case.parse("b16 4k 64/8")
    assert case.cache_bytes == 2 * 16 * 4096 * 8 * 128 * 2 == 256 << 20
    assert case.read_bytes == case.cache_bytes + 16 * 64 * 128 * 2
    assert case._replace(cache="fp8").cache_bytes == 128 << 20
    assert case._replace(queries=4).read_bytes - case.cache_bytes == 4 * (case.read_bytes - case.cache_bytes)


def test_sets_are_past_the_cache_and_divide_the_calls_of_a_graph() -> None:
    for case in serving_decode.CASES:
        assert case.sets.bit_count() == 1
        assert case.sets * case.read_bytes > 250e6
        assert case.sets == 1 or case.sets * case.read_bytes < 650e6
        assert case.pages * serving_decode.PAGE == case.keys


def test_each_row_is_there_once_and_only_large_caches_have_eight_bits() -> None:
    names = [f"{case.name} {case.cache}" for case in serving_decode.CASES]
    assert len(set(names)) == len(names) == 24
    quantized = [case.name for case in serving_decode.SUITE.pick("int8")]
    assert quantized == ["b16 4k 64/8", "b64 4k 32/8", "b1 131k 32/8", "b256 1k 32/8", "b32 8k 32/4"]
    assert quantized == [case.name for case in serving_decode.SUITE.pick("fp8")]
    assert [case.queries for case in serving_decode.SUITE.pick("queries")] == [4, 16, 16, 60, 60]
    assert [case.name for case in serving_decode.SUITE.pick("tree")] == [
        "b16 4k 64/8, 16 queries of a tree", "b16 4k 64/8, 60 queries of a tree",
    ]  # fmt: skip


def test_a_ratio_is_the_time_of_the_peer_over_ours() -> None:
    case, notes = Case.parse("b1 8k 64/8"), {"cuDNN": "RuntimeError: no"}
    row = serving_decode.SUITE.row(
        case, "split_kv", {"ours": 20.0, "contiguous": 10.0, "FlashInfer": 30.0, "copy": 5.0}, notes
    )
    assert (row["of FlashInfer"], row["of copy"]) == (1.5, 0.25)
    assert row["of cuDNN"] == row["contiguous of cuDNN"] == row["cuDNN us"] == "n/a"
    assert row["TB/s"] == pytest.approx(case.read_bytes / 20e-6 / 1e12)
    assert row["notes"] == notes
    without = serving_decode.SUITE.row(case, "n/a", {}, {"ours": "RuntimeError: no"})
    assert list(without) == list(row) and without["us"] == without["TB/s"] == "n/a"
