"""Times tc.sparse beside cuSPARSE (through torch, through CuPy, and by its own calls with the preprocess step) and a copy.

    python benchmarks/sparse_peers.py OUT.json [--only TEXT] [--variant all] [--small] [--seconds 0.3] [--wordnet FOLDER]

Matrices are uniform, banded and of a power law, and one of 8192 rows and columns has 95 % zeros, whose products are timed
beside tc.gemm of the same numbers, and whose conversions beside a copy. Rows of the file have the form of torch_peers.py.
Without torch or a GPU the CPU is timed beside SciPy. Peers that are not installed say n/a.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from timing import failure, gpu_timer, machine, micro_summary
from torch_peers import save

import tensorcraft as tc

Call = Callable[[int], Any]
COLUMNS = 64  # of the dense matrix
SIZES = {"65536": (65_536, 4_194_304), "1M": (1_000_000, 24_000_000)}
SMALL = {"2000": (2_000, 60_000)}
DENSE_ROWS, DENSITY = 8_192, 0.05  # of the matrix that is held against a dense one
CONVERSIONS = ("csr_to_dense", "csr_from_dense", "csr_transpose")


@dataclass
class Matrix:
    """A square matrix by rows on the host."""

    name: str
    data: Any
    indices: Any
    indptr: Any

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1


def lengths_of(kind: str, rows: int, stored: int, random: np.random.Generator) -> Any:
    mean = stored // rows
    if kind == "uniform":
        return random.poisson(mean, rows)
    if kind == "banded":
        return np.full(rows, mean)
    lengths = (random.pareto(1.2, rows) + 1) * mean / 6  # the mean of the draw is six of its scale
    return np.minimum(lengths, rows // 4).astype(np.int64)


def matrix_of(kind: str, label: str, rows: int, stored: int) -> Matrix:
    """Columns are drawn anywhere, of a band beside the diagonal, or of a power law near the first."""
    random = np.random.default_rng(1)
    lengths = lengths_of(kind, rows, stored, random)
    row = np.repeat(np.arange(rows), lengths)
    if kind == "banded":
        place = np.arange(row.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        column = np.clip(row + place - lengths[row] // 2, 0, rows - 1)
    elif kind == "uniform":
        column = random.integers(0, rows, row.size)
    else:
        column = (rows * random.random(row.size) ** 3).astype(np.int64)
    keys = np.unique(row * rows + column)  # sorted, each once
    row, column = keys // rows, keys % rows
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    data = random.standard_normal(column.size, np.float32)
    return Matrix(f"{kind} {label}", data, column.astype(np.int32), indptr.astype(np.int32))


class CuSparse:
    """cuSPARSE by its own calls: a plan for one matrix, with SpMV_preprocess where there is one."""

    FLOAT, INT32, BASE, ROW = 0, 2, 0, 2  # CUDA_R_32F, CUSPARSE_INDEX_32I, INDEX_BASE_ZERO, ORDER_ROW
    SPMV_CSR, SPMM_CSR = 2, 6  # CUSPARSE_SPMV_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2

    def __init__(self, torch: Any) -> None:
        self.torch, self.library = torch, ctypes.CDLL("libcusparse.so.12")
        self.handle = ctypes.c_void_p()
        self.check(self.library.cusparseCreate(ctypes.byref(self.handle)))

    @staticmethod
    def check(status: int) -> None:
        if status:
            raise RuntimeError(f"cuSPARSE: status {status}")

    def pointer(self, tensor: Any) -> ctypes.c_void_p:
        return ctypes.c_void_p(tensor.data_ptr())

    def product(self, a: Any, x: Any, y: Any) -> Callable[[], None]:
        """A call of y = A x for torch tensors of float32 with int32 indices; x a vector or a row-major matrix."""
        lib, one, zero = self.library, ctypes.c_float(1), ctypes.c_float(0)
        mat, dense, out = (ctypes.c_void_p() for _ in range(3))
        size, i64 = ctypes.c_size_t(), ctypes.c_int64
        self.check(lib.cusparseCreateCsr(
            ctypes.byref(mat), i64(a.shape[0]), i64(a.shape[1]), i64(a.values().numel()), self.pointer(a.crow_indices()),
            self.pointer(a.col_indices()), self.pointer(a.values()), self.INT32, self.INT32, self.BASE, self.FLOAT,
        ))  # fmt: skip
        for handle, t in ((dense, x), (out, y)):
            if t.ndim == 1:
                self.check(lib.cusparseCreateDnVec(ctypes.byref(handle), i64(t.numel()), self.pointer(t), self.FLOAT))
            else:
                self.check(lib.cusparseCreateDnMat(
                    ctypes.byref(handle), i64(t.shape[0]), i64(t.shape[1]), i64(t.stride(0)), self.pointer(t),
                    self.FLOAT, self.ROW,
                ))  # fmt: skip
        name, algorithm = ("SpMV", self.SPMV_CSR) if x.ndim == 1 else ("SpMM", self.SPMM_CSR)
        plain = [self.handle, 0] + ([] if x.ndim == 1 else [0])
        plain += [ctypes.byref(one), mat, dense, ctypes.byref(zero), out, self.FLOAT, algorithm]
        self.check(getattr(lib, f"cusparse{name}_bufferSize")(*plain, ctypes.byref(size)))
        buffer = self.torch.empty(max(size.value, 1), dtype=self.torch.uint8, device="cuda")
        arguments = [*plain, self.pointer(buffer)]
        if (prepare := getattr(lib, f"cusparse{name}_preprocess", None)) is not None:
            self.check(prepare(*arguments))
        run = getattr(lib, f"cusparse{name}")
        kept = (a, x, y, buffer, one, zero)

        def call() -> None:
            stream = self.torch.cuda.current_stream().cuda_stream
            lib.cusparseSetStream(self.handle, ctypes.c_void_p(stream))
            self.check(run(*arguments))
            _ = kept

        return call


def gpu_candidates(m: Matrix, op: str, variant: str, sets: int) -> dict[tuple[str, str], Callable[[], Call]]:
    """What makes each candidate's call of set i."""
    import torch

    def on_gpu(array: Any) -> Any:
        return torch.from_numpy(array).cuda()

    shape = (m.rows,) if op == "spmv" else (m.rows, COLUMNS)
    arrays = [tuple(on_gpu(t) for t in (m.data, m.indices, m.indptr)) for _ in range(sets)]
    xs = [torch.randn(shape, device="cuda") for _ in range(sets)]
    ours = [tc.sparse.csr(*a, (m.rows, m.rows)) for a in arrays]
    outs = [torch.empty(shape, device="cuda") for _ in range(sets)]
    theirs = [torch.sparse_csr_tensor(a[2], a[1], a[0], (m.rows, m.rows)) for a in arrays]
    product = tc.sparse.spmv if op == "spmv" else tc.sparse.spmm

    def own(name: str) -> Callable[[], Call]:
        return lambda: lambda i: product(ours[i], xs[i], out=outs[i], variant=name or None)

    def copy() -> Call:
        half = int(work(m, op)[0] / 2)
        places = torch.ones(2, sets, half, device="cuda", dtype=torch.uint8)
        return lambda i: places[1, i].copy_(places[0, i])

    def by_cupy() -> Call:
        import cupy
        from cupyx.scipy import sparse

        made = [
            sparse.csr_matrix(tuple(cupy.from_dlpack(t) for t in (a[0], a[1], a[2])), shape=(m.rows, m.rows))
            for a in arrays
        ]
        dense = [cupy.from_dlpack(x) for x in xs]
        return lambda i: made[i] @ dense[i]

    def by_cusparse() -> Call:
        library = CuSparse(torch)
        calls = [library.product(theirs[i], xs[i], torch.empty_like(outs[i])) for i in range(sets)]
        return lambda i: calls[i]()

    def by_gemm() -> Call:
        dense, columns = ours[0].to_dense(), [x if x.ndim == 2 else x[:, None] for x in xs]
        targets = [out if out.ndim == 2 else out[:, None] for out in outs]
        return lambda i: tc.gemm(dense, columns[i], out=targets[i])

    found = {("tensorcraft", name): own(name) for name in variants(ours[0], op, variant, xs[0])}
    if m.name.startswith("sparse"):
        found["dense", ""] = by_gemm
    found |= {
        ("copy", ""): copy, ("torch", ""): lambda: lambda i: theirs[i] @ xs[i], ("cusparse", ""): by_cusparse,
        ("cupy", ""): by_cupy,
    }  # fmt: skip
    return found


