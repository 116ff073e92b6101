"""Language models of two shapes with random weights on a GPU: a decode step and a prefill, beside torch.

    python benchmarks/decode.py FOLDER [--only TEXT] [--seconds 480] [--repeats 40]    writes FOLDER/llama_gpu.json

Each case is a process of its own with a time limit, and writes after each candidate that it has timed, so one that
fails or hangs loses itself alone; cases of the file that --only leaves out stay in it. Candidates of a case take
turns. Ours is the model and the decoder of examples/chat; torch's is the same network over keys that lie in order
and exactly fill its cache, which is the best that its attention gets. Both have the same weights, and their logits
are compared first.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from timing import summary, write
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "chat"))

import llama
from decoder import Decoder
from sampling import Sampling

import tensorcraft as tc

PAGE = 16
FILE = "llama_gpu.json"
OPERATORS = frozenset(tc.ops())
SHAPES = {
    "SmolLM2-135M": (llama.Config(30, 576, 9, 3, 8192, 1e5, 1e-5), 1536, 49152, True),
    "Llama-3.1-8B": (llama.Config(32, 4096, 32, 8, 8192, 5e5, 1e-5), 14336, 128256, False),
}  # of which: feed forward, vocabulary, are both tables one


class Case(NamedTuple):
    model: str
    work: str  # decode or prefill
    batch: int
    tokens: int  # in the cache with the new ones

    @property
    def name(self) -> str:
        return f"{self.model} {self.work} {self.batch} x {self.tokens}"


CASES = [
    Case("SmolLM2-135M", "decode", 1, 512),
    Case("Llama-3.1-8B", "decode", 1, 1024),
    Case("Llama-3.1-8B", "decode", 16, 1024),
    Case("Llama-3.1-8B", "prefill", 1, 2048),
]


def say(*words: object) -> None:
    print(f"[{time.strftime('%H:%M:%S')}]", *words, flush=True)


class Weights:
    """bfloat16 on the GPU under the names of examples/chat/llama.py."""

    def __init__(self, name: str) -> None:
        self.config, feed_forward, vocabulary, tied = SHAPES[name]
        c = self.config
        torch.manual_seed(0)
        keys = c.heads_k * c.head_dim

        def matrix(rows: int, cols: int) -> torch.Tensor:
            return torch.empty(rows, cols, device="cuda", dtype=torch.bfloat16).normal_(0, cols**-0.5)

        self.all = {"embedding": matrix(vocabulary, c.hidden), "norm": torch.ones(c.hidden, device="cuda")}
        if not tied:
            self.all["output"] = matrix(vocabulary, c.hidden)
        for layer in range(c.layers):
            p = f"layers.{layer}."
            self.all |= {
                p + "qkv": matrix(c.hidden + 2 * keys, c.hidden),
                p + "o": matrix(c.hidden, c.hidden),
                p + "gate_up": matrix(2 * feed_forward, c.hidden),
                p + "down": matrix(c.hidden, feed_forward),
                p + "attention_norm": torch.ones(c.hidden, device="cuda"),
                p + "feed_forward_norm": torch.ones(c.hidden, device="cuda"),
            }

    @property
    def read_bytes(self) -> int:
        """What a step reads of them: of a table of its own, a row a token."""
        return sum(w.nbytes for name, w in self.all.items() if name != "embedding" or "output" not in self.all)

    @property
    def matrix_elements(self) -> int:
        """Of the layers: those that each token of a prefill is multiplied by."""
        return sum(w.numel() for name, w in self.all.items() if name.startswith("layers.") and w.ndim == 2)


class Ours:
    """The example's model, over shuffled pages."""

    def __init__(self, weights: Weights, case: Case) -> None:
        self.case = case
        ours = {name: tc.from_dlpack(w) for name, w in weights.all.items()}
        self.model = llama.Llama(weights.config, ours, "cuda:0", tc.bfloat16)
        per_request = -(-case.tokens // PAGE)
        self.pages = np.random.default_rng(0).permutation(case.batch * per_request).reshape(case.batch, -1)
        c = weights.config
        shape = (self.pages.size, c.heads_k, PAGE, c.head_dim)
        self.kept = [torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_() for _ in range(2 * c.layers)]
        shared = [tc.from_dlpack(t) for t in self.kept]
        self.cache = list(zip(shared[::2], shared[1::2], strict=True))
        torch.cuda.synchronize()

    def in_order(self) -> list[torch.Tensor]:
        """Its caches as (batch, heads_k, tokens, head_dim), which torch reads."""
        at = torch.from_numpy(self.pages).cuda()
        return [t[at].transpose(1, 2).flatten(2, 3)[:, :, : self.case.tokens].contiguous() for t in self.kept]

    def batch(self, ids: torch.Tensor) -> llama.Batch:
        new = self.case.tokens if self.case.work == "prefill" else 1
        counts = np.full(self.case.batch, new, np.int32)
        cached = np.full(self.case.batch, self.case.tokens - new, np.int32)
        return self.model.batch(ids.flatten().tolist(), counts, cached, self.pages.astype(np.int32), PAGE)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self.model.forward(self.batch(ids), self.cache).numpy())

    def decoder(self, ids: torch.Tensor, graph: bool) -> Decoder:
        """Each step is of the same position, so steps are alike."""
        decoder = Decoder(self.model, self.cache, self.case.batch, self.pages.shape[1], PAGE, Sampling(), graph)
        rows = [
            SimpleNamespace(ids=[int(token)] * self.case.tokens, seed=0, pages=own.tolist())
            for token, own in zip(ids.flatten(), self.pages, strict=True)
        ]
        decoder.load(rows)
        decoder.growth[...] = 0
        return decoder

    def work(self, ids: torch.Tensor) -> Callable[[], Any]:
        if self.case.work == "decode":
            decoder = self.decoder(ids, graph=True)
            decoder.step()
            assert decoder.recorded is not None
            return decoder.recorded.launch
        batch = self.batch(ids)
        forward = functools.partial(self.model.forward, batch, self.cache)
        forward()
        return tc.Graph(forward).launch


