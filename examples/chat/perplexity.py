# SPDX-License-Identifier: Apache-2.0
"""How well a model knows a text: its perplexity."""

from collections.abc import Sequence

import numpy as np
from llama import Floats, Llama

PAGE = 16


def perplexity(model: Llama, ids: Sequence[int], window: int = 256) -> float:
    """e to the mean of -log p of each token but the first, given those before it in its window of the text."""
    if len(ids) < 2:
        raise ValueError(f"perplexity needs a text of at least 2 tokens, got {len(ids)}")
    losses = [window_losses(model, ids[begin : begin + window]) for begin in range(0, len(ids) - 1, window)]
    return float(np.exp(np.concatenate(losses).mean()))


def window_losses(model: Llama, ids: Sequence[int]) -> Floats:
    """-log p of each token but the first."""
    pages = -(-len(ids) // PAGE)
    tables = np.arange(pages, dtype=np.int32)[None]
    batch = model.batch(ids, np.array([len(ids)], np.int32), np.zeros(1, np.int32), tables, PAGE)
    logits = model.forward(batch, model.new_cache(pages, PAGE), all_rows=True).numpy()[:-1].astype(np.float64)
    top = logits.max(axis=1)
    chosen = logits[np.arange(len(ids) - 1), np.asarray(ids)[1:]]
    losses: Floats = top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - chosen
    return losses
