# SPDX-License-Identifier: Apache-2.0
"""A layer of the size of those for MNIST, 784 inputs and 512 outputs, with nine of ten weights cut off.

    python examples/graph/layer.py [--device cpu|cuda] [--density 0.1]

The weights that are left are those of the largest size. The layer is computed as a sparse product, and beside it as the
dense one of the same weights: the same numbers, and what both take.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import tensorcraft as tc

INPUTS, OUTPUTS, BATCH = 784, 512, 64


def pruned(weights: np.ndarray, density: float) -> np.ndarray:
    """The weights without all but the largest."""
    least = np.quantile(np.abs(weights), 1 - density)
    return np.where(np.abs(weights) >= least, weights, np.float32(0)).astype(np.float32)


def layer(weights: tc.sparse.Matrix, bias: tc.Tensor, images: tc.Tensor) -> tc.Tensor:
    """relu(W x + b) for images as columns: (inputs, batch) to (outputs, batch)."""
    sums: tc.Tensor = weights @ images
    return tc.relu(sums + bias)


def dense_layer(weights: tc.Tensor, bias: tc.Tensor, images: tc.Tensor) -> tc.Tensor:
    return tc.gemm(weights, images, bias=bias, activation="relu")


def milliseconds(work: Callable[[], object], device: str, rounds: int = 20) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        tc.synchronize(device)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=tc.default_device())
    parser.add_argument("--density", type=float, default=0.1)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    weights = pruned(random.standard_normal((OUTPUTS, INPUTS)).astype(np.float32) / 28, given.density)
    images = tc.asarray(random.random((INPUTS, BATCH), np.float32), device=given.device)
    bias = tc.asarray(random.standard_normal((OUTPUTS, 1)).astype(np.float32), device=given.device)
    dense = tc.asarray(weights, device=given.device)
    sparse = tc.sparse.from_dense(dense)
    print(sparse, sparse.analysis, sep="\n")
    difference = np.abs(layer(sparse, bias, images).numpy() - dense_layer(dense, bias, images).numpy()).max()
    print(f"largest difference to the dense layer: {difference:.1e}")
    for name, work in (
        ("sparse", lambda: layer(sparse, bias, images)),
        ("dense", lambda: dense_layer(dense, bias, images)),
    ):
        print(f"{name}: {milliseconds(work, given.device):.3f} ms")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"layer: {error}")
