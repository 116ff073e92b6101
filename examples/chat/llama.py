# SPDX-License-Identifier: Apache-2.0
"""A Llama-shaped language model on TensorCraft operators: tokens in, logits out; keys and values in a paged cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tensorcraft as tc

Floats, Integers = NDArray[np.float32], NDArray[np.int32]
Cache = list[tuple[tc.Tensor, tc.Tensor]]  # keys and values of each layer: (pages, page size, heads_k, head_dim)


@dataclass(frozen=True)
class Config:
    """The dimensions of a model."""

    layers: int
    hidden: int
    heads: int
    heads_k: int
    context: int
    rope_base: float
    eps: float

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads


class Batch:
    """The new tokens of several requests, one request after the other, and where their keys go.

    `counts[b]` tokens of request b follow the `cached[b]` that it has; row b of `tables` names its pages.
    """

    def __init__(self, ids: Sequence[int], counts: Integers, cached: Integers, tables: Integers, page_size: int) -> None:
        request = np.repeat(np.arange(len(counts)), counts)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        positions = np.arange(len(ids)) - starts[request] + cached[request]
        self.ids = np.array(ids, np.int32)
        self.positions = positions.astype(np.int32)
        self.slots = (tables[request, positions // page_size] * page_size + positions % page_size).astype(np.int32)
        self.lengths = (cached + counts).astype(np.int32)
        self.tables, self.starts, self.last = tables, starts, starts[1:] - 1
        self.one_each = len(ids) == len(counts)


class Llama:
    """A model: weights under the names that `load.read_weights` gives them, on `device`, matrices in `dtype`."""

    def __init__(self, config: Config, weights: dict[str, Floats], device: str | None = None,
                 dtype: tc.DType = tc.float32, batch_invariant: bool = False) -> None:  # fmt: skip
        self.config, self.dtype, self.batch_invariant = config, dtype, batch_invariant
        self.device = tc.default_device() if device is None else device
        self.weights = {
            name: tc.asarray(w, dtype=dtype if w.ndim > 1 else tc.float32, device=self.device) for name, w in weights.items()
        }
        self.weights.setdefault("output", self.weights["embedding"])  # one matrix for both, unless the file has two
        positions = tc.arange(config.context, dtype=tc.int32, device=self.device)
        self.cos, self.sin = tc.rope_cache(positions, config.head_dim, base=config.rope_base)

    def new_cache(self, pages: int, page_size: int) -> Cache:
        shape = (pages, page_size, self.config.heads_k, self.config.head_dim)
        empty = [tc.empty(shape, dtype=self.dtype, device=self.device) for _ in range(2 * self.config.layers)]
        return list(zip(empty[::2], empty[1::2], strict=True))

    def forward(self, batch: Batch, cache: Cache, all_rows: bool = False) -> tc.Tensor:
        """float32 logits (requests, vocabulary) after each request's last token, or after every token."""
        x = tc.embedding(self.put(batch.ids), self.weights["embedding"])
        place = {"slots": self.put(batch.slots), "positions": self.put(batch.positions)}
        keys = {"block_tables": self.put(batch.tables), "lengths": self.put(batch.lengths)}
        if not batch.one_each:
            keys["cu_seqlens_q"] = self.put(batch.starts)
        y = self.norm("layers.0.attention_norm", x)
        for layer, (k_cache, v_cache) in enumerate(cache):
            name = f"layers.{layer}."
            mixed = self.attention(name, y, k_cache, v_cache, place, keys)
            y, x = self.norm_after(name + "feed_forward_norm", self.linear(name + "o", mixed), x)
            hidden = self.linear(name + "gate_up", y, gated="silu")
            following = f"layers.{layer + 1}.attention_norm" if layer + 1 < len(cache) else "norm"
            y, x = self.norm_after(following, self.linear(name + "down", hidden), x)
        if not (all_rows or batch.one_each):
            y = tc.take(y, self.put(batch.last), axis=0)
        return self.linear("output", y, out_dtype=tc.float32)

    def attention(self, name: str, x: tc.Tensor, k_cache: tc.Tensor, v_cache: tc.Tensor,
                  place: dict[str, tc.Tensor], keys: dict[str, tc.Tensor]) -> tc.Tensor:  # fmt: skip
        c = self.config
        heads = self.linear(name + "qkv", x).reshape((-1, c.heads + 2 * c.heads_k, c.head_dim))
        q, k, v = (heads[:, a:b] for a, b in ((0, c.heads), (c.heads, c.heads + c.heads_k), (c.heads + c.heads_k, None)))
        # One call rotates q and k and writes k and v to their slots.
        q = tc.append_kv(k_cache, v_cache, k, v, q=q, cos=self.cos, sin=self.sin, **place).q_out
        return tc.paged_attention(q, k_cache, v_cache, **keys).reshape((-1, c.hidden))

    def linear(self, name: str, x: tc.Tensor, **options: Any) -> tc.Tensor:
        return tc.gemm(x, self.weights[name], transpose_b=True, batch_invariant=self.batch_invariant, **options)

    def norm(self, name: str, x: tc.Tensor) -> tc.Tensor:
        return tc.rms_norm(x, self.weights[name], eps=self.config.eps)

    def norm_after(self, name: str, x: tc.Tensor, residual: tc.Tensor) -> tuple[tc.Tensor, tc.Tensor]:
        """The norm of x + residual, and that sum."""
        y, total = tc.rms_norm(x, self.weights[name], eps=self.config.eps, residual=residual)
        return y, total

    def put(self, integers: Integers) -> tc.Tensor:
        return tc.asarray(integers, device=self.device)
