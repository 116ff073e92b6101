"""Attention with options: TFLOPS of what a query sees, beside the same call without the option in the same run."""

from __future__ import annotations

from typing import Any

import torch
from figures import Row, random
from timing import interleaved_gpu

import tensorcraft as tc

TITLE, REPEATS = "attention with options", 50
TOKENS, HEADS, DIM = 16384, 16, 128
WINDOW = 1024  # keys that a query sees
LENGTHS = {  # of the requests of a ragged batch, TOKENS in all
    "ragged, 8 of 61 to 4993": [61, 4993, 350, 2311, 1029, 3900, 1777, 1963],
    "ragged, 16 of 1 to 2050": [1, 2050, 512, 1500, 333, 1024, 2000, 777, 64, 1999, 1300, 850, 1025, 129, 1810, 1010],
}


def pairs(queries: int, causal: bool) -> int:
    return queries * (queries + 1) // 2 if causal else queries * queries


def batch(requests: int, heads_k: int = HEADS) -> list[torch.Tensor]:
    rows = TOKENS // requests
    return [random(requests, heads, rows, DIM) for heads in (HEADS, heads_k, heads_k)]


def calls(causal: bool) -> dict[str, tuple[Any, int, str]]:
    """Of each case: the call, the pairs of query and key that one head sees, and the case it is held against."""
    dense = {n: batch(n) for n in (2, 8, 16)}
    found: dict[str, tuple[Any, int, str]] = {}

    def add(name: str, tensors: list[torch.Tensor], seen: int, against: str, **options: Any) -> None:
        out = torch.empty_like(tensors[0])
        found[name] = (lambda: tc.attention(*tensors, out=out, **options), seen, against)

    for n, tensors in dense.items():
        add(f"dense, {n} of {TOKENS // n}", tensors, n * pairs(TOKENS // n, causal), "", causal=causal)
    eight = f"dense, 8 of {TOKENS // 8}"
    add("8 query heads a key head", batch(8, HEADS // 8), 8 * pairs(TOKENS // 8, causal), eight, causal=causal)
    sinks = torch.randn(HEADS, device="cuda", dtype=torch.float32)
    add("sinks", dense[8], 8 * pairs(TOKENS // 8, causal), eight, causal=causal, sinks=sinks)
    for name, lengths in LENGTHS.items():
        starts = torch.tensor([0, *lengths], device="cuda").cumsum(0).to(torch.int32)
        rows = [random(TOKENS, HEADS, DIM) for _ in range(3)]
        seen = sum(pairs(n, causal) for n in lengths)
        against = f"dense, {len(lengths)} of {TOKENS // len(lengths)}"
        add(name, rows, seen, against, causal=causal, cu_seqlens_q=starts, cu_seqlens_k=starts)
    if causal:
        rows = TOKENS // 2
        seen = 2 * (pairs(rows, True) - pairs(rows - WINDOW, True))
        add(f"window of {WINDOW}", dense[2], seen, f"dense, 2 of {rows}", window=(WINDOW - 1, 0))
    return found


def figures(causal: bool, repeats: int) -> list[Row]:
    found = calls(causal)
    times = interleaved_gpu({name: call for name, (call, _, _) in found.items()}, repeats)
    tflops = {name: 4e-9 * HEADS * DIM * seen / times[name]["median_ms"] for name, (_, seen, _) in found.items()}
    return [
        {
            "case": f"{name}{', causal' if causal else ''}", "us": times[name]["median_ms"] * 1e3,
            "TFLOPS": tflops[name], **({"of dense": tflops[name] / tflops[against]} if against else {}),
        }
        for name, (_, _, against) in found.items()
    ]  # fmt: skip


def rows(repeats: int) -> list[Row]:
    return [*figures(False, repeats), *figures(True, repeats)]
