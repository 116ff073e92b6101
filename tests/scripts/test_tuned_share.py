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
    trials = [{"variant": n.partition(" ")[0], "config": n.partition(" ")[2], "us": us, "best_us": 0.0} for n, us in times.items()]
    case = {"op": "gemm", "call": "a", "variant": variant, "config": config, "model": {"variant": "m", "config": "t=1"}, "trials": trials}
    return {"cases": [case, {"op": "gemm", "case": "b", "error": "no memory"}]}


TIMES = {"m t=1": 100.0, "m t=2": 80.0, "n": 160.0, "broken": 0.0}


def test_shares_are_of_the_times_of_one_session() -> None:
    (share,) = tuned_share.shares(session("m t=2", {}), session("m t=2", TIMES))
    assert (share.tuned, share.model, share.of_model) == (1, 0.8, 1.25)
    assert tuned_share.misses([share]) == ["gemm: the cost model reaches 0.800 of the best, the floor is 0.95"]


def test_a_choice_that_is_worse_than_the_models_is_named() -> None:
    (share,) = tuned_share.shares(session("n", {}), session("m t=2", TIMES))
    assert share.of_model == pytest.approx(0.625)
    assert any("gemm a: tuning has 0.625 of the model's speed" in text for text in tuned_share.misses([share]))


def test_calls_of_one_file_alone_do_not_count() -> None:
    assert tuned_share.shares({"cases": []}, session("m t=2", TIMES)) == []
    assert tuned_share.shares(session("gone", {}), session("m t=2", TIMES)) == []


def test_rows_are_means_by_operator_then_calls() -> None:
    found = tuned_share.shares(session("m t=2", {}), session("m t=2", TIMES))
    mean, call = tuned_share.rows(found)
    assert mean == {"name": "tuning gemm", "calls": 1, "tuned of the best": 1, "model of the best": 0.8, "least of the model": 0.8}
    assert call["best"] == "m t=2" and call["best us"] == 80 and call["candidates"] == 3


def times_of(trials: list[tuple[float, float]]) -> dict[str, float]:
    rows = [{"variant": str(i), "config": "", "us": us, "best_us": best} for i, (us, best) in enumerate(trials)]
    return tuned_share.times_of(rows)


def test_a_drift_of_the_clocks_meets_both() -> None:
    half_as_fast = [(18.0, 18.0)] * 6
    times = times_of([(10.0, 0.0), (9.0, 10.0), *half_as_fast, (17.0, 18.0), (0.0, 0.0)])
    assert times["1"] == 9 and times["7"] == 9 and times["8"] == pytest.approx(8.5) and "9" not in times


def test_one_disturbed_trial_is_no_drift() -> None:
    times = times_of([(10.0, 0.0), (11.0, 10.0), (11.0, 10.0), (9.9, 20.0), (11.0, 9.9)])
    assert times["3"] == 9.9 and times["4"] == 11
