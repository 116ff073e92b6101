"""How near tuning, and the cost model alone, come to the best of all candidates.

    tensorcraft tune --suite tuning --again --json > rules.json
    tensorcraft tune --suite tuning --again --all --json > all.json
    python benchmarks/tuned_share.py rules.json all.json tuning.json

The first file says what tuning by its rules chooses, the second measures every candidate. All times are those of the
second, so that one session is held against itself. There each candidate ran in turns with the best so far, and counts by
the ratio of the two: what drifts, as clocks do, meets both. The third, which may be left out, is what the documents show. Exits
with 1 if an operator misses a floor: tuning's geometric mean 0.98 and at least 0.99 of the model's choice in each case,
the model's geometric mean 0.95.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from timing import write

TUNED_FLOOR, MODEL_FLOOR, LEAST_OF_MODEL = 0.98, 0.95, 0.99


class Share(NamedTuple):
    """Of one call: the best time over that of a choice, 1 if the choice is the best."""

    op: str
    call: str
    problem: str
    tuned: float
    model: float
    best: str  # the fastest candidate, in best_us
    best_us: float
    candidates: int

    @property
    def of_model(self) -> float:
        """The model's time over that of what tuning chooses."""
        return self.tuned / self.model


def choice(variant: str, config: str) -> str:
    return f"{variant} {config}".strip()


def times_of(trials: list[dict[str, Any]]) -> dict[str, float]:
    """What each candidate took that ran, at the clocks that the first one met: those of the best say how they drift, and the
    median of a few trials that one was not disturbed."""
    times: dict[str, float] = {}
    best = ""
    clocks: deque[float] = deque(maxlen=5)
    for trial in trials:
        name, us, best_us = choice(trial["variant"], trial["config"]), trial["us"], trial["best_us"]
        if us <= 0:
            continue
        if best and best_us > 0:
            clocks.append(best_us / times[best])
        times[name] = us / (statistics.median(clocks) if clocks else 1)
        if not best or us < best_us:
            best = name
    return times


def shares(rules: dict[str, Any], everything: dict[str, Any]) -> list[Share]:
    """Of every call that both files have."""
    chosen = {case["call"]: choice(case["variant"], case["config"]) for case in rules["cases"] if "call" in case}
    found = []
    for case in everything["cases"]:
        times = times_of(case.get("trials", []))
        model = choice(case["model"]["variant"], case["model"]["config"]) if "model" in case else ""
        tuned = chosen.get(case.get("call", ""), "")
        if tuned in times and model in times:
            best = min(times, key=times.__getitem__)
            us = times[best]
            shares = us / times[tuned], us / times[model]
            found.append(Share(case["op"], case["call"], case.get("problem", ""), *shares, best, us, len(times)))
    return found


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def by_operator(found: list[Share]) -> dict[str, list[Share]]:
    return {op: [s for s in found if s.op == op] for op in dict.fromkeys(s.op for s in found)}


def misses(found: list[Share]) -> list[str]:
    texts = []
    for op, of_op in by_operator(found).items():
        tuned, model = geomean([s.tuned for s in of_op]), geomean([s.model for s in of_op])
        if tuned < TUNED_FLOOR:
            texts.append(f"{op}: tuning reaches {tuned:.3f} of the best, the floor is {TUNED_FLOOR}")
        if model < MODEL_FLOOR:
            texts.append(f"{op}: the cost model reaches {model:.3f} of the best, the floor is {MODEL_FLOOR}")
    return texts + [
        f"{s.op} {s.call}: tuning has {s.of_model:.3f} of the model's speed"
        for s in found
        if s.of_model < LEAST_OF_MODEL
    ]


def rows(found: list[Share]) -> list[dict[str, Any]]:
    """A row for each operator, then one for each call."""
    means: list[dict[str, Any]] = [
        {
            "name": f"tuning {op}",
            "calls": len(of_op),
            "tuned of the best": geomean([s.tuned for s in of_op]),
            "model of the best": geomean([s.model for s in of_op]),
            "least of the model": min(s.model for s in of_op),
        }
        for op, of_op in by_operator(found).items()
    ]
    return means + [
        {
            "name": f"tuning {s.op}",
            "problem": s.problem,
            "candidates": s.candidates,
            "best": s.best,
            "best us": s.best_us,
            "tuned": s.tuned,
            "model": s.model,
        }
        for s in found
    ]


def main() -> int:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    rules, everything = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    found = shares(rules, everything)
    if not found:
        print("no call is in both files with its trials; measure both with --again")
        return 2
    for s in sorted(found, key=lambda share: share.tuned):
        print(f"{s.tuned:.3f} tuned  {s.model:.3f} model  {s.op} {s.call}")
    for op, of_op in by_operator(found).items():
        tuned, model = geomean([s.tuned for s in of_op]), geomean([s.model for s in of_op])
        print(f"{op}: {len(of_op)} calls, tuned {tuned:.3f}, model {model:.3f}")
    if len(sys.argv) > 3:
        method = "every candidate in turns with the best so far, medians of ten; shares of the best time"
        write(sys.argv[3], "Tuning and the cost model against the best candidate", rows(found), method=method)
    missed = misses(found)
    print("\n".join(missed) or "every floor is held")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
