# SPDX-License-Identifier: Apache-2.0
"""Decoding: the next token of several requests at once, from state that stays on the device."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from llama import Batch, Cache, Llama
from sampling import Sampling, next_tokens

import tensorcraft as tc


class Row(Protocol):
    """What a decoder takes of a request: all tokens but the newest are in the cache, in `pages`."""

    ids: list[int]
    seed: int
    pages: list[int]


class Decoder:
    """A fixed number of rows, each a request or empty.

    A step reads the newest token of each row, where it goes and what it sees, draws the next one and moves
    on, with operators only. So on a GPU it is one graph, and the host waits for nothing but the tokens.
    """

    def __init__(self, model: Llama, cache: Cache, rows: int, pages: int, page_size: int, sampling: Sampling,
                 graph: bool) -> None:  # fmt: skip
        def zeros(*shape: int, dtype: tc.DType = tc.int32) -> tc.Tensor:
            return tc.zeros(shape, dtype=dtype, device=model.device)

        self.model, self.cache, self.rows, self.page_size, self.sampling = model, cache, rows, page_size, sampling
        self.ids, self.seeds = zeros(rows, dtype=tc.int64), zeros(rows, dtype=tc.int64)
        self.counts = zeros(2, rows)  # the position of the newest token, and how many there are with it
        self.growth = zeros(2, rows)  # of the counts in a step: an empty row stays empty
        self.tables = zeros(rows, pages)
        self.slots = zeros(rows, pages * page_size)  # of each position; -1 in an empty row: nothing is written
        self.graph = graph
        self.recorded: tc.Graph | None = None

    def load(self, requests: Sequence[Row]) -> None:
        """Takes these requests in place of those before."""
        ids, seeds = np.zeros((2, self.rows), np.int64)
        counts, growth = np.zeros((2, 2, self.rows), np.int32)
        tables, slots = np.zeros(self.tables.shape, np.int32), np.full(self.slots.shape, -1, np.int32)
        for row, request in enumerate(requests):
            ids[row], seeds[row] = request.ids[-1], request.seed
            counts[:, row], growth[:, row] = (len(request.ids) - 1, len(request.ids)), 1
            pages = np.array(request.pages, np.int32)
            tables[row, : len(pages)] = pages
            slots[row, : len(pages) * self.page_size] = (
                pages[:, None] * self.page_size + np.arange(self.page_size)
            ).ravel()
        for mine, new in ((self.ids, ids), (self.seeds, seeds), (self.counts, counts), (self.growth, growth),
                          (self.tables, tables), (self.slots, slots)):  # fmt: skip
            mine[...] = tc.asarray(new, device=self.model.device)

    def step(self) -> list[int]:
        """The next token of each row; waits for them."""
        if self.recorded is not None:
            self.recorded.launch()
        else:
            self.enqueue()  # compiles, which a recording cannot
            self.recorded = tc.Graph(self.enqueue) if self.graph else None
        return [int(token) for token in self.ids.tolist()]

    def enqueue(self) -> None:
        positions, lengths = self.counts[0], self.counts[1]
        slots = tc.take_along_axis(self.slots, positions.reshape((-1, 1)), axis=1).reshape((-1,))
        batch = Batch(self.ids, positions, slots, self.tables, lengths, starts=None, last=None)
        logits = self.model.forward(batch, self.cache)
        next_tokens(logits, self.sampling, self.seeds, lengths, out=self.ids)
        tc.add(self.counts, self.growth, out=self.counts)
