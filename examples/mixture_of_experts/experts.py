# SPDX-License-Identifier: Apache-2.0
"""SmolLM2 with feed-forwards of experts: each is cut into 8, of which the router chooses.

    python examples/mixture_of_experts/experts.py "The capital of France is" [--experts-per-token 8] [--device cpu]

With all 8 it is the same model, so the logits show that router, sort, grouped products and combination are right.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "chat"))
import load
from gguf import GgufFile
from llama import Config, Floats, Llama

import tensorcraft as tc

EXPERTS = 8


class ExpertLlama(Llama):
    """A Llama whose feed-forwards are layers of experts; `per_token` of them compute a token."""

    def __init__(self, config: Config, weights: dict[str, Floats], device: str | None = None,
                 dtype: tc.DType = tc.float32, per_token: int = EXPERTS) -> None:  # fmt: skip
        super().__init__(config, cut_into_experts(weights, config), device, dtype)
        self.per_token = per_token

    def feed_forward(self, name: str, x: tc.Tensor) -> tc.Tensor:
        """Router, rows by expert, two grouped products, and back."""
        logits = self.linear(name + "router", x)
        weights, ids = tc.moe_router(logits, self.per_token, renormalize=True, scale=self.per_token)
        rows, offsets, row_map, _ = tc.moe_permute(x, ids, EXPERTS)
        hidden = tc.grouped_gemm(rows, self.weights[name + "gate_up"], offsets=offsets, transpose_b=True, gated="silu")
        out = tc.grouped_gemm(hidden, self.weights[name + "down"], offsets=offsets, transpose_b=True)
        return tc.moe_combine(out, row_map, weights)


def cut_into_experts(weights: dict[str, Floats], config: Config) -> dict[str, Floats]:
    """Every expert has its part of the hidden columns: rows of gate and up, columns of down. The router is fair."""
    cut = dict(weights)
    for layer in range(config.layers):
        name = f"layers.{layer}."
        gate, up = np.split(weights[name + "gate_up"], 2)
        parts = [np.concatenate(pair) for pair in zip(np.split(gate, EXPERTS), np.split(up, EXPERTS), strict=True)]
        cut[name + "gate_up"] = np.stack(parts)
        cut[name + "down"] = np.stack(np.split(weights[name + "down"], EXPERTS, axis=1))
        cut[name + "router"] = np.zeros((EXPERTS, config.hidden), np.float32)
    return cut


def logits_of(model: Llama, ids: list[int]) -> Floats:
    """After every token of one text."""
    page_size = 16
    pages = -(-len(ids) // page_size)
    tables = np.arange(pages, dtype=np.int32)[None]
    counts = np.array([len(ids)], np.int32)
    batch = model.batch(ids, counts, np.zeros_like(counts), tables, page_size)
    return np.asarray(model.forward(batch, model.new_cache(pages, page_size), all_rows=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--experts-per-token", type=int, default=EXPERTS)
    parser.add_argument("--device")
    arguments = parser.parse_args()
    dense, tokenizer = load.load(device=arguments.device)
    file = GgufFile(load.packaged_file())
    weights = load.read_weights(file, dense.config)
    experts = ExpertLlama(dense.config, weights, arguments.device, per_token=arguments.experts_per_token)
    ids = tokenizer.encode(arguments.text)
    of_dense, of_experts = logits_of(dense, ids), logits_of(experts, ids)
    for name, logits in (("dense", of_dense), ("experts", of_experts)):
        best = np.argsort(-logits[-1])[:4]
        print(f"{name:8}", *(f"{tokenizer.decode([int(i)])!r} {logits[-1, i]:.3f}" for i in best), sep="  ")
    print(f"largest difference of a logit: {np.abs(of_dense - of_experts).max():.2g}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"experts: {error}")