def conversions(m: Matrix, op: str, is_gpu: bool) -> dict[tuple[str, str], Callable[[], Call]]:
    """A conversion into new memory, and a copy of what it reads and writes."""
    device = "cuda:0" if is_gpu else "cpu"
    data, indices, indptr = (tc.asarray(t, device=device) for t in (m.data, m.indices, m.indptr))
    dense = tc.csr_to_dense(data, indices, indptr, m.rows)

    def from_dense(_: int) -> Any:
        return tc.csr_from_dense(dense, tc.csr_offsets(dense), m.data.size)

    half = int(work(m, op)[0] / 2)
    source, target = tc.zeros(half, dtype="uint8", device=device), tc.empty(half, dtype="uint8", device=device)
    calls: dict[str, Call] = {
        "csr_to_dense": lambda _: tc.csr_to_dense(data, indices, indptr, m.rows, out=dense),
        "csr_from_dense": from_dense,
        "csr_transpose": lambda _: tc.csr_transpose(data, indices, indptr, m.rows),
    }
    return {
        ("tensorcraft", ""): lambda: calls[op],
        ("copy", ""): lambda: lambda _: tc.copy(source, out=target),
    }


def cpu_candidates(m: Matrix, op: str, variant: str, sets: int) -> dict[tuple[str, str], Callable[[], Call]]:
    random = np.random.default_rng(2)
    x = random.standard_normal((m.rows,) if op == "spmv" else (m.rows, COLUMNS), np.float32)
    ours = tc.sparse.csr(m.data, m.indices, m.indptr, (m.rows, m.rows), device="cpu")
    product = tc.sparse.spmv if op == "spmv" else tc.sparse.spmm
    out = np.empty_like(x)

    def scipy() -> Call:
        from scipy import sparse

        theirs = sparse.csr_array((m.data, m.indices, m.indptr), shape=(m.rows, m.rows))
        return lambda i: theirs @ x

    return {
        ("tensorcraft", variant or "cpu"): lambda: lambda i: product(ours, x, out=out, variant=variant or None),
        ("scipy", ""): scipy,
    }


