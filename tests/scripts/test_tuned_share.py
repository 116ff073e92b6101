# SPDX-License-Identifier: Apache-2.0
"""benchmarks/tuned_share.py on made-up sessions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import tuned_share


def session(chosen: str, times: dict[str, float]) -> dict[str, Any]:
    variant, _, config = chosen.partition(" ")
    trials = [{"variant": n.partition(" ")[0], "config": n.partition(" ")[2], "us": us} for n, us in times.items()]
    case = {"op": "gemm", "call": "a", "variant": variant, "config": config, "model": {"variant": "m", "config": "t=1"}, "trials": trials}
    return {"cases": [case, {"op": "gemm", "case": "b", "error": "no memory"}]}


TIMES = {"m t=1": 100.0, "m t=2": 80.0, "n": 160.0, "broken": 0.0}


def test_shares_are_of_the_times_of_one_session() -> None:
    (share,) = tuned_share.shares(session("m t=2", {}), session("m t=2", TIMES))
    assert (share.tuned, share.model, share.of_model) == (1, 0.8, 1.25)
    assert tuned_share.misses([share]) == ["the cost model reaches 0.800 of the best, the floor is 0.95"]


def test_a_choice_that_is_worse_than_the_models_is_named() -> None:
    (share,) = tuned_share.shares(session("n", {}), session("m t=2", TIMES))
    assert share.of_model == pytest.approx(0.625)
    assert any("gemm a: tuning has 0.625 of the model's speed" in text for text in tuned_share.misses([share]))


def test_calls_of_one_file_alone_do_not_count() -> None:
    assert tuned_share.shares({"cases": []}, session("m t=2", TIMES)) == []
    assert tuned_share.shares(session("gone", {}), session("m t=2", TIMES)) == []
