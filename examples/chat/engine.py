# SPDX-License-Identifier: Apache-2.0
"""Continuous batching: requests come and go while others run, and share the pages of one cache."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from decoder import Decoder
from llama import Batch, Llama
from sampling import Sampling, draw


@dataclass(eq=False)
class Request:
    """Tokens, given and generated. The cache has the first `cached` of them in `pages`."""

    ids: list[int]
    limit: int  # how long it may become
    seed: int = 0
    keep: bool = False  # the pages when it is done, so that it can go on
    cached: int = 0
    pages: list[int] = field(default_factory=list)
    done: bool = False

    @property
    def decodes(self) -> bool:
        """Has all but its newest token been computed?"""
        return self.cached > 0 and len(self.ids) - self.cached == 1


class Engine:
    """Runs requests over one paged cache. A step computes a chunk of each new prompt, and a token of each other request.

    Chunks begin at multiples of `chunk` and prompts are computed apart from single tokens, so what a request
    computes does not depend on its company. Single tokens are a decoder's, which on a GPU is a graph unless
    `graph` says otherwise: there is one for each power of two of requests and of pages.
    """

    def __init__(self, model: Llama, tokens: int, page_size: int = 16, stop: Collection[int] = (),
                 sampling: Sampling | None = None, max_batch: int = 32, chunk: int = 256,
                 graph: bool = True) -> None:  # fmt: skip
        self.model, self.page_size, self.max_batch, self.chunk = model, page_size, max_batch, chunk
        self.stop, self.sampling = frozenset(stop), sampling or Sampling()
        self.pages = -(-tokens // page_size)
        self.cache = model.new_cache(self.pages, page_size)
        self.free = list(range(self.pages))
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.graph = graph and str(model.device).startswith("cuda")
        self.decoders: dict[tuple[int, int], Decoder] = {}
        self.rows: list[tuple[Request, int]] = []  # of the decoder that ran last: requests, and how long they are

    def submit(self, ids: Sequence[int], max_tokens: int, seed: int = 0, keep: bool = False) -> Request:
        """A request for up to `max_tokens` tokens after `ids`; it begins when a step finds pages for all of them."""
        if not -(2**63) <= seed < 2**63:
            raise ValueError(f"engine: seed is {seed}, expected a whole number of 64 bits")
        request = Request([], 0, seed, keep, done=True)
        self.extend(request, ids, max_tokens)
        return request

    def extend(self, request: Request, ids: Sequence[int], max_tokens: int) -> None:
        """Lets a request that is done go on after further tokens; if it keeps its pages, those alone are computed."""
        if not request.done:
            raise ValueError("engine: the request still runs; extend it when it is done, or release it")
        length, vocabulary = len(request.ids) + len(ids), self.model.weights["embedding"].shape[0]
        room = min(self.model.config.context, self.pages * self.page_size)
        if not ids:
            raise ValueError("engine: the prompt is empty; give at least one token")
        if not all(0 <= token < vocabulary for token in ids):
            raise ValueError(f"engine: a token of the prompt is not in [0, {vocabulary})")
        if max_tokens < 1:
            raise ValueError(f"engine: max_tokens is {max_tokens}, expected at least 1")
        if length >= room:
            raise ValueError(
                f"engine: the prompt has {length:,} tokens; with an answer it must fit in {room:,}: shorten it"
            )
        request.ids += ids
        request.limit = min(length + max_tokens, room)
        request.done = False
        self.waiting.append(request)

    def step(self) -> list[Request]:
        """Computes; gives the requests that have a new token, the last of their `ids`."""
        self._admit()
        single = [r for r in self.running if r.decodes]
        prompts = [r for r in self.running if not r.decodes]
        return self._decode(single) + self._compute(prompts)

    def release(self, request: Request) -> None:
        """Ends a request, if it is not done, and forgets its keys: its pages serve others."""
        for queue in (self.running, self.waiting):
            if request in queue:
                queue.remove(request)
        self.free += request.pages
        request.pages, request.cached, request.done = [], 0, True

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def _admit(self) -> None:
        """In their order: one that lacks pages holds those behind it back, so it is not starved."""
        while self.waiting and len(self.running) < self.max_batch:
            request = self.waiting[0]
            missing = -(-request.limit // self.page_size) - len(request.pages)
            if missing > len(self.free):
                if not self.running:
                    raise RuntimeError("engine: requests that are done keep all pages; release one")
                return
            request.pages += [self.free.pop() for _ in range(missing)]
            self.running.append(self.waiting.popleft())

    def _decode(self, requests: list[Request]) -> list[Request]:
        if not requests:
            return []
        decoder = self._decoder(len(requests), max(len(r.pages) for r in requests))
        if self.rows != [(r, len(r.ids)) for r in requests]:  # some came or went
            decoder.load(requests)
        tokens = decoder.step()[: len(requests)]
        for request in requests:
            request.cached += 1
        self._append(requests, tokens)
        self.rows = [(r, len(r.ids)) for r in requests]
        return requests

    def _decoder(self, rows: int, pages: int) -> Decoder:
        """One with room for so many; a graph has a fixed number of rows."""
        rows, pages = (1 << (n - 1).bit_length() for n in (rows, pages))
        if (rows, pages) not in self.decoders:
            self.decoders[rows, pages] = Decoder(
                self.model, self.cache, rows, pages, self.page_size, self.sampling, self.graph
            )
        return self.decoders[rows, pages]

    def _compute(self, requests: list[Request]) -> list[Request]:
        if not requests:
            return []
        ends = [min(len(r.ids), r.cached // self.chunk * self.chunk + self.chunk) for r in requests]
        logits = self.model.forward(self._batch(requests, ends), self.cache)
        for request, end in zip(requests, ends, strict=True):
            request.cached = end
        rows = [i for i, r in enumerate(requests) if r.cached == len(r.ids)]
        ready = [requests[i] for i in rows]
        if not ready:
            return []
        if len(rows) < len(requests):
            logits = logits[rows]
        self._append(ready, draw(logits, self.sampling, [r.seed for r in ready], [len(r.ids) for r in ready]))
        return ready

    def _append(self, requests: list[Request], tokens: list[int]) -> None:
        for request, token in zip(requests, tokens, strict=True):
            request.ids.append(token)
            request.done = token in self.stop or len(request.ids) >= request.limit
            if request.done and not request.keep:
                self.release(request)
        self.running = [r for r in self.running if not r.done]

    def _batch(self, requests: list[Request], ends: list[int]) -> Batch:
        cached = np.array([r.cached for r in requests], np.int32)
        tables = np.zeros((len(requests), max(len(r.pages) for r in requests)), np.int32)
        for row, request in zip(tables, requests, strict=True):
            row[: len(request.pages)] = request.pages
        ids = [token for r, end in zip(requests, ends, strict=True) for token in r.ids[r.cached : end]]
        return self.model.batch(ids, np.array(ends, np.int32) - cached, cached, tables, self.page_size)
