# SPDX-License-Identifier: Apache-2.0
"""A layer of experts in the shape of Qwen3-30B-A3B's, beside torch: its eager routing and its grouped products.

    python benchmarks/expert_layer.py OUT.json [--tokens 1 16 256 4096] [--seconds 0.5]

Both route, sort rows by expert, multiply them twice with a gate between, and add up what the experts made of each token.
Then routing alone, of 4096 tokens: from logits to sorted rows, with 128 and with 256 experts.
Their results are compared first; they take turns. Without a GPU a small layer of ours is timed alone, to try it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from timing import gpu_timer, micro_summary, write

import tensorcraft as tc


class Shape(NamedTuple):
    experts: int = 128
    per_token: int = 8
    hidden: int = 2048
    inner: int = 768

    def flops(self, tokens: int) -> int:
        return 2 * tokens * (self.per_token * 3 * self.inner * self.hidden + self.hidden * self.experts)


SMALL = Shape(experts=8, per_token=2, hidden=64, inner=96)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096)
ROUTED = 4096  # tokens of which routing is timed alone


class Weights(NamedTuple):
    """Every expert's gate and up projection in one matrix, then its down projection."""

    router: Any
    gate_up: Any
    down: Any


def shapes(s: Shape) -> tuple[tuple[int, ...], ...]:
    return (s.experts, s.hidden), (s.experts, 2 * s.inner, s.hidden), (s.experts, s.hidden, s.inner)


def ours_routed(x: Any, logits: Any, s: Shape) -> tuple[Any, ...]:
    weights, ids = tc.moe_router(logits, s.per_token, renormalize=True)
    rows, offsets, row_map, _ = tc.moe_permute(x, ids, s.experts)
    return rows, offsets, row_map, weights


def ours(x: Any, w: Weights, s: Shape) -> Any:
    rows, offsets, row_map, weights = ours_routed(x, tc.gemm(x, w.router, transpose_b=True), s)
    hidden = tc.grouped_gemm(rows, w.gate_up, offsets=offsets, transpose_b=True, gated="silu")
    return tc.moe_combine(tc.grouped_gemm(hidden, w.down, offsets=offsets, transpose_b=True), row_map, weights)


def torch_routed(x: Any, logits: Any, s: Shape) -> tuple[Any, ...]:
    """Rows by expert, where each expert's end, the tokens of the rows, and their weights."""
    import torch

    chosen = logits.float().softmax(-1).topk(s.per_token)
    weights = chosen.values / chosen.values.sum(-1, keepdim=True)
    ids = chosen.indices.flatten()
    order = ids.argsort(stable=True)
    tokens = order // s.per_token
    ends = torch.bincount(ids, minlength=s.experts).cumsum(0, dtype=torch.int32)
    return x[tokens], ends, tokens, weights.flatten()[order, None].to(x.dtype)


def by_torch(x: Any, w: Weights, s: Shape) -> Any:
    import torch
    from torch.nn import functional

    rows, ends, tokens, weights = torch_routed(x, x @ w.router.mT, s)
    gate, up = torch._grouped_mm(rows, w.gate_up.mT, offs=ends).chunk(2, -1)
    out = torch._grouped_mm(functional.silu(gate) * up, w.down.mT, offs=ends)
    return torch.zeros_like(x).index_add_(0, tokens, out * weights)


Candidates = dict[str, Callable[[], float]]


def timers(calls: dict[str, Callable[[int], Any]]) -> Candidates:
    same_set = iter(int, 1)
    return {name: gpu_timer(call, same_set, 1, False) for name, call in calls.items()}


def normal(*shape: int) -> Any:
    import torch

    return torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_(0, shape[-1] ** -0.5)


def gpu_candidates(tokens: int, s: Shape) -> Candidates:
    import torch

    torch.manual_seed(0)
    theirs = Weights(*(normal(*shape) for shape in shapes(s)))
    own = Weights(*map(tc.from_dlpack, theirs))
    x = torch.randn(tokens, s.hidden, device="cuda", dtype=torch.bfloat16)
    shared = tc.from_dlpack(x)
    results = [torch.from_numpy(ours(shared, own, s).astype(tc.float32).numpy()), by_torch(x, theirs, s).float().cpu()]
    difference = float((results[0] - results[1]).norm() / results[1].norm())
    print(f"{tokens} tokens: relative difference of the results {difference:.2g}")
    if difference > 0.1:  # an expert that is as good as another may be chosen
        raise SystemExit("the results differ")
    return timers({"tensorcraft": lambda _: ours(shared, own, s), "torch": lambda _: by_torch(x, theirs, s)})


def routing_candidates(tokens: int, s: Shape) -> Candidates:
    import torch

    torch.manual_seed(0)
    x = torch.randn(tokens, s.hidden, device="cuda", dtype=torch.bfloat16)
    logits = torch.rand(tokens, s.experts, device="cuda").argsort(-1).float() / s.experts  # no two are equal
    own = tc.from_dlpack(x), tc.from_dlpack(logits)
    rows, offsets, _, _ = ours_routed(*own, s)
    wanted, ends, _, _ = torch_routed(x, logits, s)
    same = np.array_equal(rows.astype(tc.float32).numpy(), wanted.float().cpu().numpy())
    if not same or offsets.tolist()[1:] != ends.tolist():
        raise SystemExit("rows are sorted otherwise")
    return timers({"tensorcraft": lambda _: ours_routed(*own, s), "torch": lambda _: torch_routed(x, logits, s)})


def cpu_candidates(tokens: int, s: Shape) -> Candidates:
    random = np.random.default_rng(0)
    weights = Weights(*(tc.asarray(random.standard_normal(shape, np.float32)) for shape in shapes(s)))
    x = tc.asarray(random.standard_normal((tokens, s.hidden), np.float32))

    def once() -> float:
        start = time.perf_counter()
        ours(x, weights, s)
        return (time.perf_counter() - start) * 1e6

    return {"tensorcraft": once}


def measured(candidates: Candidates, seconds: float) -> dict[str, dict[str, float]]:
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for once in candidates.values():
        for _ in range(3):
            once()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds * len(candidates) or min(map(len, samples.values())) < 5:
        for name, once in candidates.items():
            samples[name].append(once())
    return {name: micro_summary(values) for name, values in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--tokens", type=int, nargs="+", default=TOKENS)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    is_gpu = "cuda:0" in tc.devices()
    shape = Shape() if is_gpu else SMALL
    rows: list[dict[str, Any]] = []

    def add(name: str, tokens: int, candidates: Candidates, flops: float | None) -> None:
        found = measured(candidates, given.seconds)
        row = {"name": name, "tokens": tokens}
        row |= {f"{candidate} us": times["median_us"] for candidate, times in found.items()}
        if "torch" in found:
            row["times as fast as torch eager"] = found["torch"]["median_us"] / found["tensorcraft"]["median_us"]
        if flops:
            row["TFLOPS"] = flops / found["tensorcraft"]["median_us"] / 1e6
        rows.append(row)

    for tokens in given.tokens:
        candidates = (gpu_candidates if is_gpu else cpu_candidates)(tokens, shape)
        add(f"{shape.experts} experts, {shape.per_token} a token", tokens, candidates, shape.flops(tokens))
    for experts in (128, 256) if is_gpu else ():
        routed = shape._replace(experts=experts)
        add(f"routing to {experts} experts", ROUTED, routing_candidates(ROUTED, routed), None)
    write(given.out, "a layer of experts", rows, shape=shape._asdict())


if __name__ == "__main__":
    main()
