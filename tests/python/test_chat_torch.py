# SPDX-License-Identifier: Apache-2.0
"""The chat example's decode step on tensors of torch: one graph of torch.compile without a break, and the tokens of the plain step."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / "examples" / "chat")]
import decoder
import llama
import sampling

import tensorcraft as tc

torch = pytest.importorskip("torch", reason="torch is not installed")
tct = pytest.importorskip("tensorcraft.torch")
DEVICES = ["cpu", "cuda:0"] if torch.cuda.is_available() and "cuda:0" in tc.devices() else ["cpu"]
CONFIG = llama.Config(layers=2, hidden=64, heads=4, heads_k=2, context=64, rope_base=1000.0, eps=1e-5)
VOCABULARY, PAGES, PAGE_SIZE, TOKENS = 96, 4, 16, 6
STATE = ("ids", "seeds", "counts", "growth", "tables", "slots")


def weights():
    random = np.random.default_rng(3)
    hidden, keys = CONFIG.hidden, CONFIG.heads_k * CONFIG.head_dim
    shapes = {"embedding": (VOCABULARY, hidden), "norm": (hidden,)}
    for layer in range(CONFIG.layers):
        of_layer = {"attention_norm": (hidden,), "feed_forward_norm": (hidden,), "qkv": (hidden + 2 * keys, hidden),
                    "o": (hidden, hidden), "gate_up": (192, hidden), "down": (hidden, 96)}  # fmt: skip
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in of_layer.items()}
    return {name: random.standard_normal(shape).astype(np.float32) / 3 for name, shape in shapes.items()}


def decoder_of(device, temperature):
    """Two requests, and a row that is empty."""
    model = llama.Llama(CONFIG, weights(), device)
    cache = model.new_cache(2 * PAGES, PAGE_SIZE)
    for k, v in cache:
        k[...] = v[...] = 0.5
    made = decoder.Decoder(model, cache, 3, PAGES, PAGE_SIZE, sampling.Sampling(temperature), graph=False)
    requests = [SimpleNamespace(ids=[5, 7, 11], seed=1, pages=[3, 1]), SimpleNamespace(ids=[2], seed=2, pages=[6, 0])]
    made.load(requests)
    return made


def to_torch(made):
    """The same decoder with tensors of torch in every place."""

    def copied(tensor):
        return torch.from_dlpack(tensor).clone()

    model = made.model
    model.weights = {name: copied(w) for name, w in model.weights.items()}
    model.cos, model.sin = copied(model.cos), copied(model.sin)
    made.cache = [(copied(k), copied(v)) for k, v in made.cache]
    for name in STATE:
        setattr(made, name, copied(getattr(made, name)))
    return made


@pytest.fixture
def functions_of_torch(monkeypatch):
    """The example's `tc` has the functions of `tensorcraft.torch`, and dtypes of torch."""

    def use():
        of_torch = {name: getattr(tct, name) for name in tct.__all__} | {"float32": torch.float32}
        for module in (decoder, llama, sampling):
            monkeypatch.setattr(module, "tc", SimpleNamespace(**{**vars(tc), **of_torch}))

    return use


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_decode_step_of_the_chat_example_is_one_graph(device, temperature, functions_of_torch):
    plain, compiled = decoder_of(device, temperature), decoder_of(device, temperature)
    wanted = [plain.step() for _ in range(TOKENS)]
    functions_of_torch()
    made = to_torch(compiled)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    step = torch.compile(made.enqueue, fullgraph=True, backend=backend)
    with torch.inference_mode():
        for tokens in wanted:
            step()
            assert made.ids.tolist() == tokens
    assert len(graphs) == 1 and not torch._dynamo.utils.counters["graph_break"]
    calls = [str(node.target) for node in graphs[0].graph.nodes if "tensorcraft" in str(node.target)]
    assert sum("paged_attention" in call for call in calls) == CONFIG.layers
    for (k, v), (k_torch, v_torch) in zip(plain.cache, made.cache, strict=True):
        np.testing.assert_array_equal(k_torch.numpy(force=True), k.numpy())
        np.testing.assert_array_equal(v_torch.numpy(force=True), v.numpy())
