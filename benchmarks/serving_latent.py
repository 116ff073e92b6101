"""Latent attention over pages on a GPU beside FlashInfer and a copy of the bytes that a call reads.

    python benchmarks/serving_latent.py OUT.json [--only WORD] [--peers none] [--quick]

A row of the cache has 512 latent values, which are the values too, and 64 elements that rotate; all heads share it. Cases
and rows are as in serving_decode.py; TFLOPS count the pairs that a causal query sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import serving_decode as decode
from serving_decode import COPY, FLASHINFER, OURS, Call, Case, Inputs

PAGE, DIM, V_DIM = 64, 576, 512
SCALE = 192**-0.5  # of the heads before their keys are absorbed
RATIOS = {"of FlashInfer": (FLASHINFER, OURS), "of copy": (COPY, OURS)}
TIMING = (
    "graphs of at least 16 calls over inputs rotated past the cache, candidates in turn, medians; standard normal values; "
    "FlashInfer by its fa3 kernels of latent attention, planned once, latent and rope parts in arrays of their own"
)


class LatentCase(Case):
    @property
    def pages(self) -> int:
        return self.keys // PAGE

    @property
    def cache_bytes(self) -> int:
        return 2 * self.batch * self.keys * DIM

    @property
    def read_bytes(self) -> int:
        return self.cache_bytes + 2 * self.batch * self.queries * self.heads * DIM

    @property
    def pairs(self) -> int:
        """Queries and keys that they see, of one head."""
        first = self.keys - self.queries + 1
        return self.batch * self.queries * (first + self.keys) // 2


DECODE = ("b64 4k 128/1", "b128 4k 128/1", "b16 8k 128/1", "b1 32k 128/1", "b1 4k 128/1",
          "b64 4k 64/1", "b64 4k 32/1", "b64 4k 16/1", "b16 16k 16/1", "b64 4k 8/1", "b1 4k 16/1")  # fmt: skip
CASES: list[Case] = [
    *(LatentCase.parse(text) for text in DECODE),
    *(LatentCase.parse(text)._replace(queries=n) for text, n in (("b64 4k 16/1", 4), ("b16 4k 128/1", 2))),
    *(LatentCase(1, 4096 + before, 128, 1, 4096) for before in (0, 16384)),
]


class LatentInputs(Inputs):
    v_dim = V_DIM

    def __init__(self, case: LatentCase) -> None:
        import torch

        self.case = case
        self.table = torch.randperm(case.batch * case.pages, device="cuda").view(case.batch, -1).int()
        self.lengths = torch.full((case.batch,), case.keys, dtype=torch.int32, device="cuda")
        shape = (case.batch * case.pages, PAGE, 1, DIM)
        self.caches = [(decode.codes(shape, "bf16"),) for _ in range(case.sets)]
        self.q = [decode.codes((case.batch, case.queries, case.heads, DIM), "bf16") for _ in range(case.sets)]
        self.options = {"scale": SCALE, "v_dim": V_DIM}

    def reference(self) -> Any:
        import torch

        case, queries = self.case, min(self.case.queries, decode.MOST_CHECKED)
        k = self.in_order(self.caches[0][0], -1).double().squeeze(1)
        q = self.q[0][-1, -queries:].double()
        scores = torch.einsum("qhd,kd->hqk", q, k) * SCALE
        seen = torch.ones(queries, case.keys, dtype=torch.bool, device="cuda").tril(case.keys - queries)
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        return torch.einsum("hqk,kd->qhd", weights, k[:, :V_DIM])


def flashinfer_call(inputs: LatentInputs) -> Call:
    import flashinfer
    import torch

    case = inputs.case
    workspace = torch.zeros(256 << 20, dtype=torch.uint8, device="cuda")
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(workspace, backend="fa3")
    ends = torch.arange(case.batch + 1, dtype=torch.int32, device="cuda")
    wrapper.plan(
        ends * case.queries, ends * case.pages, inputs.table.flatten(), inputs.lengths, case.heads, V_DIM, DIM - V_DIM, PAGE,
        case.queries > 1, SCALE, torch.bfloat16, torch.bfloat16,
    )  # fmt: skip
    parts = [tuple(x.squeeze(2).contiguous() for x in cache[0].split((V_DIM, DIM - V_DIM), -1)) for cache in inputs.caches]
    queries = [tuple(x.contiguous() for x in q.flatten(0, 1).split((V_DIM, DIM - V_DIM), -1)) for q in inputs.q]
    outs = [torch.empty_like(q) for q, _ in queries]

    def call(i: int) -> Any:
        wrapper.run(*queries[i], *parts[i], out=outs[i])
        return outs[i].view(case.batch, case.queries, case.heads, V_DIM)

    return call


def makers(inputs: LatentInputs, peers: tuple[str, ...]) -> dict[str, Callable[[], Call]]:
    found: dict[str, Callable[[], Call]] = {OURS: partial(decode.paged, inputs)}
    if FLASHINFER in peers:
        found[FLASHINFER] = partial(flashinfer_call, inputs)
    return found


def compile_flashinfer(_: list[Case]) -> str:
    """Its version; its module of latent attention is compiled."""
    import flashinfer
    import torch
    from flashinfer.jit import build_jit_specs
    from flashinfer.jit.attention import gen_batch_mla_module

    bf16 = torch.bfloat16
    build_jit_specs([gen_batch_mla_module("fa3", bf16, bf16, bf16, torch.int32, V_DIM, DIM - V_DIM, False)], verbose=False)
    return str(flashinfer.__version__)


def columns(case: LatentCase, us: float | None) -> dict[str, Any]:
    of_pair = 2 * case.heads * (DIM + V_DIM)
    return decode.decode_columns(case, us) | {"TFLOPS": of_pair * case.pairs / us * 1e-6 if us else "n/a"}


SUITE = decode.Suite(
    "latent attention over pages beside serving libraries", TIMING, {}, CASES, 9, (FLASHINFER, COPY), RATIOS, columns, makers,
    compile_flashinfer, LatentInputs,
)  # fmt: skip


if __name__ == "__main__":
    decode.run(SUITE, __doc__ or "")
