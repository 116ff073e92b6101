# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 in double-precision NumPy, written apart from the library: the truth of test_minilm.py."""

import math
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

LAYERS, HEADS = 6, 12
_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x):
    return x * 0.5 * (1 + _erf(x / math.sqrt(2)))


def normalise(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * gain + shift


class Reference:
    """One sentence at a time, so there is no padding to get wrong."""

    def __init__(self, folder, round_weights=lambda w: w):
        tensors = load_file(str(Path(folder) / "model.safetensors"))
        self.w = {
            k: round_weights(v).astype(np.float64) for k, v in tensors.items() if v.dtype.kind == "f"
        }

    def affine(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def layer_norm(self, name, x):
        return normalise(x, self.w[name + ".weight"], self.w[name + ".bias"])

    def attention(self, name, x):
        tokens, width = x.shape
        q, k, v = (
            self.affine(f"{name}.self.{part}", x).reshape(tokens, HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(width // HEADS)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        mixed = (scores @ v).transpose(1, 0, 2).reshape(tokens, width)
        return self.layer_norm(f"{name}.output.LayerNorm", x + self.affine(f"{name}.output.dense", mixed))

    def encode(self, ids):
        w = self.w
        x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.token_type_embeddings.weight"][0]
        x = x + w["embeddings.position_embeddings.weight"][: len(ids)]
        x = self.layer_norm("embeddings.LayerNorm", x)
        for i in range(LAYERS):
            name = f"encoder.layer.{i}"
            x = self.attention(f"{name}.attention", x)
            hidden = gelu(self.affine(f"{name}.intermediate.dense", x))
            x = self.layer_norm(f"{name}.output.LayerNorm", x + self.affine(f"{name}.output.dense", hidden))
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)


def mixed_sentences(words, count=50):
    """`count` texts of one word to more than the model's 256 tokens, in no order."""
    lengths = np.unique(np.geomspace(1, 240, count).round().astype(int))
    lengths = np.concatenate([lengths, np.arange(11, 11 + count - len(lengths))])
    rng = np.random.default_rng(7)
    rng.shuffle(lengths)
    starts = rng.integers(0, len(words) - 240, count)
    return [" ".join(words[s : s + n]) for s, n in zip(starts, lengths)]
