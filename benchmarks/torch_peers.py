"""Times tc.<op> beside torch, torch.compile and a copy of the same bytes, in one interleaved process.

    python benchmarks/torch_peers.py OUT.json [--suite headline] [--only TEXT] [--call "softmax 8192x8192 --dtype bfloat16"]
        [--peer copy torch torch.compile] [--variant all] [--warm] [--warmup 1] [--seconds 0.3] [--check]

Cases come from benchmarks/suites.json; the file has the form of `tensorcraft bench --json`, and is written after each
case. Without torch or a GPU the CPU is timed beside NumPy. --check fails where a ratio of the suite is not reached.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TENSORCRAFT_CACHE_DIR", tempfile.mkdtemp(prefix="tensorcraft-bench-"))  # compiles are cold

import numpy as np
from peer_calls import numpy_calls, torch_calls
from suites import SHAPE, Case, parse, suite
from targets import target_tflops
from timing import failure, gpu_timer, machine, micro_summary, text_of

import tensorcraft as tc

Call = Callable[[int], Any]  # with the n-th set of arrays
Row = dict[str, Any]
# Options without a default whose value may be a number.
INTEGERS = {"axis", "expected_rows", "group_k", "groups", "k", "stride", "top_k"}
GRAPH_BELOW_BYTES, GRAPH_BELOW_US = 16e6, 10.0
FEWEST_SETS, MOST_SETS = 4, 256


def aligned(nbytes: int) -> int:
    return (nbytes + 255) // 256 * 256


class Numpy:
    """The CPU, by the host's clock."""

    name, device = "numpy", "cpu"
    cache_bytes = 32 << 20

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.calls = {"numpy": numpy_calls()}

    def array(self, shape: tuple[int, ...], dtype: str, below: int) -> Any:
        if dtype.startswith(("int", "uint")):
            return self.random.integers(0, below, shape, dtype)
        return self.random.standard_normal(shape, np.float32).astype(dtype)

    def ascending(self, count: int, dtype: str, step: int) -> Any:
        return np.arange(count, dtype=dtype) * np.dtype(dtype).type(step)

    def has(self, dtype: str) -> bool:
        return dtype in np.sctypeDict

    def copy(self, half: int, sets: int) -> Call:
        source, target = np.ones((2, sets, aligned(half)), np.uint8)
        return lambda i: np.copyto(target[i, :half], source[i, :half])

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return call

    def timed(self, call: Call, turn: Iterator[int], sets: int, method: str) -> Callable[[], float]:
        def measure() -> float:
            start = time.perf_counter()
            call(next(turn))
            return (time.perf_counter() - start) * 1e6

        return measure

    def method(self, nbytes: float, rough_us: float) -> str:
        return "wall"

    def finish(self) -> None:
        pass


class Torch:
    """A GPU through torch: events around one call, or around a graph of many."""

    name, device = "torch", "cuda:0"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.manual_seed(0)
        self.cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        eager = torch_calls()
        self.calls = {"torch": eager, "torch.compile": eager}

    def array(self, shape: tuple[int, ...], dtype: str, below: int) -> Any:
        kind = getattr(self.torch, dtype)
        if dtype.startswith(("int", "uint")):
            return self.torch.randint(0, below, shape, device="cuda").to(kind)
        return self.torch.randn(shape, device="cuda").to(kind)

    def ascending(self, count: int, dtype: str, step: int) -> Any:
        return self.torch.arange(count, device="cuda", dtype=getattr(self.torch, dtype)) * step

    def has(self, dtype: str) -> bool:
        return hasattr(self.torch, dtype)

    def copy(self, half: int, sets: int) -> Call:
        source, target = (self.torch.ones(sets, aligned(half), device="cuda", dtype=self.torch.uint8) for _ in range(2))
        return lambda i: target[i, :half].copy_(source[i, :half])

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        self.torch._dynamo.reset()
        compiled: Callable[..., Any] = self.torch.compile(call, dynamic=False)
        return compiled

    def timed(self, call: Call, turn: Iterator[int], sets: int, method: str) -> Callable[[], float]:
        return gpu_timer(call, turn, sets, method == "graph")

    def method(self, nbytes: float, rough_us: float) -> str:
        return "graph" if nbytes < GRAPH_BELOW_BYTES or rough_us < GRAPH_BELOW_US else "events"

    def finish(self) -> None:
        self.torch.cuda.synchronize()


Machine = Numpy | Torch


