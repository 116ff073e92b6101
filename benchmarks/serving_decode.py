"""Paged decode attention on a GPU beside FlashInfer, cuDNN and a copy of the bytes that a call reads.

    python benchmarks/serving_decode.py OUT.json [--only WORD] [--peers none] [--quick]

A row has the microseconds of each candidate, and how many times as fast as each peer ours is. Every candidate is held
against a reference in float64 before it is timed. OUT.json is written after each row. What fails is named in the row or
under "unavailable"; if ours fails, the others go on and the script ends with 1.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from timing import failure, gpu_timer, machine, text_of

Call = Callable[[int], Any]  # with the n-th set of arrays; returns (batch, queries, heads, head_dim)

PAGE, DIM = 16, 128
ELEMENT_BYTES = {"bf16": 2, "fp8": 1, "int8": 1}
# Scales of keys and values. FlashInfer multiplies by a v_scale other than 1 in a kernel of its own, so of its cache that is 1.
SCALES = {"fp8": (0.5, 1.0), "int8": (1 / 32, 1 / 32)}
ROTATED_BYTES = 300e6  # several times the last cache
MOST_SETS = 256
MOST_CHECKED = 16  # queries of a request
QUANTIZED_FROM = 128 << 20  # bytes of bf16 keys and values
WARM_UP_SECONDS = 0.1
LARGEST_ERROR = 2e-2  # of the largest value of the reference
OURS, CONTIGUOUS, FLASHINFER, CUDNN, COPY = "ours", "contiguous", "FlashInfer", "cuDNN", "copy"
PEERS = (FLASHINFER, CUDNN)
# Which candidate a column holds against which.
RATIOS = {
    "of FlashInfer": (FLASHINFER, OURS), "of cuDNN": (CUDNN, OURS), "contiguous of cuDNN": (CUDNN, CONTIGUOUS),
    "of copy": (COPY, OURS),
}  # fmt: skip
TIMING = (
    "graphs of at least 16 calls over inputs rotated past the cache, candidates in turn, medians; standard normal values; "
    "FlashInfer by its fa2 tensor-core kernels, planned once"
)
NOT_THERE = {
    "FlashInfer, int8": "it has no int8 cache",
    "cuDNN, several queries": "its causal mask begins with the first query at the first key",
    "FlashInfer, a tree": "its mask speaks of all keys",
    "contiguous and cuDNN, fp8 and int8": "attention on arrays takes 8-bit keys with an 8-bit query alone",
}


class Case(NamedTuple):
    batch: int
    keys: int
    heads: int
    heads_k: int
    queries: int = 1
    cache: str = "bf16"
    window: int = 0  # keys that a query sees, its own included; 0: all
    tree: bool = False  # queries are the draft tokens of a tree

    @classmethod
    def parse(cls, text: str) -> Case:
        """From "b16 4k 64/8"; thousands of keys are the nearest power of two, as 131k is 131072."""
        found = re.fullmatch(r"b(\d+) (\d+)(k?) (\d+)/(\d+)", text)
        if found is None:
            raise ValueError(f'"{text}" is not of the form "b16 4k 64/8": batch, keys, heads of queries and of keys')
        batch, keys, heads, heads_k = (int(found[i]) for i in (1, 2, 4, 5))
        return cls(batch, 1 << round(math.log2(keys * 1000)) if found[3] else keys, heads, heads_k)

    @property
    def name(self) -> str:
        keys = str(self.keys) if self.keys < 1000 else f"{self.keys // 1000}k"
        queries = f", {self.queries} queries" if self.queries > 1 else ""
        window = f", window {self.window}" if self.window else ""
        tree = " of a tree" if self.tree else ""
        return f"b{self.batch} {keys} {self.heads}/{self.heads_k}{queries}{tree}{window}"

    @property
    def pages(self) -> int:
        """A request has so many."""
        return self.keys // PAGE

    @property
    def cache_bytes(self) -> int:
        return 2 * self.batch * self.keys * self.heads_k * DIM * ELEMENT_BYTES[self.cache]

    @property
    def read_bytes(self) -> int:
        return self.cache_bytes + 2 * self.batch * self.queries * self.heads * DIM

    @property
    def sets(self) -> int:
        """A power of two, so that a graph of 16 calls ends with the last set and the next one begins with the first."""
        return min(1 << max(math.ceil(math.log2(ROTATED_BYTES / self.read_bytes)), 0), MOST_SETS)


SHAPES = [
    Case.parse(text)
    for text in (
        "b1 8k 64/8", "b16 4k 64/8", "b64 4k 32/8", "b1 131k 32/8", "b256 1k 32/8", "b1 1k 32/4", "b8 2k 64/8", "b32 8k 32/4",
        "b1 512 32/4",
    )
]  # fmt: skip
CASES = [
    *SHAPES,
    *(
        Case.parse("b16 4k 64/8")._replace(queries=n, tree=tree)
        for n, tree in ((4, False), *product((16, 60), (False, True)))
    ),
    *(case._replace(cache=cache) for cache in SCALES for case in SHAPES if case.cache_bytes >= QUANTIZED_FROM),
]


class Inputs:
    """Queries of every set, and keys and values in shuffled pages. All sets have one table, as the layers of a model have."""

    v_dim = DIM

    def __init__(self, case: Case) -> None:
        import torch

        self.case = case
        self.table = torch.randperm(case.batch * case.pages, device="cuda").view(case.batch, -1).int()
        self.lengths = torch.full((case.batch,), case.keys, dtype=torch.int32, device="cuda")
        shape = (case.batch * case.pages, PAGE, case.heads_k, DIM)
        self.caches = [tuple(codes(shape, case.cache) for _ in range(2)) for _ in range(case.sets)]
        self.q = [codes((case.batch, case.queries, case.heads, DIM), "bf16") for _ in range(case.sets)]
        self.mask = torch.stack([tree_mask(case.queries) for _ in range(case.batch)]).cuda() if case.tree else None
        scales = [torch.tensor(scale, device="cuda") for scale in SCALES.get(case.cache, ())]
        self.options: dict[str, Any] = dict(zip(("k_scale", "v_scale"), scales, strict=False))
        self.options |= {"mask": self.mask} if case.tree else {}
        self.options |= {"window": (case.window - 1, 0)} if case.window else {}

    def in_order(self, cache: Any, request: Any = slice(None)) -> Any:
        """A cache without pages: (batch, keys, heads_k, head_dim). Indexed as bytes, which torch can do for every dtype."""
        import torch

        return cache.view(torch.uint8)[self.table[request]].view(cache.dtype).flatten(-4, -3)

    def reference(self) -> Any:
        """The last queries of the last request of the first set in float64: (queries, heads, head_dim)."""
        import torch

        case, (k_scale, v_scale) = self.case, SCALES.get(self.case.cache, (1.0, 1.0))
        queries = min(case.queries, MOST_CHECKED)
        k, v = (self.in_order(cache, -1).double() for cache in self.caches[0])
        q = self.q[0][-1, -queries:].double().view(queries, case.heads_k, -1, DIM)
        scores = torch.einsum("qhgd,khd->hgqk", q, k) * (k_scale * DIM**-0.5)
        seen = torch.ones(queries, case.keys, dtype=torch.bool, device="cuda").tril(case.keys - queries)
        if case.window:
            seen = seen.triu(case.keys - queries - case.window + 1)
        if self.mask is not None:
            seen[:, case.keys - case.queries :] &= self.mask[-1, -queries:]
        weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
        return torch.einsum("hgqk,khd->qhgd", weights, v).reshape(queries, case.heads, DIM) * v_scale


def tree_mask(queries: int) -> Any:
    """Which earlier ones each draft token follows: its parent is one of the three before it."""
    import torch

    seen = torch.eye(queries, dtype=torch.bool)
    for i in range(1, queries):
        seen[i] |= seen[max(i - 1 - int(torch.randint(3, ())), 0)]
    return seen


def codes(shape: tuple[int, ...], cache: str) -> Any:
    import torch

    x = torch.empty(shape, dtype=torch.bfloat16, device="cuda").normal_()
    if cache == "int8":
        return (x * 32).round_().clamp_(-127, 127).to(torch.int8)
    return x.to(torch.float8_e4m3fn) if cache == "fp8" else x


# ---- candidates: each makes a call ----


def options_of(inputs: Inputs) -> dict[str, Any]:
    return {"block_tables": inputs.table, "lengths": inputs.lengths} | inputs.options


def paged(inputs: Inputs) -> Call:
    import torch

    import tensorcraft as tc

    one = inputs.case.queries == 1
    queries = [q.squeeze(1) if one else q for q in inputs.q]
    outs = [torch.empty_like(q[..., : inputs.v_dim]) for q in queries]
    options = options_of(inputs)

    def call(i: int) -> Any:
        tc.paged_attention(queries[i], *inputs.caches[i], out=outs[i], **options)
        return outs[i].unsqueeze(1) if one else outs[i]

    return call


def variant(inputs: Inputs) -> str:
    """Which rung of ours takes the call."""
    import tensorcraft as tc

    q = inputs.q[0].squeeze(1) if inputs.case.queries == 1 else inputs.q[0]
    return str(tc.explain("paged_attention", q, *inputs.caches[0], **options_of(inputs)).variant)


def contiguous_arrays(inputs: Inputs) -> list[tuple[Any, Any, Any]]:
    """q, k and v of each set as (batch, heads, tokens, head_dim)."""
    return [
        tuple(x.transpose(1, 2).contiguous() for x in (q, *map(inputs.in_order, caches)))
        for q, caches in zip(inputs.q, inputs.caches, strict=True)
    ]


def contiguous(arrays: list[tuple[Any, Any, Any]], window: int = 0) -> Call:
    import torch

    import tensorcraft as tc

    outs = [torch.empty_like(q) for q, _, _ in arrays]
    options = {"window": (window - 1, 0)} if window else {}

    def call(i: int) -> Any:
        tc.attention(*arrays[i], causal=outs[i].shape[2] > 1, out=outs[i], **options)
        return outs[i].transpose(1, 2)

    return call


def cudnn(arrays: list[tuple[Any, Any, Any]], causal: bool = False) -> Call:
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call(i: int) -> Any:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = functional.scaled_dot_product_attention(*arrays[i], is_causal=causal, enable_gqa=True)
        return out.transpose(1, 2)

    return call


def flashinfer_call(inputs: Inputs, backend: str = "fa2") -> Call:
    import flashinfer
    import torch

    case = inputs.case
    workspace = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
    ends = torch.arange(case.batch + 1, dtype=torch.int32)
    last = torch.full((case.batch,), PAGE, dtype=torch.int32)
    of_pages = (ends * case.pages, inputs.table.flatten(), last, case.heads, case.heads_k, DIM, PAGE)
    dtypes = {"q_data_type": torch.bfloat16, "kv_data_type": inputs.caches[0][0].dtype}
    if case.queries == 1:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=True, backend="fa2")
        wrapper.plan(*of_pages, **dtypes)
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace, "NHD", backend=backend)
        wrapper.plan(ends * case.queries, *of_pages, causal=True, window_left=case.window - 1, **dtypes)
    queries = [q.flatten(0, 1) for q in inputs.q]
    outs = [torch.empty_like(q) for q in queries]
    scales = dict(zip(("k_scale", "v_scale"), SCALES.get(case.cache, ()), strict=False))

    def call(i: int) -> Any:
        wrapper.run(queries[i], inputs.caches[i], out=outs[i], **scales)
        return outs[i].view_as(inputs.q[i])

    return call


def compile_flashinfer(cases: list[Case]) -> str:
    """Its version; its modules for these cases are compiled side by side."""
    import flashinfer
    import torch
    from flashinfer.jit import build_jit_specs, gen_batch_prefill_module

    dtypes = [
        dtype
        for cache, dtype in (("bf16", torch.bfloat16), ("fp8", torch.float8_e4m3fn))
        if cache in {case.cache for case in cases}
    ]
    bf16 = torch.bfloat16
    build_jit_specs(
        [gen_batch_prefill_module("fa2", bf16, d, bf16, torch.int32, DIM, DIM, 0, False, False, False) for d in dtypes],
        verbose=False,
    )
    return str(flashinfer.__version__)


def copy(case: Case) -> Call:
    """Half of the bytes read, half written."""
    import torch

    source, target = (torch.ones(case.sets, case.read_bytes // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    return lambda i: target[i].copy_(source[i])


def makers(inputs: Inputs, peers: tuple[str, ...]) -> dict[str, Callable[[], Call]]:
    """Makers of the candidates that take this case; NOT_THERE says why the others do not."""
    case = inputs.case
    found: dict[str, Callable[[], Call]] = {OURS: lambda: paged(inputs)}
    if case.cache == "bf16" and not case.tree:
        arrays = contiguous_arrays(inputs)
        found[CONTIGUOUS] = lambda: contiguous(arrays)
        if CUDNN in peers and case.queries == 1:
            found[CUDNN] = lambda: cudnn(arrays)
    if FLASHINFER in peers and case.cache != "int8" and not case.tree:
        found[FLASHINFER] = lambda: flashinfer_call(inputs)
    return found


# ---- measuring ----


def checked(make: Callable[[], Call], wanted: Any) -> Call:
    call = make()
    error = float((call(0)[-1, -len(wanted) :].double() - wanted).abs().max() / wanted.abs().max())
    if not error <= LARGEST_ERROR:  # a NaN is wrong too
        raise ValueError(f"wrong by {error:.3g} of the largest value")
    return call


def in_turn(calls: dict[str, Call], sets: int, rounds: int, notes: dict[str, str]) -> dict[str, float]:
    """Median microseconds of each."""
    timers = {}
    for name, call in calls.items():
        try:
            timers[name] = gpu_timer(call, iter(()), sets, graph=True)
        except Exception as error:  # noqa: BLE001  the row says it, and the others go on
            notes[name] = f"not in a graph: {failure(error)}"
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        for measure in timers.values():
            measure()
    samples: dict[str, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, measure in timers.items():
            samples[name].append(measure())
    return {name: statistics.median(values) for name, values in samples.items()}


def measure(
    inputs: Inputs, candidates: Callable[[Inputs], dict[str, Callable[[], Call]]], rounds: int
) -> tuple[str, dict[str, float], dict[str, str]]:
    """Our variant, the microseconds of each candidate that holds, and why the others do not."""
    case, notes = inputs.case, {}
    wanted, calls = inputs.reference(), {}
    for name, make in candidates(inputs).items():
        try:
            calls[name] = checked(make, wanted)
        except Exception as error:  # noqa: BLE001  the row says it, and the others go on
            notes[name] = failure(error)
    calls[COPY] = copy(case)
    calls[COPY](0)
    return variant(inputs), in_turn(calls, case.sets, rounds, notes), notes


class Suite(NamedTuple):
    """A file of rows: its cases, their candidates, and the columns of a row."""

    title: str
    timing: str
    not_there: dict[str, str]
    cases: list[Case]
    rounds: int
    beside: tuple[str, ...]  # candidates with a column of microseconds, next to ours
    ratios: dict[str, tuple[str, str]]
    more: Callable[[Case, float | None], dict[str, Any]]  # further columns, from our microseconds; None: no figure
    makers: Callable[[Inputs, tuple[str, ...]], dict[str, Callable[[], Call]]]
    compile_flashinfer: Callable[[list[Case]], str]
    inputs: Callable[[Any], Inputs] = Inputs

    def row(self, case: Case, variant: str, us: dict[str, float], notes: dict[str, str]) -> dict[str, Any]:
        """Every row has the same columns; "n/a" where there is no figure."""
        row: dict[str, Any] = {"name": "paged_attention", "case": case.name, "cache": case.cache, "variant": variant}
        row["us"] = us.get(OURS, "n/a")
        row |= {f"{name} us": us.get(name, "n/a") for name in self.beside}
        for column, (peer, ours) in self.ratios.items():
            row[column] = us[peer] / us[ours] if {peer, ours} <= us.keys() else "n/a"
        return row | self.more(case, us.get(OURS)) | {"notes": notes}

    def measured(self, case: Case, peers: tuple[str, ...], rounds: int) -> dict[str, Any]:
        try:
            return self.row(case, *measure(self.inputs(case), lambda inputs: self.makers(inputs, peers), rounds))
        except Exception as error:  # noqa: BLE001  the row says it, and the others go on
            return self.row(case, "n/a", {}, {OURS: failure(error)})

    def pick(self, only: str) -> list[Case]:
        return [case for case in self.cases if only in f"{case.name} {case.cache}"]


def decode_columns(case: Case, us: float | None) -> dict[str, Any]:
    return {"bytes read": case.read_bytes, "TB/s": case.read_bytes / us * 1e-6 if us else "n/a"}


SUITE = Suite(
    "paged decode beside serving libraries", TIMING, NOT_THERE, CASES, 12, (CONTIGUOUS, FLASHINFER, CUDNN, COPY), RATIOS,
    decode_columns, makers, compile_flashinfer,
)  # fmt: skip


def in_words(row: dict[str, Any]) -> str:
    parts = {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items() if key != "name"}
    return "  ".join(f"{key}={value}" for key, value in parts.items() if value not in ("n/a", {}))


def found_peers(suite: Suite, cases: list[Case]) -> tuple[dict[str, str], dict[str, str]]:
    """The versions of those that are there, and why the others are not."""
    import torch

    versions: dict[str, str] = {}
    unavailable: dict[str, str] = {}
    try:
        versions[FLASHINFER] = suite.compile_flashinfer(cases)
    except Exception as error:  # noqa: BLE001  the file says it
        unavailable[FLASHINFER] = failure(error)
    if torch.backends.cudnn.is_available():
        versions[CUDNN] = str(torch.backends.cudnn.version())
    else:
        unavailable[CUDNN] = "torch has no cuDNN"
    return versions, unavailable


def run(suite: Suite, description: str) -> None:
    """The command of a suite. It writes the file after each row, and ends with 1 if ours failed in one."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help='rows whose shape or cache has this text: "b16 4k", "fp8"')
    parser.add_argument("--peers", choices=["none", "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="ours and the copy alone, fewer rounds")
    given = parser.parse_args()
    cases, rounds = suite.pick(given.only), min(7, suite.rounds) if given.quick else suite.rounds
    if not cases:
        parser.error(f"no row has {given.only!r}; there are {', '.join(f'{c.name} {c.cache}' for c in suite.cases)}")

    import torch

    import tensorcraft as tc

    torch.manual_seed(0)
    alone = given.quick or given.peers == "none"
    versions, unavailable = ({}, dict.fromkeys(PEERS, "not asked for")) if alone else found_peers(suite, cases)
    for name, reason in unavailable.items():
        print(f"without {name}: {reason}", flush=True)
    rows: list[dict[str, Any]] = []
    facts = {**machine(), "tensorcraft": tc.__version__, **versions}
    document = {"title": suite.title, "machine": facts, "timing": suite.timing,
                "unavailable": {**suite.not_there, **unavailable}, "rows": rows}  # fmt: skip
    for case in cases:
        rows.append(suite.measured(case, tuple(versions), rounds))
        given.out.write_text(text_of(document))
        print(in_words(rows[-1]), flush=True)
        torch.cuda.empty_cache()
    failed = [f"{row['case']} {row['cache']}: {row['notes'][OURS]}" for row in rows if OURS in row["notes"]]
    sys.exit("\n".join(failed) if failed else 0)


if __name__ == "__main__":
    run(SUITE, __doc__ or "")
