"""Times rungs of gemm with many tiles beside cuBLAS: what the tile tables in plan.h are chosen from.

    python benchmarks/gemm_sweep.py libgemm_sweep.so OUT.json [--size 4096 ...] [--dtype bfloat16 ...] [--layout NN NT]
        [--variant NAME ...] [--shipped] [--repeats 20]

--shipped times only the tile that the library would choose. Needs torch, a GPU, and the library built from
gemm_sweep.cpp (target gemm_sweep). Each size, dtype and layout is one interleaved run with torch.matmul.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from timing import interleaved_gpu, write

ROTATION_BYTES = 256 << 20  # several times the L2 cache


class Tile(NamedTuple):
    """As struct Tile in gemm_sweep.cpp."""

    block_m: int
    block_n: int
    block_k: int
    warp_m: int
    warp_n: int
    thread_m: int
    thread_n: int
    threads: int
    stages: int
    min_blocks: int


class CTile(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in Tile._fields]


def on_tensor_cores(element_bytes: int) -> list[Tile]:
    """block_k is 64 or 128 bytes of k; stages as far as 227 KiB of shared memory reach."""
    shapes = [(128, 256, 64, 64, 1), (256, 128, 64, 64, 1), (128, 128, 64, 64, 2), (128, 128, 64, 32, 1), (64, 256, 64, 64, 2),
              (256, 64, 64, 64, 2), (128, 64, 64, 32, 2), (64, 128, 32, 64, 2), (64, 64, 32, 32, 3), (32, 128, 32, 32, 3)]  # fmt: skip
    found = []
    for (m, n, warp_m, warp_n, blocks), k_bytes, stages in itertools.product(shapes, (64, 128), (3, 4, 6)):
        if blocks * (stages * (m + n) * k_bytes + 1024) <= 227 << 10:
            threads = 32 * (m // warp_m) * (n // warp_n)
            found.append(Tile(m, n, k_bytes // element_bytes, warp_m, warp_n, 0, 0, threads, stages, blocks))
    return found


def on_cuda_cores() -> list[Tile]:
    shapes = [(128, 256, 8, 16, 256, 1), (128, 128, 8, 16, 128, 2), (128, 128, 8, 8, 256, 2), (256, 128, 8, 16, 256, 1),
              (64, 128, 8, 8, 128, 2), (64, 128, 8, 8, 128, 3), (64, 64, 8, 4, 128, 3), (32, 64, 4, 4, 128, 4)]  # fmt: skip
    return [
        Tile(m, n, k, 8 * thread_m, 4 * thread_n, thread_m, thread_n, threads, stages, blocks)
        for (m, n, thread_m, thread_n, threads, blocks), k, stages in itertools.product(shapes, (8, 16), (3, 4))
    ]


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    size, pointer = ctypes.c_int64, ctypes.c_void_p
    library.gemm_sweep_prepare.argtypes = [ctypes.c_char_p, ctypes.c_char_p, size, size, size, ctypes.c_int]
    library.gemm_sweep_prepare.argtypes += [pointer, pointer, pointer, ctypes.POINTER(CTile), ctypes.POINTER(CTile)]
    library.gemm_sweep_prepare.restype = pointer
    library.gemm_sweep_launch.argtypes = [pointer, pointer]
    library.gemm_sweep_registers.argtypes = library.gemm_sweep_spill_bytes.argtypes = [pointer]
    return library


class Problem:
    """Operands of one product, in as many copies as keep them out of the L2 cache."""

    def __init__(self, library: ctypes.CDLL, size: int, dtype: str, layout: str) -> None:
        self.library, self.size, self.name, self.layout = library, size, dtype, layout
        self.dtype: torch.dtype = getattr(torch, "float32" if dtype == "tfloat32" else dtype)
        copies = max(1, ROTATION_BYTES // (2 * size * size * self.dtype.itemsize))
        make = lambda: torch.randn(size, size, device="cuda").to(self.dtype)
        self.sets = [(make(), make()) for _ in range(copies)]
        self.out = torch.empty(size, size, device="cuda", dtype=self.dtype)
        a, b = self.sets[0]
        self.expected = a.double() @ self.right(b).double()

    def right(self, b: torch.Tensor) -> torch.Tensor:
        return b.T if self.layout == "NT" else b

    def peer(self) -> Callable[[], Any]:
        turn = itertools.cycle(self.sets)

        def call() -> None:
            a, b = next(turn)
            torch.matmul(a, self.right(b), out=self.out)

        return call

    def handle(
        self, variant: str, tile: Tile | None, operands: tuple[torch.Tensor, torch.Tensor], chosen: CTile
    ) -> int | None:
        """A compiled kernel with its operands, which lives as long as the process."""
        given = ctypes.byref(CTile(*tile)) if tile else None
        pointers = [t.data_ptr() for t in (*operands, self.out)]
        handle: int | None = self.library.gemm_sweep_prepare(
            variant.encode(), str(self.dtype)[6:].encode(), *[self.size] * 3, self.layout == "NT",
            *pointers, given, ctypes.byref(chosen))  # fmt: skip
        return handle

    def compile(self, variant: str, tiles: list[Tile | None]) -> list[Tile | None]:
        """The tiles that compile, all processors at work."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            handles = pool.map(lambda tile: self.handle(variant, tile, self.sets[0], CTile()), tiles)
            return [tile for tile, handle in zip(tiles, handles, strict=True) if handle]

    def prepare(self, variant: str, tile: Tile | None) -> tuple[Callable[[], Any], dict[str, Any]] | None:
        """A call that launches the next copy, and what is known of the kernel; None where it does not launch."""
        chosen = CTile()
        handles = [self.handle(variant, tile, operands, chosen) for operands in self.sets]
        stream = torch.cuda.current_stream().cuda_stream
        self.out.fill_(float("nan"))
        if self.library.gemm_sweep_launch(handles[0], stream):
            return None
        error = float((self.out.double() - self.expected).norm() / self.expected.norm())
        facts = {name: getattr(chosen, name) for name in Tile._fields}
        facts |= {"registers": self.library.gemm_sweep_registers(handles[0]), "error": error}
        facts["spill_bytes"] = self.library.gemm_sweep_spill_bytes(handles[0])
        turn = itertools.cycle(handles)
        return lambda: self.library.gemm_sweep_launch(next(turn), stream), facts


