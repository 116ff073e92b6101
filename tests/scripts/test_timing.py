# SPDX-License-Identifier: Apache-2.0
"""How the figure scripts time."""

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
