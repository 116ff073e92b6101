# SPDX-License-Identifier: Apache-2.0
"""A Llama-shaped language model on TensorCraft operators: tokens in, logits out; keys and values in a paged cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from quantized import Kind, WeightOfBytes, WeightOfNibbles, quantized, takes_bits

import tensorcraft as tc

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]
Cache = list[tuple[tc.Tensor, tc.Tensor]]  # keys and values of each layer: (pages, heads_k, page size, head_dim)


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


@dataclass(frozen=True)
class Batch:
    """The new tokens of several requests, one request after the other, and where their keys go; all on the device."""

    ids: tc.Tensor
    positions: tc.Tensor
    slots: tc.Tensor  # of each token
    tables: tc.Tensor  # the pages of each request
    lengths: tc.Tensor  # of each request, its new tokens included
    starts: tc.Tensor | None  # where each request begins; None if each has one new token
    last: tc.Tensor | None  # the last new token of each request; None if each has one


class Llama:
    """A model: weights under the names that `load.read_weights` gives them, on `device`, matrices in `dtype`.

    With `kind` matrices of the layers have 8 or 4 bits an element, and `dtype` is that of all else.
    """

    def __init__(self, config: Config, weights: dict[str, Floats], device: str | None = None,
                 dtype: tc.DType = tc.float32, batch_invariant: bool = False, kind: Kind | None = None) -> None:  # fmt: skip
        self.config, self.dtype, self.batch_invariant = config, dtype, batch_invariant
        self.device = tc.default_device() if device is None else device
        self.weights: dict[str, tc.Tensor] = {}
        self.quantized: dict[str, WeightOfBytes | WeightOfNibbles] = {}
        for name, w in weights.items():
            if kind and takes_bits(name, kind, config.layers):
                self.quantized[name] = quantized(tc.asarray(w, device=self.device), kind)
            else:
                self.weights[name] = tc.asarray(w, dtype=dtype if w.ndim > 1 else tc.float32, device=self.device)
        # All there is of weights, in bytes.
        self.nbytes = sum(w.nbytes for kept in (self.weights, self.quantized) for w in kept.values())
        self.weights.setdefault("output", self.weights["embedding"])  # one matrix for both, unless the file has two
        positions = tc.arange(config.context, dtype=tc.int32, device=self.device)
        self.cos, self.sin = tc.rope_cache(positions, config.head_dim, base=config.rope_base)

    def new_cache(self, pages: int, page_size: int) -> Cache:
        """Inside a page the keys of a head are neighbours (layout "hnd"), so they are one walk through memory."""
        shape = (pages, self.config.heads_k, page_size, self.config.head_dim)
        empty = [tc.empty(shape, dtype=self.dtype, device=self.device) for _ in range(2 * self.config.layers)]
        return list(zip(empty[::2], empty[1::2], strict=True))

    def batch(self, ids: Sequence[int], counts: Integers, cached: Integers, tables: Integers, page_size: int) -> Batch:
        """`counts[b]` tokens of request b, which has `cached[b]` already; row b of `tables` names its pages."""
        request = np.repeat(np.arange(len(counts)), counts)
        starts = np.concatenate([[0], np.cumsum(counts)])
        positions = np.arange(len(ids)) - starts[request] + cached[request]
        slots = tables[request, positions // page_size] * page_size + positions % page_size
        return Batch(
            ids=self.put(ids),
            positions=self.put(positions),
            slots=self.put(slots),
            tables=self.put(tables),
            lengths=self.put(cached + counts),
            starts=None if len(ids) == len(counts) else self.put(starts),
            last=None if len(ids) == len(counts) else self.put(starts[1:] - 1),
        )

    def put(self, integers: ArrayLike) -> tc.Tensor:
        return tc.asarray(np.asarray(integers, np.int32), device=self.device)

    def forward(self, batch: Batch, cache: Cache, all_rows: bool = False) -> tc.Tensor:
        """float32 logits (requests, vocabulary) after each request's last token, or after every token."""
        x = tc.embedding(batch.ids, self.weights["embedding"])
        y = tc.rms_norm(x, self.weights["layers.0.attention_norm"], eps=self.config.eps)
        for layer, (k_cache, v_cache) in enumerate(cache):
            name = f"layers.{layer}."
            mixed = self.attention(name, y, k_cache, v_cache, batch)
            y, x = self.norm(name + "feed_forward_norm", self.linear(name + "o", mixed), x)
            following = f"layers.{layer + 1}.attention_norm" if layer + 1 < len(cache) else "norm"
            y, x = self.norm(following, self.feed_forward(name, y), x)
        if not (all_rows or batch.last is None):
            y = tc.take(y, batch.last, axis=0)
        return self.linear("output", y, out_dtype=tc.float32)

    def attention(self, name: str, x: tc.Tensor, k_cache: tc.Tensor, v_cache: tc.Tensor, batch: Batch) -> tc.Tensor:
        heads, heads_k, head_dim = self.config.heads, self.config.heads_k, self.config.head_dim
        qkv = self.linear(name + "qkv", x).reshape((-1, heads + 2 * heads_k, head_dim))
        q, k, v = qkv[:, :heads], qkv[:, heads:-heads_k], qkv[:, -heads_k:]
        # One call rotates q and k and writes k and v to their slots.
        q = tc.append_kv(
            k_cache,
            v_cache,
            k,
            v,
            batch.slots,
            q=q,
            cos=self.cos,
            sin=self.sin,
            positions=batch.positions,
            layout="hnd",
        ).q_out
        mixed = tc.paged_attention(
            q, k_cache, v_cache, batch.tables, batch.lengths, cu_seqlens_q=batch.starts, layout="hnd"
        )
        return mixed.reshape((-1, self.config.hidden))

    def feed_forward(self, name: str, x: tc.Tensor) -> tc.Tensor:
        return self.linear(name + "down", self.linear(name + "gate_up", x, gated="silu"))

    def linear(self, name: str, x: tc.Tensor, gated: Literal["silu"] | None = None,
               out_dtype: tc.DType | None = None) -> tc.Tensor:  # fmt: skip
        if name in self.quantized:
            return self.quantized[name].matmul(x, gated, self.batch_invariant)
        return tc.gemm(x, self.weights[name], transpose_b=True, gated=gated, out_dtype=out_dtype,
                       batch_invariant=self.batch_invariant)  # fmt: skip

    def norm(self, name: str, x: tc.Tensor, residual: tc.Tensor) -> tuple[tc.Tensor, tc.Tensor]:
        """The norm of x + residual, and that sum."""
        y, total = tc.rms_norm(x, self.weights[name], eps=self.config.eps, residual=residual)
        return y, total
