# SPDX-License-Identifier: Apache-2.0
"""What a graph knows: the synsets of WordNet that others lead to, and labels that neighbours tell each other.

    python examples/graph/graph.py [--folder /usr/share/wordnet] [--device cpu|cuda] [--top 10]

PageRank is a product of a sparse matrix and a vector a step, label propagation one with a dense matrix.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from wordnet import FOLDER, Edges, WordNet, read

import tensorcraft as tc

DAMPING = 0.85  # the share of readers who follow a pointer; the others begin anywhere
FEATURES = 256  # of a synset: random projections of the words of its gloss


def matrix(edges: Edges, shape: tuple[int, int], device: str) -> tc.sparse.Matrix:
    return tc.sparse.csr(*edges, shape, device=device)


def scaled_rows(edges: Edges) -> Edges:
    """Every row divided by its length, so that a product with it is a mean over neighbours."""
    degrees = np.diff(edges.indptr)
    return edges._replace(data=(edges.data / np.repeat(degrees, degrees)).astype(np.float32))


def page_rank(edges: Edges, device: str, tolerance: float = 1e-7, most: int = 100) -> tuple[tc.Tensor, int]:
    """The chance that a reader is at each node, and how many steps it took to settle.

    A reader at a node without pointers goes on anywhere.
    """
    size = len(edges.indptr) - 1
    comes_from = matrix(scaled_rows(edges), (size, size), device).T
    is_end = tc.asarray((np.diff(edges.indptr) == 0).astype(np.float32), device=device)
    rank = tc.full(size, 1 / size, device=device)
    for step in range(1, most + 1):
        elsewhere = (DAMPING * tc.sum(rank * is_end) + (1 - DAMPING)) / size
        following: tc.Tensor = tc.sparse.spmv(comes_from, rank, alpha=DAMPING) + elsewhere
        change = float(tc.sum(tc.abs(following - rank)))
        rank = following
        if change < tolerance:
            break
    return rank, step


def features(net: WordNet, device: str, seed: int = 0) -> tc.Tensor:
    """Rows of length 1: what a gloss's words add up to when each has a random vector."""
    shape = len(net.words), int(net.glosses.indices.max()) + 1
    vectors = np.random.default_rng(seed).standard_normal((shape[1], FEATURES)).astype(np.float32)
    sums: tc.Tensor = matrix(net.glosses, shape, device) @ tc.asarray(vectors, device=device)
    return tc.l2_normalize(sums)


def ridge(x: NDArray[np.float32], labels: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """The weights of a linear classifier by least squares."""
    wide = x.astype(np.float64)
    wanted = np.eye(classes)[labels]
    return np.linalg.solve(wide.T @ wide + np.eye(x.shape[1]), wide.T @ wanted).astype(np.float64)


def accuracy(x: tc.Tensor, labels: NDArray[np.int64], known: NDArray[np.bool_]) -> float:
    """Of labels that are predicted from features, where a tenth is known."""
    rows = x.numpy()
    weights = ridge(rows[known], labels[known], int(labels.max()) + 1)
    return float((np.argmax(rows[~known] @ weights, axis=1) == labels[~known]).mean())


def propagated(net: WordNet, device: str, hops: int = 3) -> list[float]:
    """The accuracy from a synset's own words, from those of its neighbours, of their neighbours, and so on."""
    size = len(net.words)
    neighbours = matrix(scaled_rows(net.symmetric), (size, size), device)
    known = np.random.default_rng(1).random(size) < 0.1
    x, found = features(net, device), []
    for hop in range(hops + 1):
        found.append(accuracy(x, net.files, known))
        if hop < hops:
            x = tc.sparse.spmm(neighbours, x, x, alpha=0.5, beta=0.5)  # half of it stays its own
    return found


def timed(what: str, work: Any, *arguments: Any) -> Any:
    start = time.perf_counter()
    result = work(*arguments)
    print(f"{what}: {time.perf_counter() - start:.2f} s")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=FOLDER, help="of WordNet's data files; Debian has them in wordnet-base")
    parser.add_argument("--device", default=tc.default_device())
    parser.add_argument("--top", type=int, default=10)
    given = parser.parse_args()
    net = timed("read WordNet", read, given.folder)
    size = len(net.words)
    print(f"{size} synsets, {net.pointers} pointers; {matrix(net.symmetric, (size, size), given.device)!r}")
    print(f"  {matrix(net.symmetric, (size, size), given.device).analysis}")
    rank, steps = timed("PageRank", page_rank, net.directed, given.device)
    order = np.argsort(-rank.numpy())[: given.top]
    print(f"  {steps} steps; " + ", ".join(net.words[i] for i in order))
    most = np.bincount(net.files).max() / size
    found = timed("label propagation", propagated, net, given.device)
    print(f"  the most frequent of {len(set(net.files))} labels: {most:.1%}")
    for hop, share in enumerate(found):
        print(f"  {hop} hops: {share:.1%}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"graph: {error}")