def variants(a: Any, op: str, wanted: str, x: Any) -> list[str]:
    arrays = (a.data, a.indices, a.indptr, x)
    known = {"starts": a._by_rows().starts} if op == "spmv" else {}
    explained = tc.explain(op, *arrays, longest_row=a.analysis.longest_row, **known)
    names = [v.name for v in explained.variants if v.accepted]
    return ["", *(n for n in names if n != explained.variant)] if wanted == "all" else [wanted]


def work(m: Matrix, op: str) -> tuple[float, float]:
    """Bytes that are read and written once, and operations."""
    stored = float(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes)
    if op in CONVERSIONS:
        return stored + (stored if op == "csr_transpose" else 4.0 * m.rows * m.rows), 0.0
    columns = 1 if op == "spmv" else COLUMNS
    return stored + 2 * 4 * m.rows * columns, 2.0 * m.data.size * columns


def measure(m: Matrix, op: str, given: argparse.Namespace, is_gpu: bool) -> list[dict[str, Any]]:
    nbytes, flops = work(m, op)
    sets = max(2, min(8, int(2 * 60e6 / nbytes) + 1)) if is_gpu else 1
    if op in CONVERSIONS:
        made = conversions(m, op, is_gpu)
    else:
        made = (gpu_candidates if is_gpu else cpu_candidates)(m, op, given.variant, sets)
    rows, timed = [], []
    for (name, variant), make in made.items():
        row = {
            "op": op, "case": f"{m.name} {m.data.size} float32", "shape": f"{m.rows}x{m.rows}", "dtype": "float32",
            "options": "", "group": "sparse", "candidate": name, "variant": variant, "note": "",
            "chosen": name == "tensorcraft" and variant in ("", "cpu"), "timing": "events" if is_gpu else "wall",
            "cache": "cold", "median_us": 0.0, "p10_us": 0.0, "p90_us": 0.0, "runs": 0, "bytes": nbytes, "flops": flops,
            "floor_us": 0.0, "gbs": 0.0, "tflops": 0.0, "error": None,
        }  # fmt: skip
        rows.append(row)
        try:
            call = make()
            call(0)
            timed.append((row, timer(call, sets, is_gpu, len(timed))))
        except (ImportError, OSError) as error:
            row["error"] = f"n/a: {error}"[:200]
        except Exception as error:  # noqa: BLE001  the others go on
            row["error"] = failure(error)
    samples: dict[int, list[float]] = {id(row): [] for row, _ in timed}
    start = time.perf_counter()
    while time.perf_counter() - start < given.seconds * len(timed) or min(map(len, samples.values())) < 5:
        for row, once in timed:
            samples[id(row)].append(once())
    for row, _ in timed:
        row |= micro_summary(samples[id(row)])
        row |= {"gbs": nbytes / row["median_us"] / 1e3, "tflops": flops / row["median_us"] / 1e6}
    return rows