class Torch:
    """The same network in torch's operators."""

    def __init__(self, weights: Weights, case: Case, cache: list[torch.Tensor]) -> None:
        self.case, self.config, self.cache = case, weights.config, cache
        self.weights = {name: w.bfloat16() for name, w in weights.all.items()}
        self.weights.setdefault("output", self.weights["embedding"])
        c = self.config
        angles = torch.arange(c.context)[:, None] * c.rope_base ** (-2 * torch.arange(c.head_dim // 2) / c.head_dim)
        new = case.tokens if case.work == "prefill" else 1
        here = angles[case.tokens - new : case.tokens].cuda()
        self.cos, self.sin = here.cos(), here.sin()
        self.at = torch.arange(case.tokens - new, case.tokens, device="cuda")

    def rotate(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, heads, new tokens, head_dim)"""
        a, b = x.float().chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1).to(x.dtype)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """After the last token; ids: (batch, new tokens)."""
        c, w = self.config, self.weights
        rows, new = ids.shape

        def norm(name: str, x: torch.Tensor) -> torch.Tensor:
            return functional.rms_norm(x, (c.hidden,), w[name], c.eps)

        x = functional.embedding(ids, w["embedding"])
        for layer in range(c.layers):
            p = f"layers.{layer}."
            qkv = functional.linear(norm(p + "attention_norm", x), w[p + "qkv"])
            qkv = qkv.view(rows, new, -1, c.head_dim).transpose(1, 2)
            q, k, v = qkv.split([c.heads, c.heads_k, c.heads_k], dim=1)
            k_cache, v_cache = self.cache[2 * layer], self.cache[2 * layer + 1]
            k_cache.index_copy_(2, self.at, self.rotate(k))
            v_cache.index_copy_(2, self.at, v)
            mixed = functional.scaled_dot_product_attention(
                self.rotate(q), k_cache, v_cache, is_causal=new > 1, enable_gqa=True
            )
            x = x + functional.linear(mixed.transpose(1, 2).reshape(rows, new, c.hidden), w[p + "o"])
            gate, up = functional.linear(norm(p + "feed_forward_norm", x), w[p + "gate_up"]).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, w[p + "down"])
        return functional.linear(norm("norm", x[:, -1]), w["output"]).float()

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        return self.logits(ids).argmax(-1)

    def work(self, ids: torch.Tensor, compiled: bool) -> Callable[[], Any]:
        step = torch.compile(self.step, dynamic=False, fullgraph=True) if compiled else self.step
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                step(ids)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            self.result = step(ids)
        return graph.replay


def copy_work() -> tuple[Callable[[], Any], int]:
    """A large copy, and the bytes that it reads and writes."""
    source, target = torch.ones(2, 1 << 30, device="cuda", dtype=torch.uint8).unbind()
    return lambda: target.copy_(source), 2 * source.nbytes


def in_turn(candidates: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median of each, in microseconds between two events; the device is busy while the host enqueues."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 5):
        for name, run in candidates.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(400_000)
            begin.record()
            run()
            end.record()
            end.synchronize()
            if turn >= 5:
                times[name].append(begin.elapsed_time(end))
    return {name: summary(values)["median_ms"] * 1e3 for name, values in times.items()}


class TimedCalls:
    """The module tensorcraft with two events around each call, for the module of the model."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(tc, name)
        return functools.partial(self.timed, name, found) if name in OPERATORS else found

    def timed(self, name: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        result = function(*args, **options)
        end.record()
        arrays = [a for a in args if isinstance(a, tc.Tensor)]
        label, moved = name, 0
        if name == "gemm":
            kind = " gated" if options.get("gated") else ""
            label = f"gemm{kind} {arrays[1].shape[1]} -> {arrays[1].shape[0]}"
            moved = sum(a.nbytes for a in [*arrays, result])
        elif name == "paged_attention":
            moved = arrays[1].nbytes + arrays[2].nbytes  # the keys fill the pages
        self.calls.append((label, moved, begin, end))
        return result


def small_calls(count: int) -> Callable[[], Any]:
    """A graph of so many calls that do next to nothing, each after the one before."""
    x = tc.zeros((32,), device="cuda:0")

    def work() -> None:
        for _ in range(count):
            tc.add(x, x, out=x)

    tc.add(x, x, out=x)
    launch: Callable[[], Any] = tc.Graph(work).launch
    return launch


def profile(run: Callable[[], Any], step_us: float, copy_rate: float, nbytes_of_step: float) -> list[dict[str, Any]]:
    """Each kind of call: how many, microseconds of each, its share, its bytes a second over those of a large copy.

    Then what bounds the step: its launches, and its bytes.
    """
    timed = TimedCalls()
    modules = (llama, sys.modules["decoder"], sys.modules["sampling"])
    for module in modules:
        vars(module)["tc"] = timed
    try:
        turns: list[dict[str, list[float]]] = []
        for _ in range(7):
            timed.calls.clear()
            torch.cuda._sleep(100_000_000)  # the host enqueues all of it meanwhile
            empty = [torch.cuda.Event(enable_timing=True) for _ in range(20)]
            for event in empty:
                event.record()
            run()
            torch.cuda.synchronize()
            idle = sorted(a.elapsed_time(b) for a, b in itertools.pairwise(empty))[len(empty) // 2]
            turn: dict[str, list[float]] = {}
            for label, moved, begin, end in timed.calls:
                sums = turn.setdefault(label, [0.0, 0.0, 0.0])
                sums[0] += 1
                sums[1] += max(begin.elapsed_time(end) - idle, 0) * 1e3
                sums[2] += moved
            turns.append(turn)
    finally:
        for module in modules:
            vars(module)["tc"] = tc
    rows: list[dict[str, Any]] = []
    for label, (calls, _, nbytes) in turns[-1].items():
        us = max(float(np.median([turn[label][1] for turn in turns[2:]])), 1e-3)
        rows.append({"call": label, "calls": int(calls), "us of each": us / calls, "us": us, "of the step": us / step_us,
                     "of a copy": nbytes / us * 1e6 / copy_rate if nbytes else ""})  # fmt: skip
    together, calls_of_all = sum(row["us"] for row in rows), sum(row["calls"] for row in rows)
    rows.append({"call": "all calls by themselves", "calls": sum(row["calls"] for row in rows), "us of each": "",
                 "us": together, "of the step": together / step_us, "of a copy": ""})  # fmt: skip
    rows.append({"call": "the step in its graph", "calls": 1, "us of each": "", "us": step_us, "of the step": 1.0,
                 "of a copy": ""})  # fmt: skip
    empty_us = in_turn({"empty": small_calls(calls_of_all)}, 20)["empty"]
    rows.append({"call": "as many calls that do nothing, in a graph", "calls": calls_of_all, "us of each": empty_us / calls_of_all,
                 "us": empty_us, "of the step": empty_us / step_us, "of a copy": ""})  # fmt: skip
    if nbytes_of_step:
        floor = nbytes_of_step / copy_rate * 1e6
        rows.append({"call": "the step's bytes at the speed of a copy", "calls": "", "us of each": "", "us": floor,
                     "of the step": floor / step_us, "of a copy": 1.0})  # fmt: skip
    kinds = len(turns[-1])
    return sorted(rows[:kinds], key=lambda row: -row["us"]) + rows[kinds:]


def run_case(case: Case, file: Path, repeats: int) -> None:
    weights = Weights(case.model)
    ids = torch.randint(0, 1000, (case.batch, case.tokens if case.work == "prefill" else 1), device="cuda")
    candidates: dict[str, Callable[[], Any]] = {}
    copy, copied = copy_work()
    candidates["copy"] = copy
    kept: dict[str, Any] = {}  # what candidates need
    row: dict[str, Any] = {"name": case.name}

    def ours() -> Callable[[], Any]:
        kept["ours"] = Ours(weights, case)
        return kept["ours"].work(ids)  # type: ignore[no-any-return]

    def theirs(compiled: bool) -> Callable[[], Any]:
        cache = kept["ours"].in_order() if "ours" in kept else empty_cache()
        peer = kept[f"torch {compiled}"] = Torch(weights, case, cache)
        if "ours" in kept and not compiled:
            with torch.no_grad():
                wanted = peer.logits(ids).cpu().double()
            got = kept["ours"].logits(ids).double()
            row["least cosine of logits"] = float(functional.cosine_similarity(got, wanted).min())
            assert row["least cosine of logits"] > 0.99, row
        return peer.work(ids, compiled)

    def empty_cache() -> list[torch.Tensor]:
        c = weights.config
        shape = (case.batch, c.heads_k, case.tokens, c.head_dim)
        return [torch.zeros(shape, device="cuda", dtype=torch.bfloat16) for _ in range(2 * c.layers)]

    rows: list[dict[str, Any]] = []
    for name, make in (("tensorcraft", ours), ("torch eager", lambda: theirs(False)),
                       ("torch.compile", lambda: theirs(True))):  # fmt: skip
        say(case.name, name)
        try:
            candidates[name] = make()
            times = in_turn(candidates, repeats)
        except Exception:  # noqa: BLE001  the others go on
            traceback.print_exc()
            candidates.pop(name, None)
            continue
        row |= figures(case, weights, times, copied)
        say({key: value for key, value in row.items() if key != "name"})
        if name == "tensorcraft":
            rows = profile_rows(case, weights, kept["ours"], ids, times, copied)
        file.write_text(json.dumps({"rows": [row, *rows]}))


def figures(case: Case, weights: Weights, times: dict[str, float], copied: int) -> dict[str, Any]:
    c, copy_rate = weights.config, copied / times["copy"] * 1e6
    found: dict[str, Any] = {"copy GB/s": copy_rate * 1e-9}
    found |= {f"{name} us": us for name, us in times.items() if name != "copy"}
    peers = [name for name in ("torch eager", "torch.compile") if name in times]
    if "tensorcraft" not in times:
        return found
    us = times["tensorcraft"]
    found |= {f"times as fast as {name}": times[name] / us for name in peers}
    if case.work == "decode":
        for name in ("tensorcraft", *peers):
            found[f"{name} bytes of a copy's"] = step_bytes(case, weights) / times[name] * 1e6 / copy_rate
    else:
        operations = 2 * weights.matrix_elements * case.tokens
        operations += 2 * c.layers * c.hidden * case.tokens**2  # attention, the half that it sees
        found["TFLOPS"] = operations / us * 1e-6
    return found


def step_bytes(case: Case, weights: Weights) -> int:
    """What a decode step reads: weights, keys and values."""
    c = weights.config
    return weights.read_bytes + 2 * c.layers * case.batch * case.tokens * c.heads_k * c.head_dim * 2


def profile_rows(
    case: Case, weights: Weights, ours: Ours, ids: torch.Tensor, times: dict[str, float], copied: int
) -> list[dict[str, Any]]:
    nbytes = 0
    if case.work == "decode":
        run: Callable[[], Any] = ours.decoder(ids, graph=False).enqueue
        nbytes = step_bytes(case, weights)
    else:
        run = functools.partial(ours.model.forward, ours.batch(ids), ours.cache)
    try:
        run()
        found = profile(run, times["tensorcraft"], copied / times["copy"] * 1e6, nbytes)
    except Exception:  # noqa: BLE001  the times stay
        traceback.print_exc()
        return []
    return [{"name": f"profile of {case.name}", **row} for row in found]


def case_of(row: dict[str, Any]) -> str:
    return str(row["name"]).removeprefix("profile of ")


def write_with_others(file: Path, rows: list[dict[str, Any]], missing: list[str]) -> None:
    """Rows of cases that were not measured now stay in the file."""
    there = json.loads(file.read_text())["rows"] if file.exists() else []
    new, order = {case_of(row) for row in rows}, [case.name for case in CASES]
    together = [row for row in there if case_of(row) not in new] + rows
    together.sort(key=lambda row: (row["name"] != case_of(row), order.index(case_of(row))))
    timing = "events around one launch of a graph, in turn, median; profiles by events around each call, no graph"
    write(
        str(file), "Llama-shaped models with random bfloat16 weights on a GPU", together, timing=timing, missing=missing
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--seconds", type=int, default=480, help="a case may take; default: %(default)s")
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)  # in this process
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.case is not None:
        run_case(CASES[args.case], args.folder / f"case_{args.case}.json", args.repeats)
        return
    rows, missing = [], []
    for number, case in enumerate(CASES):
        if args.only not in case.name:
            continue
        part = args.folder / f"case_{number}.json"
        part.unlink(missing_ok=True)
        command = [sys.executable, __file__, str(args.folder), "--case", str(number), "--repeats", str(args.repeats)]
        try:
            code = subprocess.run(command, check=False, timeout=args.seconds).returncode
            problem = f"exit status {code}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"more than {args.seconds} s"
        if problem:
            say(case.name, problem)
            missing.append(f"{case.name}: {problem}")
        if part.exists():
            rows += json.loads(part.read_text())["rows"]
            part.unlink()
            write_with_others(args.folder / FILE, rows, missing)
    if not rows:
        sys.exit("decode: no case was measured")


if __name__ == "__main__":
    main()
