# SPDX-License-Identifier: Apache-2.0
"""The example of experts: a feed-forward cut into experts that all compute gives the dense model's logits."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples" / name) for name in ("mixture_of_experts", "chat")]
tc = pytest.importorskip("tensorcraft")
import chat_model
import experts
import load
from gguf import GgufFile
from llama import Config, Llama

DEVICES = ["cpu", "cuda:0"] if "cuda:0" in tc.devices() else ["cpu"]
SMALL = Config(layers=2, hidden=64, heads=4, heads_k=2, context=64, rope_base=1000.0, eps=1e-5)


def small_weights():
    random = np.random.default_rng(7)
    shapes = {"embedding": (50, 64), "norm": (64,)}
    for layer in range(SMALL.layers):
        name = f"layers.{layer}."
        shapes |= {name + "attention_norm": (64,), name + "feed_forward_norm": (64,), name + "qkv": (128, 64)}
        shapes |= {name + "o": (64, 64), name + "gate_up": (2 * 96, 64), name + "down": (64, 96)}
    return {name: random.standard_normal(s).astype(np.float32) / s[-1] ** 0.25 for name, s in shapes.items()}


@pytest.mark.parametrize("device", DEVICES)
def test_all_experts_give_the_logits_of_the_dense_model(device):
    weights = small_weights()
    ids = np.random.default_rng(1).integers(0, 50, 23).tolist()
    dense = experts.logits_of(Llama(SMALL, weights, device), ids)
    mixed = experts.logits_of(experts.ExpertLlama(SMALL, weights, device), ids)
    assert np.abs(dense).max() > 3
    np.testing.assert_allclose(mixed, dense, atol=2e-4)
    fewer = experts.logits_of(experts.ExpertLlama(SMALL, weights, device, per_token=4), ids)
    assert np.abs(fewer - dense).max() > 0.5


@pytest.mark.parametrize("device", DEVICES)
def test_experts_of_the_real_model_give_its_logits(device):
    model = chat_model.path()
    dense, tokenizer = load.load(model, device)
    weights = load.read_weights(GgufFile(model), dense.config)
    ids = tokenizer.encode("The capital of France is Paris, and that of Italy is")
    wanted = experts.logits_of(dense, ids)
    got = experts.logits_of(experts.ExpertLlama(dense.config, weights, device), ids)
    np.testing.assert_allclose(got, wanted, atol=2e-3)
    assert tokenizer.decode([int(got[-1].argmax())]) == " Rome"
