# SPDX-License-Identifier: Apache-2.0
"""KV transfer: random pages of a cache between GPU and host memory, page-locked or pageable, and within the GPU, beside one
copy of as many bytes in one piece from the same memory; all layers in one launch beside one launch a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from figures import Row, beside

import tensorcraft as tc

TITLE, REPEATS = "KV transfer", 10
PAGE = 16
BYTES = 256 << 20  # of keys and values that move
SIZES = [128, 256, 512, 1024, 2048, 4096]  # bytes of an element
QUOTAS = [2, 8, 32, 256]
LAYERS = 64
WAYS = [("device", "host"), ("host", "device"), ("device", "device")]
PAGEABLE = [("device", "pageable host"), ("pageable host", "device")]


def cache(tokens: int, element: int, where: str) -> torch.Tensor:
    if where != "device":
        return torch.zeros((tokens, element // 2), dtype=torch.bfloat16, pin_memory=where == "host")
    return torch.randn((tokens, element // 2), device="cuda").to(torch.bfloat16)


def pages(tokens: int, of: int) -> torch.Tensor:
    """So many tokens on random pages."""
    first = torch.randperm(of // PAGE, device="cuda")[: tokens // PAGE] * PAGE
    return (first[:, None] + torch.arange(PAGE, device="cuda")).reshape(-1)


def one_layer(repeats: int, element: int, source: str, target: str, quota: int | None = None) -> Row:
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
    case = f"{source} to {target}, {element} B, quota {quota or 'default'}"
    candidates = {"ours": move(), "copy": copy, "naive": move(variant="naive")}
    return {"name": "transfer_hicache", "case": case} | beside(candidates, BYTES, repeats, warmup=3)


def all_layers(repeats: int, tokens: int, element: int, source: str, target: str) -> Row:
    k, v = ([cache(2 * tokens, element, source) for _ in range(LAYERS)] for _ in range(2))
    k_to, v_to = ([cache(2 * tokens, element, target) for _ in range(LAYERS)] for _ in range(2))
    here, there = pages(tokens, 2 * tokens), pages(tokens, 2 * tokens)
    tables = [torch.tensor([t.data_ptr() for t in layers], device="cuda") for layers in (k_to, v_to, k, v)]

    def together() -> None:
        tc.transfer_hicache_all_layer(*tables[:2], there, *tables[2:], here, element_size=element)

    def apart() -> None:
        for i in range(LAYERS):
            tc.transfer_hicache_one_layer(k_to[i], v_to[i], there, k[i], v[i], here)

    case = f"{LAYERS} layers, {tokens} tokens of {element} B, {source} to {target}"
    candidates, nbytes = {"together": together, "a launch a layer": apart}, 2 * LAYERS * tokens * element
    return {"name": "transfer_hicache", "case": case} | beside(candidates, nbytes, repeats, warmup=5)


def rows(repeats: int) -> list[Row]:
    found = [one_layer(repeats, element, *way) for way in WAYS for element in SIZES]
    found += [one_layer(repeats, 1024, *way, quota) for way in WAYS for quota in QUOTAS]
    found += [one_layer(repeats, element, *way) for way in PAGEABLE for element in SIZES]
    return found + [all_layers(2 * repeats, tokens, 512, *way) for way in WAYS for tokens in (16, 256)]
