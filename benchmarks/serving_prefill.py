"""Causal prefill over pages on a GPU beside our attention on arrays, FlashInfer and cuDNN.

    python benchmarks/serving_prefill.py OUT.json [--only WORD] [--peers none] [--quick]

A row has the microseconds of each candidate, how many times as fast as each peer ours is, and TFLOPS of the pairs that a
causal query sees. Every candidate is held against a reference in float64 before it is timed: the last queries of a request.
OUT.json is written after each row. What fails is named in the row or under "unavailable"; if ours fails, the others go on
and the script ends with 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import serving_decode as decode
from serving_decode import CONTIGUOUS, CUDNN, DIM, FLASHINFER, OURS, Call, Case, Inputs

HEADS = ((32, 8), (64, 8), (32, 4))
# Requests, new tokens and keys.
SHAPES = ((1, 2048, 2048), (4, 4096, 4096), (1, 16384, 16384), (1, 2048, 32768 + 2048))
WINDOW = 1024
ROUNDS = 7
CASES = [
    *(Case(b, keys, *heads, queries) for heads in HEADS for b, queries, keys in SHAPES),
    *(Case(b, keys, *HEADS[0], queries, window=WINDOW) for b, queries, keys in SHAPES),
    *(Case(b, keys, *HEADS[0], queries, cache) for cache in ("fp8", "int8") for b, queries, keys in SHAPES),
]
RATIOS = {"of arrays": (CONTIGUOUS, OURS), "of FlashInfer": (FLASHINFER, OURS), "of cuDNN": (CUDNN, OURS)}
TIMING = (
    "graphs of at least 16 calls over inputs rotated past the cache, candidates in turn, medians; standard normal values; "
    "FlashInfer by its fa3 kernels, of an fp8 cache by its fa2 ones, planned once; arrays and cuDNN on the same keys in order"
)
NOT_THERE = {
    "FlashInfer, int8": "it has no int8 cache",
    "cuDNN, more keys than queries": "its causal mask begins with the first query at the first key",
    "cuDNN, window": "torch gives it none",
    "arrays and cuDNN, fp8 and int8": "attention on arrays takes 8-bit keys with an 8-bit query alone",
}


def pairs_of(case: Case) -> int:
    """Queries and keys that they see, of one head."""
    first = case.keys - case.queries + 1
    seen = case.queries * (first + case.keys) // 2
    if not case.window:
        return case.batch * seen
    return case.batch * sum(min(n, case.window) for n in range(first, case.keys + 1))


def makers(inputs: Inputs, peers: tuple[str, ...]) -> dict[str, Callable[[], Call]]:
    """Makers of the candidates that take this case; NOT_THERE says why the others do not."""
    case = inputs.case
    found: dict[str, Callable[[], Call]] = {OURS: partial(decode.paged, inputs)}
    if case.cache == "bf16":
        arrays = decode.contiguous_arrays(inputs)
        found[CONTIGUOUS] = partial(decode.contiguous, arrays, case.window)
        if CUDNN in peers and case.queries == case.keys and not case.window:
            found[CUDNN] = partial(decode.cudnn, arrays, causal=True)
    if FLASHINFER in peers and case.cache != "int8":
        found[FLASHINFER] = partial(decode.flashinfer_call, inputs, "fa3" if case.cache == "bf16" else "fa2")
    return found


def compile_flashinfer(cases: list[Case]) -> str:
    """Its version; its modules for these cases are compiled side by side."""
    import flashinfer
    import torch
    from flashinfer.jit import build_jit_specs, gen_batch_prefill_module

    bf16 = torch.bfloat16
    kinds = {("fa3" if c.cache == "bf16" else "fa2", c.cache, c.window > 0) for c in cases if c.cache != "int8"}
    dtypes = {"bf16": bf16, "fp8": torch.float8_e4m3fn}
    build_jit_specs(
        [gen_batch_prefill_module(backend, bf16, dtypes[cache], bf16, torch.int32, DIM, DIM, 0, window, False, False)
         for backend, cache, window in sorted(kinds)],
        verbose=False,
    )  # fmt: skip
    return str(flashinfer.__version__)


def columns(case: Case, us: float | None) -> dict[str, Any]:
    return {"TFLOPS": 4 * DIM * case.heads * pairs_of(case) / us * 1e-6 if us else "n/a"}


SUITE = decode.Suite(
    "prefill over pages beside serving libraries", TIMING, NOT_THERE, CASES, ROUNDS, (CONTIGUOUS, FLASHINFER, CUDNN), RATIOS,
    columns, makers, compile_flashinfer,
)  # fmt: skip


if __name__ == "__main__":
    decode.run(SUITE, __doc__ or "")