def timer(call: Call, sets: int, is_gpu: bool, place: int) -> Callable[[], float]:
    """Candidates are a set apart: what one has read is not in the cache for the next."""
    turn = itertools.islice(itertools.cycle(range(sets)), place % sets, None)
    if is_gpu:
        return gpu_timer(call, turn, sets, False)

    def once() -> float:
        start = time.perf_counter()
        call(next(turn))
        return (time.perf_counter() - start) * 1e6

    return once


def wordnet(folder: str) -> Matrix:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/graph"))
    from wordnet import read

    graph = read(folder)
    return Matrix("wordnet", graph.symmetric.data, graph.symmetric.indices, graph.symmetric.indptr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this text, such as 'spmv banded'")
    parser.add_argument("--variant", default="")
    parser.add_argument("--small", action="store_true", help="one small size, to try it")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--wordnet", default="", help="the folder of WordNet's data files")
    given = parser.parse_args()
    try:
        import torch

        is_gpu = torch.cuda.is_available()
    except ImportError:
        is_gpu = False
    info = tc.device_info("cuda:0" if is_gpu else "cpu")
    results: dict[str, Any] = {
        "schema": 1, "title": "tc.sparse beside cuSPARSE" if is_gpu else "tc.sparse beside SciPy", "machine": machine(),
        "device": {"name": info["name"], "arch": info["arch"] or "cpu", "bandwidth_gbs": info["memory_gb_per_s"],
                   "peak_tflops": {"float32": info["peak_fp32_tflops"]}},
        "timing": {"method": "CUDA events around one call" if is_gpu else "wall time", "warmup_s": 0,
                   "data": "standard normal; matrices as benchmarks/sparse_peers.py makes them"},
        "rows": [], "skipped": [],
    }  # fmt: skip
    makers: list[tuple[str, Callable[[], Matrix]]] = [
        (f"{kind} {label}", lambda kind=kind, label=label, size=size: matrix_of(kind, label, *size))
        for label, size in (SMALL if given.small else SIZES).items()
        for kind in ("uniform", "banded", "power")
    ]
    side = 512 if given.small else DENSE_ROWS
    makers.append((f"sparse {side}", lambda: matrix_of("uniform", "", side, int(DENSITY * side * side))))
    if given.wordnet:
        makers.append(("wordnet", lambda: wordnet(given.wordnet)))
    for name, make in makers:
        ops = ("spmv", "spmm", *CONVERSIONS) if name.startswith("sparse") else ("spmv", "spmm")
        wanted = [op for op in ops if given.only in f"{op} {name}"]
        if not wanted:
            continue
        m = make()
        m.name = name
        for op in wanted:
            rows = measure(m, op, given, is_gpu)
            results["rows"] += rows
            print(
                op,
                m.name,
                *(f"{r['candidate']} {r['variant']} {r['error'] or format(r['median_us'], '.4g')};" for r in rows),
            )
            save(results, given.out)


if __name__ == "__main__":
    main()
