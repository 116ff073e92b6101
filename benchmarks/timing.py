"""Timing shared by the figure scripts: interleaved, medians, all facts of the machine beside the numbers."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
ROOT = Path(__file__).resolve().parent.parent


def interleaved_cpu(
    candidates: dict[str, Work], rounds: int = 7, calls: int = 5, pause: float = 0.25
) -> dict[str, dict[str, float]]:
    """Milliseconds of each candidate, in turn, a few calls at a time.

    Before each turn comes a pause: idle threads of a BLAS spin for tens of milliseconds after its last call,
    and would take a core from the next candidate. The first call of a turn is not counted then.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, work in candidates.items():
            time.sleep(pause)
            for call in range(calls + (pause > 0)):
                start = time.perf_counter()
                work()
                if call > 0 or pause == 0:
                    times[name].append((time.perf_counter() - start) * 1e3)
    return {name: summary(values) for name, values in times.items()}


def interleaved_many(
    candidates: dict[str, Callable[[int], Any]], rounds: int = 31, calls: int = 300
) -> dict[str, dict[str, float]]:
    """Milliseconds of one call of each candidate on the host, in turn, many calls at once.

    For calls so short that a clock read beside each of them would be seen. A candidate is given the number of the call.
    """
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, work in candidates.items():
            start = time.perf_counter()
            for call in range(calls):
                work(call)
            times[name].append((time.perf_counter() - start) * 1e3 / calls)
    return {name: summary(values) for name, values in times.items()}


def interleaved_gpu(candidates: dict[str, Work], repeats: int = 50, warmup: int = 10) -> dict[str, dict[str, float]]:
    """Milliseconds on torch's current stream between two events around one call."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in candidates}
    for round_ in range(repeats + warmup):
        for name, work in candidates.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            work()
            end.record()
            end.synchronize()
            if round_ >= warmup:
                times[name].append(begin.elapsed_time(end))
    return {name: summary(values) for name, values in times.items()}


def gpu_timer(call: Callable[[int], Any], turn: Iterator[int], sets: int, graph: bool) -> Callable[[], float]:
    """Microseconds of one call with the next set of arrays, on torch's current stream; of a graph of many if `graph`."""
    from torch import cuda

    calls, run = 1, lambda: call(next(turn))
    if graph:
        calls, recorded = max(sets, 16), cuda.CUDAGraph()
        with cuda.graph(recorded):
            for i in range(calls):
                call(i % sets)
        run = recorded.replay
    begin, end = (cuda.Event(enable_timing=True) for _ in range(2))

    def measure() -> float:
        cuda._sleep(400_000)  # the device is busy while the host enqueues what is timed
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end) * 1e3 / calls)

    return measure


def summary(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median_ms": statistics.median(ordered),
        "p10_ms": ordered[len(ordered) // 10],
        "p90_ms": ordered[len(ordered) * 9 // 10],
        "runs": len(ordered),
    }


def micro_summary(microseconds: list[float]) -> dict[str, float]:
    """The same as the rows of the benchmark have it."""
    found = summary(microseconds)
    return {k.replace("_ms", "_us"): v for k, v in found.items()}


def failure(error: Exception) -> str:
    """What a row says of a candidate that failed: no path of one machine."""
    return f"{type(error).__name__}: {error}".replace(f"{ROOT}/", "")[:500]


def machine() -> dict[str, str]:
    """What the numbers depend on besides the code."""
    facts = {"python": platform.python_version(), "processor": _processor()}
    try:
        query = "--query-gpu=name,driver_version"
        line = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
        facts["gpu"], facts["driver"] = (part.strip() for part in line.stdout.splitlines()[0].split(","))
    except (OSError, subprocess.CalledProcessError):
        pass
    for name in ("numpy", "torch", "tensorcraft"):
        if name in sys.modules:
            facts[name] = str(sys.modules[name].__version__)
    return facts


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def rounded(value: Any) -> Any:
    """Fractions to seven digits, which is more than a measurement repeats; whole numbers stay whole."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return float(f"{value:.7g}") if isinstance(value, float) and not value.is_integer() else value


def text_of(document: dict[str, Any]) -> str:
    """A results file as `tensorcraft bench` writes it too: a line for each fact and each row."""

    def of(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        return json.dumps(value)

    return "{\n" + ",\n".join(f" {json.dumps(key)}: {of(value)}" for key, value in rounded(document).items()) + "\n}\n"


def write(path: str, title: str, rows: list[dict[str, Any]], **facts: Any) -> None:
    """One results file; tables in the documents are made from these."""
    document = {"title": title, "machine": machine(), **facts, "rows": rows}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text_of(document))
    show(rows)


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
