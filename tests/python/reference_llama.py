# SPDX-License-Identifier: Apache-2.0
"""A Llama in double-precision NumPy, written apart from the library: the truth of the chat example's tests.

It takes a model file's own names and order of rows, so it rotates neighbouring pairs; there is no cache to get wrong.
"""

import numpy as np


def rms_norm(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def rotate(x, base):
    """x: (tokens, heads, head_dim)."""
    tokens, _, dim = x.shape
    angles = np.arange(tokens)[:, None] * base ** (-2.0 * np.arange(dim // 2) / dim)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


class Reference:
    """`tensor` gives the numbers of a name; the dimensions are those of a GGUF file's metadata."""

    def __init__(self, metadata, tensor):
        self.layers = metadata["llama.block_count"]
        self.heads = metadata["llama.attention.head_count"]
        self.heads_k = metadata["llama.attention.head_count_kv"]
        self.base = metadata["llama.rope.freq_base"]
        self.eps = metadata["llama.attention.layer_norm_rms_epsilon"]
        self.tensor = tensor

    def logits(self, ids):
        """(tokens, vocabulary): each row sees the tokens up to its own."""

        def w(name):
            return self.tensor(f"{name}.weight").astype(np.float64)

        table = w("token_embd")
        x = table[np.asarray(ids)]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = rms_norm(x, w(name + "attn_norm"), self.eps)
            q, k, v = (y @ w(name + f"attn_{part}").T for part in "qkv")
            x = x + self.attention(q, k, v) @ w(name + "attn_output").T
            y = rms_norm(x, w(name + "ffn_norm"), self.eps)
            gate, up = (y @ w(name + part).T for part in ("ffn_gate", "ffn_up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w(name + "ffn_down").T
        return rms_norm(x, w("output_norm"), self.eps) @ table.T

    def attention(self, q, k, v):
        tokens = len(q)
        q = rotate(q.reshape(tokens, self.heads, -1), self.base)
        k = rotate(k.reshape(tokens, self.heads_k, -1), self.base)
        v = v.reshape(tokens, self.heads_k, -1)
        group = self.heads // self.heads_k
        out = np.empty_like(q)
        hidden = np.triu(np.ones((tokens, tokens), bool), 1)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // group].T / np.sqrt(q.shape[-1])
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, head // group]
        return out.reshape(tokens, -1)


def losses(logits, ids):
    """Of each token but the first, -log of the probability that the row before gives it."""
    rows = np.asarray(logits, np.float64)[:-1]
    top = rows.max(-1)
    return np.log(np.exp(rows - top[:, None]).sum(-1)) + top - rows[np.arange(len(rows)), ids[1:]]
