"""An indexer's scores on a GPU: mqa_logits by each of its variants, decode beside a copy of the keys' bytes.

    python benchmarks/indexer_figures.py OUT.json [--only WORD] [--repeats N]
"""

from __future__ import annotations

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from figures import Call, Row, in_turn
from timing import failure, machine, show, text_of

TITLE = "scores of an indexer beside a copy of its keys"
TIMING = "graphs of 16 calls over rotated inputs, in turn, medians; normal values; copy: half of the keys' bytes read, half written"
DIM, PAGE = 128, 64
ELEMENT_BYTES = {"float8_e4m3fn": 1, "bfloat16": 2}
VARIANTS = ("wgmma", "tensor_core")
ROTATED_BYTES, LARGEST_ERROR = 300e6, 1e-2  # the error: of the largest value of the reference


class Case(NamedTuple):
    dtype: str
    heads: int
    queries: int  # of a request
    keys: int
    batch: int = 0  # requests whose keys lie in pages; 0: keys side by side
    causal: bool = False  # the queries are the newest tokens

    @property
    def name(self) -> str:
        return f"{f'decode {self.batch}' if self.batch else f'prefill {self.queries}'} x {self.keys} keys, {self.heads} heads{', causal' if self.causal else ''}"

    @property
    def key_bytes(self) -> int:
        return max(self.batch, 1) * self.keys * DIM * ELEMENT_BYTES[self.dtype]

    @property
    def flops(self) -> int:
        hidden = self.queries * (self.queries - 1) // 2 if self.causal else 0
        return 2 * max(self.batch, 1) * (self.queries * self.keys - hidden) * self.heads * DIM

    @property
    def sets(self) -> int:
        return max(math.ceil(ROTATED_BYTES / (self.key_bytes + self.queries * self.heads * DIM)), 2)


CASES = [
    *(Case(dtype, 64, 4096, 32768, causal=causal) for dtype in ELEMENT_BYTES for causal in (False, True)),
    *(Case(dtype, heads, 1, 32768, batch=64) for dtype in ELEMENT_BYTES for heads in (16, 64)),
]


class Inputs:
    def __init__(self, case: Case) -> None:
        import torch

        def random(*shape: int) -> Any:
            return torch.randn(shape, device="cuda").to(getattr(torch, case.dtype))

        self.case, rows = case, (case.batch or case.queries,)
        pages = case.batch * case.keys // PAGE
        of_keys = (pages, PAGE) if pages else (case.keys,)
        self.q = [random(*rows, case.heads, DIM) for _ in range(case.sets)]
        self.k = [random(*of_keys, DIM) for _ in range(case.sets)]
        self.weights = torch.randn((*rows, case.heads), device="cuda")
        self.options: Row = {"k_scale": torch.rand(of_keys, device="cuda") + 0.5}
        if case.batch:
            self.options["block_tables"] = torch.randperm(pages, device="cuda", dtype=torch.int32).view(case.batch, -1)
            self.options["lengths"] = torch.full(rows, case.keys, device="cuda", dtype=torch.int32)
        if case.causal:
            newest = torch.arange(case.queries, device="cuda", dtype=torch.int32)
            self.options["k_end"] = newest + (case.keys - case.queries + 1)
        self.out = torch.empty((*rows, case.keys), device="cuda")

    def reference(self, row: int) -> Any:
        import torch

        k, scale = self.k[0].double(), self.options["k_scale"].double()
        if self.case.batch:
            table = self.options["block_tables"][row].long()
            k, scale = k[table].flatten(0, 1), scale[table].flatten()
        logits = (k @ self.q[0][row].double().T).relu() @ self.weights[row].double() * scale
        if self.case.causal:
            hidden = torch.arange(self.case.keys, device="cuda") >= self.options["k_end"][row]
            logits[hidden] = -math.inf
        return logits

    def call(self, variant: Any, i: int) -> None:
        import tensorcraft as tc

        tc.mqa_logits(self.q[i], self.k[i], self.weights, out=self.out, variant=variant, **self.options)

    def check(self, variant: str) -> None:
        self.out.fill_(math.nan)
        self.call(variant, 0)
        for row in (0, self.out.shape[0] // 2, -1):
            wanted, got = self.reference(row), self.out[row].double()
            seen = wanted.isfinite()
            error = float((got - wanted)[seen].abs().max() / wanted[seen].abs().max())
            if not (error <= LARGEST_ERROR and bool((got[~seen] == -math.inf).all())):
                raise ValueError(f"row {row} is wrong by {error:.3g} of the largest value")


def row_of(case: Case, variant: str, us: float, copy_us: float, notes: dict[str, str]) -> Row:
    found = {"us": us, "TFLOPS": case.flops / us * 1e-6, "of copy": copy_us / us}
    row: Row = {"name": "mqa_logits", "case": case.name, "dtype": case.dtype, "variant": variant}
    row |= {key: "n/a" if math.isnan(value) else value for key, value in found.items()}
    return row | {"note": notes.get(variant, "")}


def rows_of(case: Case, repeats: int) -> list[Row]:
    import torch

    inputs, notes = Inputs(case), {}
    candidates: dict[str, Call] = {}
    for variant in VARIANTS:
        try:
            inputs.check(variant)
            candidates[variant] = partial(inputs.call, variant)
        except Exception as error:  # noqa: BLE001  the row says it, and the others go on
            notes[variant] = failure(error)
    if case.batch:
        halves = torch.ones((2, case.sets, case.key_bytes // 2), dtype=torch.uint8, device="cuda")
        candidates["copy"] = lambda i: halves[0, i].copy_(halves[1, i])
    us = {name: of["median_us"] for name, of in in_turn(candidates, case.sets, repeats, graph=True).items()}
    return [row_of(case, variant, us.get(variant, math.nan), us.get("copy", math.nan), notes) for variant in VARIANTS]


def main() -> None:
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="cases whose name or dtype has this text")
    parser.add_argument("--repeats", type=int, default=12)
    given = parser.parse_args()
    rows: list[Row] = []
    document = {"title": TITLE, "machine": machine(), "timing": TIMING, "rows": rows}
    for case in CASES:
        if given.only in f"{case.name} {case.dtype}":
            rows += rows_of(case, given.repeats)
            show(rows[-len(VARIANTS) :])
            given.out.write_text(text_of(document))


if __name__ == "__main__":
    main()
