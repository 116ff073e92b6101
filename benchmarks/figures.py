"""Times calls that no line of suites.json says, each beside its peers, on a GPU (cpu_convolution: on the CPU).

    python benchmarks/figures.py NAME [FILE.json] [--repeats N]

NAME is a module of benchmarks/cases/: it has TITLE, REPEATS, rows(repeats) and perhaps facts(repeats) of the file. What is
timed and what a row says is there; here is how candidates take turns. Prints the rows and, given FILE, writes them there.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from timing import Work, failure, gpu_timer, interleaved_gpu, micro_summary, show, write

Call = Callable[[int], Any]  # with the n-th set of arrays
Row = dict[str, Any]
Shape = tuple[int, ...]


def shape_text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def random(*shape: int) -> Any:
    import torch

    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def beside(candidates: dict[str, Work], nbytes: int = 0, repeats: int = 50, warmup: int = 10) -> Row:
    """Microseconds of the first candidate, GB/s if it moves nbytes, and how much longer each other one takes."""
    times = {name: of["median_ms"] for name, of in interleaved_gpu(candidates, repeats, warmup).items()}
    ours, *others = times
    row = {"us": times[ours] * 1e3} | ({"GB/s": nbytes / times[ours] / 1e6} if nbytes else {})
    return row | {f"of {name}": times[name] / times[ours] for name in others}


def in_turn(candidates: dict[str, Call], sets: int, repeats: int, graph: bool = False) -> dict[str, dict[str, float]]:
    """Microseconds of each candidate, which has another of `sets` sets of arrays in each call, so that none is in a cache."""
    timers: dict[str, Callable[[], float]] = {}
    for name, call in candidates.items():
        try:
            call(0)
        except NotImplementedError as error:  # a variant that does not take the case
            print(f"{name}: {failure(error)}")
            continue
        timers[name] = gpu_timer(call, itertools.cycle(range(sets)), sets, graph)
    times: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(repeats):
        for name, once in timers.items():
            times[name].append(once())
    return {name: micro_summary(values) for name, values in times.items()}


def main() -> None:
    names = sorted(path.stem for path in (Path(__file__).parent / "cases").glob("*.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=names)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--repeats", type=int, help="of each candidate, else the module's REPEATS")
    given = parser.parse_args()
    cases = importlib.import_module(f"cases.{given.name}")
    repeats = given.repeats or cases.REPEATS
    facts = cases.facts(repeats) if hasattr(cases, "facts") else {}
    rows = cases.rows(repeats)
    if given.file:
        write(given.file, cases.TITLE, rows, **facts)
    else:
        show(rows)


if __name__ == "__main__":
    main()