def sweep(problem: Problem, variants: list[str], shipped: bool, repeats: int) -> list[dict[str, Any]]:
    torch.backends.cuda.matmul.allow_tf32 = problem.name == "tfloat32"
    calls: dict[str, Callable[[], Any]] = {"cublas": problem.peer()}
    facts: dict[str, dict[str, Any]] = {}
    for variant in variants:
        tiles = on_cuda_cores() if variant == "async" else on_tensor_cores(problem.dtype.itemsize)
        for tile in problem.compile(variant, [None, *([] if shipped else tiles)]):
            prepared = problem.prepare(variant, tile)
            name = f"{variant} {'shipped' if tile is None else tile}"
            if prepared:
                calls[name], facts[name] = prepared[0], {"variant": variant, "shipped": tile is None} | prepared[1]
    times = interleaved_gpu(calls, repeats=repeats, warmup=max(3, repeats // 4))
    peer = times["cublas"]["median_ms"]
    shape = f"{problem.size}^3 {problem.name} {problem.layout}"
    rows = [
        {"name": "gemm sweep", "shape": shape, "ms": times[name]["median_ms"], "cublas_ms": peer,
         "ratio": peer / times[name]["median_ms"], "tflops": 2e-9 * problem.size**3 / times[name]["median_ms"]} | known
        for name, known in facts.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row["ms"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("out")
    parser.add_argument("--size", type=int, nargs="+", default=[1024, 2048, 4096, 8192])
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32", "tfloat32"])
    parser.add_argument("--layout", nargs="+", default=["NN", "NT"])
    parser.add_argument("--variant", nargs="+", default=[])
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    torch.manual_seed(0)
    library = load(given.library)
    best = {"float32": ["async"], "tfloat32": ["swizzled_tf32"]}
    rows = []
    for dtype, size, layout in itertools.product(given.dtype, given.size, given.layout):
        problem = Problem(library, size, dtype, layout)
        rows += sweep(problem, given.variant or best.get(dtype, ["tma", "swizzled"]), given.shipped, given.repeats)
    write(
        given.out,
        "gemm tiles beside cuBLAS",
        rows,
        timing="CUDA events around one call, candidates interleaved, medians",
    )


if __name__ == "__main__":
    main()