class Arguments:
    """The arrays and options of a case, in several sets."""

    def __init__(self, case: Case, on: Machine, warm: bool) -> None:
        self.case, self.on = case, on
        self.function = tc.ops()[case.op].function
        parameters = inspect.signature(self.function).parameters
        names = [n for n in parameters if n not in ("out", "stream", "variant", "device")]
        self.names = names[: len(case.shapes)]
        given = dict(option.split("=", 1) for option in case.options)
        if unknown := given.keys() - parameters.keys():
            raise ValueError(f"{case.op} has no option {', '.join(unknown)}")
        arrays = dict(zip(self.names, case.shapes, strict=True))
        arrays |= {k: v for k, v in given.items() if self.is_array(k, v, parameters[k].default)}
        self.options = {k: self.value(v) for k, v in given.items() if k not in arrays}
        smallest = min((n for text in case.shapes for n in self.shape(text)[0]), default=1)
        make = lambda: {k: self.array(v, case.below.get(k, smallest), case.step.get(k, 0)) for k, v in arrays.items()}
        self.sets = [make()]
        nbytes = sum(a.nbytes for a in self.sets[0].values())
        if not warm:
            count = min(max(2 * on.cache_bytes // max(nbytes, 1) + 1, FEWEST_SETS), MOST_SETS)
            self.sets += [make() for _ in range(count - 1)]
        self.is_cold = not warm and len(self.sets) * nbytes >= 2 * on.cache_bytes

    @staticmethod
    def is_array(name: str, text: str, default: Any) -> bool:
        return default is None and SHAPE.fullmatch(text) is not None and not (name in INTEGERS and text.isdigit())

    def array(self, text: str, below: int, step: int = 0) -> Any:
        """With rows further apart as "4096x512/520": the beginnings of longer ones."""
        shape, dtype = self.shape(text)
        _, _, leading = text.partition(":")[0].partition("/")
        if step:
            return self.on.ascending(shape[0], dtype, step)
        if not leading:
            return self.on.array(shape, dtype, below)
        return self.on.array((*shape[:-1], int(leading)), dtype, below)[..., : shape[-1]]

    def shape(self, text: str) -> tuple[tuple[int, ...], str]:
        text, _, dtype = text.partition(":")
        sizes = text.partition("/")[0]
        return () if sizes == "scalar" else tuple(map(int, sizes.split("x"))), dtype or self.case.dtype

    @staticmethod
    def value(text: str) -> Any:
        try:
            return json.loads(text.lower() if text.lower() in ("true", "false") else text)
        except json.JSONDecodeError:
            return tuple(map(int, text.split(","))) if text.replace(",", "").isdigit() else text

    def call(self, function: Callable[..., Any], **more: Any) -> Call:
        """Arrays by position, options by name; a peer takes those that it knows."""
        prepared = []
        for arrays in self.sets:
            positional = [arrays[n] for n in self.names]
            prepared.append((positional, {k: v for k, v in arrays.items() if k not in self.names}))

        def run(i: int) -> Any:
            positional, named = prepared[i]
            return function(*positional, **named, **self.options, **more)

        return run

    def theirs(self, function: Callable[..., Any], **more: Any) -> Call:
        """Results live until the set comes again, so that their memory is as cold as what ours() writes to."""
        plain = self.call(function, **more)
        kept: list[Any] = [None] * len(self.sets)

        def run(i: int) -> None:
            kept[i] = None
            kept[i] = plain(i)

        return run

    def ours(self, variant: str) -> Call:
        """Into memory that is there, as a serving loop would call it."""
        place = {"device": "cpu"} if self.on.device == "cpu" else {}
        plain = self.call(self.function, variant=variant, **place)
        first = plain(0)
        if isinstance(first, tuple):
            return self.theirs(self.function, variant=variant, **place)
        outs = [first, *(plain(i) for i in range(1, len(self.sets)))]
        place_of: list[Any] = [None]
        into = self.call(lambda *a, **o: self.function(*a, out=place_of[0], **o), variant=variant, **place)

        def run(i: int) -> Any:
            place_of[0] = outs[i]
            return into(i)

        return run

    def explain(self) -> Any:
        place = {"device": "cpu"} if self.on.device == "cpu" else {}
        arrays = dict(self.sets[0])
        return tc.explain(self.case.op, *[arrays.pop(n) for n in self.names], **arrays, **self.options, **place)


def make_row(case: Case, candidate: str, variant: str = "", chosen: bool = False) -> Row:
    return {
        "op": case.op, "case": case.name, "shape": " ".join(case.shapes), "dtype": case.dtype,
        "options": " ".join(case.options), "group": case.group, "candidate": candidate, "variant": variant, "note": "",
        "chosen": chosen, "timing": "", "cache": "cold", "median_us": 0.0, "p10_us": 0.0, "p90_us": 0.0, "runs": 0, "bytes": 0.0, "flops": 0.0,
        "floor_us": 0.0, "gbs": 0.0, "tflops": 0.0, "error": None,
    }  # fmt: skip


def candidates(arguments: Arguments, wanted: list[str], variant: str) -> tuple[list[tuple[Row, Call | None]], Any]:
    """A row and a call for ours, the copy and the peers; a call of None says in the row why there is none."""
    case, on, explained = arguments.case, arguments.on, arguments.explain()
    names = [v.name for v in explained.variants if v.accepted] if variant == "all" else [variant or explained.variant]
    found: list[tuple[Row, Call | None]] = []

    def add(row: Row, make: Callable[[], Call]) -> None:
        try:
            call: Call | None = make()
            call(0)  # type: ignore[misc]
            on.finish()
        except Exception as error:  # noqa: BLE001  a row says it, and the others go on
            call, row["error"] = None, failure(error)
        found.append((row, call))

    for name in names:
        add(make_row(case, "tensorcraft", name, name == explained.variant), lambda name=name: arguments.ours(name))
    if "copy" in wanted:
        half = max(int(explained.bytes / 2), 1)
        add(make_row(case, "copy"), lambda: on.copy(half, len(arguments.sets)))
    for peer, calls in on.calls.items():
        if peer not in wanted:
            continue
        if case.op not in calls:
            found.append((make_row(case, peer) | {"error": f"n/a: nothing of {on.name} is written down for {case.op}"}, None))
            continue
        function = on.compiled(calls[case.op]) if peer == "torch.compile" else calls[case.op]
        add(make_row(case, peer), lambda function=function: arguments.theirs(function))
    for row, _ in found:
        row |= {"bytes": explained.bytes, "flops": explained.flops, "floor_us": explained.floor_us}
        row["cache"] = "cold" if arguments.is_cold else "warm"
    return found, explained


def repeat(times: list[Callable[[], float]], seconds: float) -> float:
    """Calls in turn for so long; microseconds of the fastest first one."""
    start, rough = time.perf_counter(), math.inf
    while True:
        rough = min(rough, *(measure() for measure in times))
        if time.perf_counter() - start >= seconds:
            return rough


def measure_case(arguments: Arguments, wanted: list[str], given: argparse.Namespace, warmup: float) -> list[Row]:
    on, sets = arguments.on, len(arguments.sets)
    found, explained = candidates(arguments, wanted, given.variant)
    ready = [(row, call) for row, call in found if call]
    if not ready:
        return [row for row, _ in found]
    # One turn for all, or a candidate would find in the cache what the one before has read.
    turn = itertools.cycle(range(sets))
    rough = repeat([on.timed(call, turn, sets, "events") for row, call in ready if row["candidate"] == "tensorcraft"] or
                   [on.timed(ready[0][1], turn, sets, "events")], 0)  # fmt: skip
    timed: list[tuple[Row, Callable[[], float]]] = []
    for row, call in ready:
        row["timing"] = on.method(explained.bytes, rough)
        try:
            timed.append((row, on.timed(call, turn, sets, row["timing"])))
        except Exception as error:  # noqa: BLE001  what cannot be recorded is timed by events
            print(f"  {row['candidate']}: not in a graph: {str(error).splitlines()[0]}", file=sys.stderr)
            row["timing"] = "events"
            timed.append((row, on.timed(call, turn, sets, "events")))
    repeat([measure for _, measure in timed], warmup)
    order, samples = [], {id(row): [] for row, _ in timed}
    for row, measure in timed:
        start = time.perf_counter()
        measure()
        runs = int(given.seconds / max(time.perf_counter() - start, 1e-6))
        order += [(row, measure)] * min(max(runs, 5), 100)
    random.shuffle(order)
    for row, measure in order:
        samples[id(row)].append(measure())
    for row, _ in timed:
        row |= micro_summary(samples[id(row)])
        row |= {"gbs": row["bytes"] / row["median_us"] / 1e3, "tflops": row["flops"] / row["median_us"] / 1e6}
    return [row for row, _ in found]


def judge(case: Case, rows: list[Row]) -> list[tuple[str, bool]]:
    """A line for every ratio the suite asks of the case, and whether it is reached."""
    lines = []
    ours = next((r for r in rows if r["chosen"] and r["runs"]), None)
    for row in rows:
        peer, what = row["candidate"], f"{case.op} {case.name}"
        if peer in case.at_least:
            ratio = row["median_us"] / ours["median_us"] if ours else 0.0
            known = bool(ours and row["runs"])
            lines.append((f"{what}: {ratio:.3f} of {peer}, at least {case.at_least[peer]}", known and ratio >= case.at_least[peer]))
        if peer in case.at_most_us:
            extra = ours["median_us"] - row["median_us"] if ours else math.inf
            lines.append((f"{what}: {extra:+.2f} us to {peer}, at most {case.at_most_us[peer]:+}", extra <= case.at_most_us[peer]))
    return lines


def geomeans(rows: list[Row]) -> dict[str, float]:
    """Of the ratios of what is chosen to each peer."""
    chosen = {(r["op"], r["case"]): r["median_us"] for r in rows if r["chosen"] and r["runs"]}
    ratios: dict[str, list[float]] = {}
    for r in rows:
        if r["candidate"] != "tensorcraft" and r["runs"] and (r["op"], r["case"]) in chosen:
            ratios.setdefault(r["candidate"], []).append(r["median_us"] / chosen[r["op"], r["case"]])
    return {peer: math.exp(sum(map(math.log, values)) / len(values)) for peer, values in ratios.items()}


def head(on: Machine, given: argparse.Namespace) -> dict[str, Any]:
    info = tc.device_info(on.device)
    peaks = {"float32": info["peak_fp32_tflops"], "bfloat16": info["peak_bf16_tflops"], "float16": info["peak_bf16_tflops"]}
    method = {"numpy": "wall time"}.get(on.name, "CUDA events around one call, or around a graph of many below 16 MB or 10 us")
    return {
        "schema": 1, "title": f"tensorcraft beside {', '.join(on.calls)}", "machine": machine(),
        "device": {"name": info["name"], "arch": info["arch"] or "cpu", "bandwidth_gbs": info["memory_gb_per_s"], "peak_tflops": peaks},
        "timing": {"method": f"{method}; inputs rotated past the cache unless warm; candidates interleaved at random; medians",
                   "data": "standard normal", "warmup_s": given.warmup},
        "rows": [], "skipped": [],
    }  # fmt: skip


def pick(given: argparse.Namespace) -> list[Case]:
    cases = [parse(line) for line in given.call] if given.call else suite(given.suite)
    return [case for case in cases if given.only in f"{case.group}: {case.op} {case.name}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--suite", default="headline")
    parser.add_argument("--only", default="", help="cases whose group, operator, shape or dtype has this text")
    parser.add_argument("--call", action="append", default=[])
    parser.add_argument("--peer", nargs="+", default=["copy", "torch", "torch.compile", "numpy"])
    parser.add_argument("--variant", default="")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--warmup", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    try:
        import torch

        on: Machine = Torch() if torch.cuda.is_available() else Numpy()
    except ImportError:
        on = Numpy()
    results, verdicts, warmup = head(on, given), [], given.warmup
    for case in pick(given):
        what = f"{case.op} {case.name}"
        if case.op not in tc.ops() or not on.has(case.dtype):
            why = f"there is no operator {case.op}" if case.op not in tc.ops() else f"{on.name} has no {case.dtype}"
            results["skipped"].append(f"{what}: {why}")
            print(f"skipped {results['skipped'][-1]}")
            save(results, given.out)
            continue
        try:
            arguments = Arguments(case, on, given.warm)
            rows = measure_case(arguments, given.peer, given, warmup)
            warmup = given.warmup / 10
        except Exception as error:  # noqa: BLE001  the other cases go on
            rows = [make_row(case, "tensorcraft") | {"error": failure(error)}]
        results["rows"] += rows
        verdicts += judge(case, rows)
        print(what, *(f"{r['candidate']} {r['variant']} {r['error'] or format(r['median_us'], '.4g') + ' us'};" for r in rows))
        save(results, given.out)
    report(results, verdicts, given.check)


def save(results: dict[str, Any], path: Path) -> None:
    """After each case, so that a run that is cut off leaves what it measured."""
    path.write_text(text_of(results))


def report(results: dict[str, Any], verdicts: list[tuple[str, bool]], check: bool) -> None:
    for peer, ratio in geomeans(results["rows"]).items():
        print(f"geomean against {peer}: {ratio:.3f}")
    for row in results["rows"]:
        if row["op"] == "gemm" and row["chosen"] and row["runs"] and results["device"]["arch"] != "cpu":
            goal = target_tflops(int(results["device"]["arch"].strip("sm_a")), row["dtype"])
            print(f"gemm {row['case']}: {row['tflops']:.1f} TFLOPS" + (f", the goal is {goal:g}" if goal else ""))
    for line, reached in verdicts:
        print("reached" if reached else "MISSED ", line)
    failed = [r for r in results["rows"] if r["error"] and not r["error"].startswith("n/a")]
    sys.exit(1 if failed or (check and not all(reached for _, reached in verdicts)) else 0)


if __name__ == "__main__":
    main()
