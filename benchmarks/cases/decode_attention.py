"""Decode over pages and append: paged_attention beside torch's attention over the same keys in order, append_kv beside a
copy of what it moves."""

from __future__ import annotations

from typing import Any

import torch
from figures import Row, beside, random
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import tensorcraft as tc

TITLE, REPEATS = "decode over pages, append", 50
HEADS, HEADS_K, DIM, BLOCK = 64, 8, 128, 16
REQUESTS = [(1, 8192), (16, 4096), (64, 4096), (128, 8192)]  # batch, keys of each
TOKENS = 8192
BACKENDS = {"torch cudnn": SDPBackend.CUDNN_ATTENTION, "torch flash": SDPBackend.FLASH_ATTENTION}


def contiguous(cache: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """The pages of each request as (batch, heads_k, keys, dim)."""
    return cache[table.long()].reshape(table.shape[0], -1, HEADS_K, DIM).transpose(1, 2).contiguous()


def peer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, backend: SDPBackend) -> Any:
    def call() -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q[:, :, None], k, v, enable_gqa=True)

    return call


def decode(batch: int, keys: int, repeats: int) -> Row:
    blocks = batch * keys // BLOCK
    k, v, q = random(blocks, BLOCK, HEADS_K, DIM), random(blocks, BLOCK, HEADS_K, DIM), random(batch, HEADS, DIM)
    table = torch.randperm(blocks, device="cuda", dtype=torch.int32).reshape(batch, -1)
    lengths = torch.full((batch,), keys, device="cuda", dtype=torch.int32)
    out, moved = torch.empty_like(q), torch.empty_like(k)
    candidates = {"paged": lambda: tc.paged_attention(q, k, v, table, lengths, out=out), "copy": lambda: moved.copy_(k)}
    k_rows, v_rows = contiguous(k, table), contiguous(v, table)
    for name, backend in BACKENDS.items():
        call = peer(q, k_rows, v_rows, backend)
        try:
            candidates["paged"]()
            torch.testing.assert_close(out, call()[:, :, 0], rtol=2e-2, atol=2e-2)
            candidates[name] = call
        except RuntimeError as error:  # a backend that does not take the call
            print(f"{name}: {str(error).splitlines()[0]}")
    return {"case": f"decode {batch} x {keys}"} | beside(candidates, 2 * k.numel() * k.element_size(), repeats)


def append(rotates: bool, repeats: int) -> Row:
    cache = [random(TOKENS // BLOCK, BLOCK, HEADS_K, DIM) for _ in range(2)]
    k, v, q = random(TOKENS, HEADS_K, DIM), random(TOKENS, HEADS_K, DIM), random(TOKENS, HEADS, DIM)
    slots = torch.randperm(TOKENS, device="cuda", dtype=torch.int32)
    at = torch.arange(TOKENS, device="cuda", dtype=torch.int32)
    cos, sin = torch.randn(2, TOKENS, DIM // 2, device="cuda").unbind()
    turned, k_turned = torch.empty_like(q), torch.empty_like(k)
    options = {"q": q, "cos": cos, "sin": sin, "positions": at} if rotates else {}

    def apart() -> None:
        tc.rope(q, k=k, cos=cos, sin=sin, positions=at, out=(turned, k_turned))
        tc.append_kv(*cache, k_turned, v, slots)

    moved = [torch.empty_like(t) for t in ((q, k, v) if rotates else (k, v))]
    candidates = {
        "append": lambda: tc.append_kv(*cache, k, v, slots, out=(None, None, turned) if rotates else None, **options),
        "copy": lambda: torch._foreach_copy_(moved, [q, k, v] if rotates else [k, v]),
    }
    if rotates:
        candidates["two calls"] = apart
    return {"case": "rope and append" if rotates else "append"} | beside(candidates, repeats=repeats)


def rows(repeats: int) -> list[Row]:
    return [*(decode(*request, repeats) for request in REQUESTS), append(False, repeats), append(True, repeats)]
