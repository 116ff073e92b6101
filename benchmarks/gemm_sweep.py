"""Times rungs of gemm with every legal tile beside cuBLAS: what the tile tables of the plan are chosen from.

    python benchmarks/gemm_sweep.py libgemm_sweep.so OUT.json [--shape 4096 333x4097x1023 ...] [--dtype bfloat16 ...]
        [--layout NN NT TN TT] [--variant NAME ...] [--only FIELD=VALUE[,VALUE] ...] [--tile FIELD=VALUE,... ...] [--shipped]
        [--seconds 10] [--keep 16] [--arch sm_90a]

A tile is the fields of the rung's Config that differ from the shipped one, by name. --only keeps tiles with one of the
values, --tile names tiles instead of the lists here, --shipped times only what the library would choose. Every tile
is compiled, on all processors, and held against a product in float64 before it is timed; one that does not compile,
does not launch or is wrong is a row with its error. Each shape, dtype and layout is one interleaved run with
torch.matmul of about --seconds; after three rounds only the --keep fastest go on. Needs torch, a GPU and the library built
from gemm_sweep.cpp (target gemm_sweep). With --arch the tiles are compiled for an architecture and nothing is timed,
which needs neither.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from timing import gpu_timer, micro_summary, write

Tile = dict[str, int | str]
ROTATION_BYTES = 256 << 20  # several times the L2 cache
SHARED_BYTES = 227 << 10  # of a block
GRAPH_BELOW_BYTES, GRAPH_BELOW_US = 16e6, 10.0
FIRST_ROUNDS, MOST_ROUNDS = 3, 100


def on_tensor_cores(element_bytes: int) -> list[Tile]:
    """block_k is 64 or 128 bytes of k; stages as far as shared memory reaches."""
    shapes = [(128, 256, 64, 64, 1), (256, 128, 64, 64, 1), (128, 128, 64, 64, 2), (128, 128, 64, 32, 1), (64, 256, 64, 64, 2),
              (256, 64, 64, 64, 2), (128, 64, 64, 32, 2), (64, 128, 32, 64, 2), (64, 64, 32, 32, 3), (32, 128, 32, 32, 3)]  # fmt: skip
    return [
        {"block_m": m, "block_n": n, "block_k": k_bytes // element_bytes, "warp_m": warp_m, "warp_n": warp_n,
         "threads": 32 * (m // warp_m) * (n // warp_n), "stages": stages, "min_blocks": blocks}
        for (m, n, warp_m, warp_n, blocks), k_bytes, stages in itertools.product(shapes, (64, 128), (3, 4, 6))
        if blocks * (stages * (m + n) * k_bytes + 1024) <= SHARED_BYTES
    ]  # fmt: skip


def on_cuda_cores(_: int) -> list[Tile]:
    shapes = [(128, 256, 8, 16, 256, 1), (128, 128, 8, 16, 128, 2), (128, 128, 8, 8, 256, 2), (256, 128, 8, 16, 256, 1),
              (64, 128, 8, 8, 128, 2), (64, 128, 8, 8, 128, 3), (64, 64, 8, 4, 128, 3), (32, 64, 4, 4, 128, 4)]  # fmt: skip
    return [
        {"block_m": m, "block_n": n, "block_k": k, "warp_m": 8 * thread_m, "warp_n": 4 * thread_n, "thread_m": thread_m,
         "thread_n": thread_n, "threads": threads, "stages": stages, "min_blocks": blocks}
        for (m, n, thread_m, thread_n, threads, blocks), k, stages in itertools.product(shapes, (8, 16), (3, 4))
    ]  # fmt: skip


def on_warpgroups(element_bytes: int, producers: int = 1, persistent: bool = False) -> list[Tile]:
    """Consumers of 64 or 128 rows, at most 160 sums a thread; as many stages as fit, and one less."""
    clusters = [(1, 1), (2, 1), (1, 2)] if persistent else [(1, 1)]
    schedules = ["together", "ping_pong"] if persistent else ["together"]
    found: list[Tile] = []
    for m, n, (cluster_m, cluster_n), schedule in itertools.product(
        (64, 128, 192, 256), (32, 64, 96, 128, 160, 192, 208, 224, 256, 320), clusters, schedules
    ):
        consumers = 2 if schedule == "ping_pong" or m in (128, 256) else m // 64
        rows_of_one = m if schedule == "ping_pong" else m // consumers
        stage_bytes = 128 * (m + n) + 16
        stages = min((SHARED_BYTES - (32 << 10)) // stage_bytes, 8)  # beside them stands what is stored
        if rows_of_one > 128 or rows_of_one * n > 160 * 128 or stages < 3:
            continue
        tile: Tile = {"block_m": m, "block_n": n, "block_k": 128 // element_bytes, "consumers": consumers,
                      "threads": 128 * (consumers + producers)}  # fmt: skip
        if persistent:
            tile |= {"cluster_m": cluster_m, "cluster_n": cluster_n, "schedule": schedule}
        found += [{**tile, "stages": s} for s in sorted({stages, max(stages - 1, 3)})]
    return found


def split_along_k(element_bytes: int) -> list[Tile]:
    small = [t for t in on_warpgroups(element_bytes) if t["block_m"] in (64, 128) and int(t["block_n"]) <= 128]
    return [{**tile, "split": split} for tile, split in itertools.product(small, (2, 4, 8))]


# What is swept of each rung, and of its twin for tf32, by the bytes of an operand's element.
TILES: dict[str, Callable[[int], list[Tile]]] = {
    "async": on_cuda_cores,
    "tensor_core": on_tensor_cores,
    "swizzled": on_tensor_cores,
    "tma": on_tensor_cores,
    "wgmma": lambda b: on_warpgroups(b, producers=0),
    "warp_specialized": on_warpgroups,
    "persistent": lambda b: on_warpgroups(b, persistent=True),
    "split_k": split_along_k,
}
USUAL = {"float32": ["async"], "tfloat32": ["swizzled_tf32"]}  # else tma and swizzled


def text_of(tile: Tile) -> str:
    return ",".join(f"{name}={value}" for name, value in tile.items())


def parse_tile(text: str) -> Tile:
    """ "block_m=128,schedule=ping_pong", also as the library writes it, with spaces."""
    items = [item.split("=", 1) for item in text.replace(" ", "").split(",") if item]
    if bad := [item[0] for item in items if len(item) != 2]:
        raise ValueError(f'"{text}": {bad[0]} is no FIELD=VALUE')
    return {name: int(value) if value.lstrip("-").isdigit() else value for name, value in items}


def parse_only(words: list[str]) -> dict[str, set[int | str]]:
    """ "block_n=128,256": the values that a field may have."""
    found: dict[str, set[int | str]] = {}
    for word in words:
        name, _, values = word.partition("=")
        if not values:
            raise ValueError(f'--only "{word}": give FIELD=VALUE[,VALUE]')
        found[name] = set(parse_tile(",".join(f"{i}={v}" for i, v in enumerate(values.split(",")))).values())
    return found


def parse_shape(text: str) -> tuple[int, int, int]:
    """ "4096" is a cube, "333x4097x1023" m x n x k."""
    sizes = [int(size) for size in text.split("x")]
    if len(sizes) not in (1, 3):
        raise ValueError(f'--shape "{text}": give one size, or MxNxK')
    m, n, k = sizes * (3 // len(sizes))
    return m, n, k


class CProblem(ctypes.Structure):
    """As struct Problem in gemm_sweep.cpp."""

    _fields_ = [(name, ctypes.c_int64) for name in "mnk"] + [(f"transpose_{name}", ctypes.c_int32) for name in "ab"]
    _fields_ += [("dtype", ctypes.c_char_p)]


class Library:
    """gemm_sweep.cpp; a RuntimeError has its message."""

    def __init__(self, path: str, arch: str = "") -> None:
        self.c, self.arch = ctypes.CDLL(path), arch.encode()
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        self.c.gemm_sweep_error.restype = self.c.gemm_sweep_text.restype = self.c.gemm_sweep_compile.restype = text
        self.c.gemm_sweep_plan.restype = pointer
        self.c.gemm_sweep_plan.argtypes = [text, text, ctypes.POINTER(CProblem), pointer, pointer, pointer, text]
        self.c.gemm_sweep_text.argtypes = [pointer]
        self.c.gemm_sweep_compile.argtypes = [text, pointer]
        self.c.gemm_sweep_launch.argtypes = [pointer, pointer]

    def _answer(self, result: Any, failed: Any) -> Any:
        if result == failed:
            raise RuntimeError(self.c.gemm_sweep_error().decode())
        return result

    def plan(self, variant: str, problem: CProblem, pointers: list[int], tile: Tile) -> int:
        fields = text_of(tile).encode()
        handle = self.c.gemm_sweep_plan(self.arch, variant.encode(), ctypes.byref(problem), *pointers, fields)
        return int(self._answer(handle, None))

    def facts(self, handle: int) -> Tile:
        """The whole Config, the launch, registers and spills; compiles."""
        compiled = self._answer(self.c.gemm_sweep_compile(self.arch, handle), None)
        return parse_tile(self.c.gemm_sweep_text(handle).decode()) | parse_tile(compiled.decode())

    def launch(self, handle: int, stream: int) -> None:
        self._answer(self.c.gemm_sweep_launch(handle, stream), -1)


@dataclass(frozen=True)
class Product:
    """What is multiplied."""

    m: int
    n: int
    k: int
    dtype: str  # tfloat32: float32 that may be rounded
    layout: str  # NT: b is stored as [n, k]

    @property
    def stored_dtype(self) -> str:
        return "float32" if self.dtype == "tfloat32" else self.dtype

    @property
    def element_bytes(self) -> int:
        return 4 if self.stored_dtype == "float32" else 2

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        a, b = (self.m, self.k), (self.k, self.n)
        return (a[::-1] if self.layout[0] == "T" else a), (b[::-1] if self.layout[1] == "T" else b)

    def in_c(self) -> CProblem:
        transposed = [letter == "T" for letter in self.layout]
        return CProblem(self.m, self.n, self.k, *transposed, self.stored_dtype.encode())

    def facts(self) -> dict[str, Any]:
        return {"shape": f"{self.m}x{self.n}x{self.k}", "dtype": self.dtype, "layout": self.layout}

    def tolerances(self) -> tuple[float, float]:
        """Of an element, as a part of it and besides: one rounding of the result, and the order of sums."""
        result = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(self.stored_dtype, 2.0**-24)
        sums = 2.0**-7 if self.dtype == "tfloat32" else 2.0**-22 * max(self.k / 16, 16)
        return result, sums * math.sqrt(self.k)


@dataclass
class Candidate:
    """A tile of a rung; the shipped one is empty."""

    variant: str
    tile: Tile
    row: dict[str, Any] = field(default_factory=dict)
    call: Callable[[int], Any] | None = None  # with the n-th set of operands

    @property
    def name(self) -> str:
        return f"{self.variant} {text_of(self.tile) or 'shipped'}"


def candidates(product: Product, variants: list[str], only: dict[str, set[int | str]], tiles: list[Tile], shipped: bool) -> list[Candidate]:
    """The shipped tile of each rung, and those that are asked for."""
    found = []
    for variant in variants:
        all_of = TILES.get(variant.removesuffix("_tf32"), lambda _: [])
        listed = [] if shipped else tiles or all_of(product.element_bytes)
        kept = [t for t in listed if all(t.get(name) in values for name, values in only.items())]
        found += [Candidate(variant, tile) for tile in ({}, *kept)]
    for candidate in found:
        candidate.row = {"name": "gemm sweep", **product.facts(), "variant": candidate.variant, "shipped": not candidate.tile}
    return found


def fail(candidate: Candidate, why: object) -> None:
    candidate.row |= {"tile": text_of(candidate.tile), "error": " ".join(str(why).split())[:300]}


def compile_all(library: Library, product: Product, found: list[Candidate]) -> None:
    """On all processors; what does not compile gets an error."""

    def one(candidate: Candidate) -> None:
        try:
            candidate.row |= library.facts(library.plan(candidate.variant, product.in_c(), [0, 0, 0], candidate.tile))
        except RuntimeError as error:
            fail(candidate, error)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, found))


class Operands:
    """Matrices on the GPU, in as many sets as keep them out of the L2 cache, and the product in float64."""

    def __init__(self, product: Product) -> None:
        import torch

        self.torch, self.product = torch, product
        torch.backends.cuda.matmul.allow_tf32 = product.dtype == "tfloat32"
        dtype = getattr(torch, product.stored_dtype)
        nbytes = product.element_bytes * product.k * (product.m + product.n)
        make = lambda shape: torch.randn(*shape, device="cuda").to(dtype)
        sets = min(max(2, ROTATION_BYTES // max(nbytes, 1)), 256)
        self.sets = [tuple(make(shape) for shape in product.shapes) for _ in range(sets)]
        self.out = torch.empty(product.m, product.n, device="cuda", dtype=dtype)
        a, b = self.oriented(0)
        self.expected = a.double() @ b.double()

    def oriented(self, i: int) -> tuple[Any, Any]:
        a, b = self.sets[i]
        return (a.T if self.product.layout[0] == "T" else a), (b.T if self.product.layout[1] == "T" else b)

    def peer(self, i: int) -> None:
        self.torch.matmul(*self.oriented(i), out=self.out)

    def wrong(self, call: Callable[[int], Any]) -> str:
        """What is wrong with the result of a call on the first set; empty: nothing."""
        self.out.fill_(float("nan"))
        call(0)
        error = (self.out.double() - self.expected).abs()
        relative, absolute = self.product.tolerances()
        bad = ~(error <= relative * self.expected.abs() + absolute)
        if not bool(bad.any()):
            return ""
        m, n = divmod(int(bad.flatten().int().argmax()), self.product.n)
        got, wanted = float(self.out[m, n]), float(self.expected[m, n])
        return f"{int(bad.sum())} wrong elements, the first at ({m}, {n}): {got:.6g}, not {wanted:.6g}"


def prepare(library: Library, operands: Operands, candidate: Candidate) -> None:
    """Gives the candidate its call, or an error."""
    try:
        problem, cuda = operands.product.in_c(), operands.torch.cuda
        pointers = [[t.data_ptr() for t in (a, b, operands.out)] for a, b in operands.sets]
        handles = [library.plan(candidate.variant, problem, p, candidate.tile) for p in pointers]
        call = lambda i: library.launch(handles[i], cuda.current_stream().cuda_stream)
        if why := operands.wrong(call):
            fail(candidate, why)
        else:
            candidate.call = call
    except RuntimeError as error:  # torch's too: what failed on the device
        fail(candidate, error)


def rounds(timers: dict[str, Callable[[], float]], seconds: float, keep: int, always: set[str]) -> dict[str, list[float]]:
    """Microseconds of each in rounds of random order; after the first few the `keep` fastest and `always` go on."""
    samples: dict[str, list[float]] = {name: [] for name in timers}
    alive, start, done = list(timers), time.perf_counter(), 0
    while done < FIRST_ROUNDS or (time.perf_counter() - start < seconds and done < MOST_ROUNDS):
        random.shuffle(alive)
        for name in alive:
            samples[name].append(timers[name]())
        done += 1
        if done == FIRST_ROUNDS:
            best = sorted(alive, key=lambda name: statistics.median(samples[name]))[:keep]
            alive = list({*best, *always})
    return samples


def measure(operands: Operands, found: list[Candidate], seconds: float, keep: int) -> None:
    sets, product = len(operands.sets), operands.product
    turn: Iterator[int] = itertools.cycle(range(sets))
    nbytes = product.element_bytes * (product.k * (product.m + product.n) + product.m * product.n)
    rough = min(gpu_timer(operands.peer, turn, sets, graph=False)() for _ in range(3))
    graph = nbytes < GRAPH_BELOW_BYTES or rough < GRAPH_BELOW_US
    timers = {"cublas": gpu_timer(operands.peer, turn, sets, graph)}
    for c in found:
        try:
            if c.call:
                timers[c.name] = gpu_timer(c.call, turn, sets, graph)
        except RuntimeError as error:  # it cannot be recorded
            fail(c, error)
    samples = rounds(timers, seconds, keep, {"cublas", *(c.name for c in found if c.name in timers and not c.tile)})
    peer = statistics.median(samples["cublas"])
    for c in found:
        if c.name in timers:
            us = micro_summary(samples[c.name])
            c.row |= us | {"cublas_us": peer, "ratio": peer / us["median_us"], "timing": "graph" if graph else "events"}
            c.row["tflops"] = 2e-6 * product.m * product.n * product.k / us["median_us"]


def sweep(library: Library, product: Product, given: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Adds the rows of all candidates, of which a failing device leaves those before it."""
    variants = given.variant or USUAL.get(product.dtype, ["tma", "swizzled"])
    found = candidates(product, variants, parse_only(given.only), [parse_tile(t) for t in given.tile], given.shipped)
    rows += [candidate.row for candidate in found]
    compile_all(library, product, found)
    if library.arch:
        return
    operands = Operands(product)
    for candidate in found:
        if "error" not in candidate.row:
            print(f"checking {candidate.name}", file=sys.stderr, flush=True)  # the last one, if a kernel never ends
            prepare(library, operands, candidate)
    measure(operands, found, given.seconds, given.keep)
    rows[-len(found) :] = sorted(rows[-len(found) :], key=lambda row: row.get("median_us", math.inf))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("library")
    made.add_argument("out")
    made.add_argument("--shape", nargs="+", default=["1024", "2048", "4096", "8192"])
    made.add_argument("--dtype", nargs="+", default=["bfloat16", "float32", "tfloat32"])
    made.add_argument("--layout", nargs="+", default=["NN", "NT"], choices=["NN", "NT", "TN", "TT"])
    made.add_argument("--variant", nargs="+", default=[])
    made.add_argument("--only", nargs="+", default=[], metavar="FIELD=VALUE")
    made.add_argument("--tile", nargs="+", default=[], metavar="FIELD=VALUE,...")
    made.add_argument("--shipped", action="store_true")
    made.add_argument("--seconds", type=float, default=10.0)
    made.add_argument("--keep", type=int, default=16)
    made.add_argument("--arch", default="")
    return made


def main() -> None:
    given = parser().parse_args()
    library = Library(given.library, given.arch)
    rows: list[dict[str, Any]] = []
    how = f"compiled for {given.arch}" if given.arch else "CUDA events around one call or a graph, interleaved, medians"
    try:
        for dtype, shape, layout in itertools.product(given.dtype, given.shape, given.layout):
            sweep(library, Product(*parse_shape(shape), dtype, layout), given, rows)
    finally:
        write(given.out, "gemm tiles beside cuBLAS", rows, timing=how)


if __name__ == "__main__":
    main()
