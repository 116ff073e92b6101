# SPDX-License-Identifier: Apache-2.0
"""The one place that draws tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import tensorcraft as tc


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn: the likeliest if temperature is 0, else from the least set of them that has `top_p`."""

    temperature: float = 0.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < np.inf:
            raise ValueError(f"sampling: temperature is {self.temperature}, expected 0 or a positive number")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"sampling: top_p is {self.top_p}, expected a number in (0, 1]")


def next_tokens(logits: tc.Tensor, sampling: Sampling, seed: tc.Tensor, offset: tc.Tensor,
                out: tc.Tensor | None = None) -> tc.Tensor:  # fmt: skip
    """A token for each row of logits, int64. It depends on the row, its seed and its position, not on the other rows."""
    if sampling.temperature == 0:
        return tc.argmax(logits, axis=-1, out=out)
    return tc.sample(logits, temperature=sampling.temperature, top_p=sampling.top_p, seed=seed, offset=offset, out=out)


def draw(logits: tc.Tensor, sampling: Sampling, seeds: Sequence[int], positions: Sequence[int]) -> list[int]:
    """The same with seeds and positions of the host, to which the tokens come; it waits for them."""
    seed, offset = (tc.asarray(np.array(numbers, np.int64), device=logits.device) for numbers in (seeds, positions))
    return [int(token) for token in next_tokens(logits, sampling, seed, offset).tolist()]
