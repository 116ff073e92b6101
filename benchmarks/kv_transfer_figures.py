# SPDX-License-Identifier: Apache-2.0
"""KV transfer on a GPU: random pages of a cache between GPU and host memory, page-locked or pageable, and within the GPU, beside
one copy of as many bytes in one piece from the same memory; all layers in one launch beside one launch a layer. Prints a table and, given FILE, writes the
figures there.

usage: kv_transfer_figures.py [FILE]    where Python finds the built package
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from timing import interleaved_gpu, write

import tensorcraft as tc

PAGE = 16
BYTES = 256 << 20  # of keys and values that move
SIZES = [128, 256, 512, 1024, 2048, 4096]  # bytes of an element
QUOTAS = [2, 8, 32, 256]
LAYERS = 64


def cache(tokens: int, element: int, where: str) -> torch.Tensor:
    if where != "device":
        return torch.zeros((tokens, element // 2), dtype=torch.bfloat16, pin_memory=where == "host")
    return torch.randn((tokens, element // 2), device="cuda").to(torch.bfloat16)


def pages(tokens: int, of: int) -> torch.Tensor:
    """So many tokens on random pages."""
    first = torch.randperm(of // PAGE, device="cuda")[: tokens // PAGE] * PAGE
    return (first[:, None] + torch.arange(PAGE, device="cuda")).reshape(-1)


def one_layer(element: int, source: str, target: str, quota: int | None) -> dict[str, Any]:
    tokens = BYTES // (2 * element)
    k, v = (cache(2 * tokens, element, source) for _ in range(2))
    k_to, v_to = (cache(2 * tokens, element, target) for _ in range(2))
    here, there = pages(tokens, 2 * tokens), pages(tokens, 2 * tokens)

    def move(**options: Any) -> Callable[[], Any]:
        return lambda: tc.transfer_hicache_one_layer(k_to, v_to, there, k, v, here, block_quota=quota, **options)

    def copy() -> None:
        k_to[:tokens].copy_(k[:tokens], non_blocking=True)
        v_to[:tokens].copy_(v[:tokens], non_blocking=True)

    move()()
    torch.cuda.synchronize()
    assert torch.equal(k_to[there.to(k_to.device)].cpu(), k[here.to(k.device)].cpu())
    times = interleaved_gpu({"ours": move(), "naive": move(variant="naive"), "copy": copy}, repeats=10, warmup=3)
    ours = times["ours"]["median_ms"]
    return {
        "name": "transfer_hicache", "case": f"{source} to {target}, {element} B, quota {quota or 'default'}", "us": ours * 1e3,
        "GB/s": BYTES / ours / 1e6, "of copy": times["copy"]["median_ms"] / ours,
        "of naive": times["naive"]["median_ms"] / ours,
    }  # fmt: skip


def all_layers(tokens: int, element: int, source: str, target: str) -> dict[str, Any]:
    k, v = ([cache(2 * tokens, element, source) for _ in range(LAYERS)] for _ in range(2))
    k_to, v_to = ([cache(2 * tokens, element, target) for _ in range(LAYERS)] for _ in range(2))
    here, there = pages(tokens, 2 * tokens), pages(tokens, 2 * tokens)
    tables = [torch.tensor([t.data_ptr() for t in layers], device="cuda") for layers in (k_to, v_to, k, v)]

    def together() -> None:
        tc.transfer_hicache_all_layer(*tables[:2], there, *tables[2:], here, element_size=element)

    def apart() -> None:
        for i in range(LAYERS):
            tc.transfer_hicache_one_layer(k_to[i], v_to[i], there, k[i], v[i], here)

    times = interleaved_gpu({"together": together, "apart": apart}, repeats=20, warmup=5)
    ours = times["together"]["median_ms"]
    return {
        "name": "transfer_hicache", "case": f"{LAYERS} layers, {tokens} tokens of {element} B, {source} to {target}", "us": ours * 1e3,
        "GB/s": 2 * LAYERS * tokens * element / ours / 1e6, "of a launch a layer": times["apart"]["median_ms"] / ours,
    }  # fmt: skip


def main() -> None:
    ways = [("device", "host"), ("host", "device"), ("device", "device")]
    rows = [one_layer(element, *way, None) for way in ways for element in SIZES]
    rows += [one_layer(1024, *way, quota) for way in ways for quota in QUOTAS]
    pageable = [("device", "pageable host"), ("pageable host", "device")]
    rows += [one_layer(element, *way, None) for way in pageable for element in SIZES]
    rows += [all_layers(tokens, 512, *way) for way in ways for tokens in (16, 256)]
    for row in rows:
        print(
            ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items())
        )
    if len(sys.argv) > 1:
        write(sys.argv[1], "KV transfer", rows)


if __name__ == "__main__":
    main()
