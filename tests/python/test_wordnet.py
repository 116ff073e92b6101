# SPDX-License-Identifier: Apache-2.0
"""The example of a graph: what WordNet is known to be, PageRank beside NumPy, and what neighbours tell of a synset."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))
tc = pytest.importorskip("tensorcraft")
import graph
import layer
import wordnet

FOLDER = Path(os.environ.get("TC_TEST_WORDNET", wordnet.FOLDER))
DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]


@pytest.fixture(scope="module")
def net():
    if not (FOLDER / "data.noun").exists():
        pytest.skip("wordnet-base is not installed")
    return wordnet.read(FOLDER)


def test_its_figures_are_those_of_wordnet_3(net):
    assert len(net.words) == 117_659 and net.pointers == 377_592
    assert net.directed.data.size == 361_647 and net.symmetric.data.size == 367_587
    assert net.words[int(np.diff(net.symmetric.indptr).argmax())] == "city"
    assert len(set(net.files)) == 45


@pytest.mark.parametrize("device", DEVICES)
def test_its_rows_are_skewed(net, device):
    size = len(net.words)
    rows = graph.matrix(net.symmetric, (size, size), device).analysis
    assert (rows.longest_row, rows.empty_rows) == (674, 1_009)
    assert round(rows.mean_row, 2) == 3.12


@pytest.mark.parametrize("device", DEVICES)
def test_page_rank_leads_to_the_same_synsets_as_in_double(net, device):
    rank, _ = graph.page_rank(net.directed, device)
    found = rank.numpy()
    assert [net.words[i] for i in np.argsort(-found)[:3]] == ["writer", "city", "United Kingdom"]
    out = np.diff(net.directed.indptr)
    source = np.repeat(np.arange(out.size), out)
    wanted = np.full(out.size, 1 / out.size)
    for _ in range(100):
        given = wanted / np.maximum(out, 1)
        following = graph.DAMPING * np.bincount(net.directed.indices, given[source], out.size)
        wanted = following + (graph.DAMPING * wanted[out == 0].sum() + 1 - graph.DAMPING) / out.size
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert abs(found.sum() - 1) < 1e-3


@pytest.mark.parametrize("device", DEVICES)
def test_neighbours_tell_more_than_a_gloss(net, device):
    found = graph.propagated(net, device)
    most = np.bincount(net.files).max() / net.files.size
    assert round(most, 3) == 0.123
    assert found[0] > 0.30 and found[1] > found[0] + 0.05 and found[2] > found[1] + 0.03 and found[3] > 0.48


def test_a_pruned_layer_is_the_dense_one(device):
    random = np.random.default_rng(3)
    weights = layer.pruned(random.standard_normal((20, 30)).astype(np.float32), 0.2)
    assert np.count_nonzero(weights) == 120
    dense, images = tc.asarray(weights, device=device), tc.asarray(random.random((30, 4), np.float32), device=device)
    bias = tc.asarray(random.standard_normal((20, 1)).astype(np.float32), device=device)
    found = layer.layer(tc.sparse.from_dense(dense), bias, images).numpy()
    np.testing.assert_allclose(found, layer.dense_layer(dense, bias, images).numpy(), rtol=1e-5, atol=1e-5)
