"""How near tuning, and the cost model alone, come to the best of all candidates.

    tensorcraft tune --suite gemm-llm --again --json > rules.json
    tensorcraft tune --suite gemm-llm --again --all --json > all.json
    python benchmarks/tuned_share.py rules.json all.json

The first file says what tuning by its rules chooses, the second measures every candidate. All times are those of the
second, so that one session is held against itself. Exits with 1 if a floor is missed: tuning's geometric mean 0.98
and at least 0.99 of the model's choice in each case, the model's geometric mean 0.95.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

TUNED_FLOOR, MODEL_FLOOR, LEAST_OF_MODEL = 0.98, 0.95, 0.99


class Share(NamedTuple):
    """Of one call: the best time over that of a choice, 1 if the choice is the best."""

    call: str
    tuned: float
    model: float

    @property
    def of_model(self) -> float:
        """The model's time over that of what tuning chooses."""
        return self.tuned / self.model


def choice(variant: str, config: str) -> str:
    return f"{variant} {config}".strip()


def shares(rules: dict[str, Any], everything: dict[str, Any]) -> list[Share]:
    """Of every call that both files have."""
    chosen = {case["call"]: choice(case["variant"], case["config"]) for case in rules["cases"] if "call" in case}
    found = []
    for case in everything["cases"]:
        times = {choice(t["variant"], t["config"]): t["us"] for t in case.get("trials", []) if t["us"] > 0}
        model = choice(case["model"]["variant"], case["model"]["config"]) if "model" in case else ""
        tuned = chosen.get(case.get("call", ""), "")
        if tuned in times and model in times:
            best = min(times.values())
            found.append(Share(f"{case['op']} {case['call']}", best / times[tuned], best / times[model]))
    return found


def geomean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def misses(found: list[Share]) -> list[str]:
    tuned, model = geomean([s.tuned for s in found]), geomean([s.model for s in found])
    texts = []
    if tuned < TUNED_FLOOR:
        texts.append(f"tuning reaches {tuned:.3f} of the best, the floor is {TUNED_FLOOR}")
    if model < MODEL_FLOOR:
        texts.append(f"the cost model reaches {model:.3f} of the best, the floor is {MODEL_FLOOR}")
    return texts + [
        f"{s.call}: tuning has {s.of_model:.3f} of the model's speed" for s in found if s.of_model < LEAST_OF_MODEL
    ]


def main() -> int:
    rules, everything = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
    found = shares(rules, everything)
    if not found:
        print("no call is in both files with its trials; measure both with --again")
        return 2
    for s in sorted(found, key=lambda share: share.tuned):
        print(f"{s.tuned:.3f} tuned  {s.model:.3f} model  {s.call}")
    print(f"{len(found)} calls: tuned {geomean([s.tuned for s in found]):.3f}, model {geomean([s.model for s in found]):.3f}")
    missed = misses(found)
    print("\n".join(missed) or "every floor is held")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
