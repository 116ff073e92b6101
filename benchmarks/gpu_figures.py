"""The figures of the GPU operators, each beside its peer in one interleaved run.

python benchmarks/gpu_figures.py FOLDER     writes FOLDER/gpu_operators.json (needs torch and a GPU)
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
from targets import target_tflops
from timing import interleaved_gpu, write

import tensorcraft as tc

ROTATION_BYTES = 256 << 20  # distinct buffers a round touches: several times the L2 cache


def rotated(make: Callable[[], Any], bytes_each: int) -> Callable[[], Any]:
    """Calls with a different set of buffers each time, so that L2 holds none of the inputs."""
    sets = [make() for _ in range(max(2, ROTATION_BYTES // max(bytes_each, 1) + 1))]
    turn = itertools.cycle(sets)
    return lambda: next(turn)


def relative_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return float((got.double() - expected.double()).norm() / expected.double().norm())


def row(name: str, shape: str, times: dict[str, dict[str, float]], peer: str, error: float) -> dict[str, Any]:
    ours, theirs = times["tensorcraft"], times[peer]
    return {
        "name": name,
        "shape": shape,
        "ms": ours["median_ms"],
        "p10_ms": ours["p10_ms"],
        "p90_ms": ours["p90_ms"],
        "peer": peer,
        "peer_ms": theirs["median_ms"],
        "ratio": theirs["median_ms"] / ours["median_ms"],
        "error": error,
    }


def bandwidth_rows() -> list[dict[str, Any]]:
    """Operators bound by memory against a device copy of the same bytes, and against torch."""
    found = []
    for rows, cols, dtype in [
        (8192, 8192, torch.bfloat16),
        (4096, 1024, torch.float32),
        (32768, 384, torch.bfloat16),
        (2048, 131072, torch.bfloat16),
    ]:
        x = rotated(lambda: torch.randn(rows, cols, device="cuda").to(dtype), rows * cols * dtype.itemsize)
        out = torch.empty(rows, cols, device="cuda", dtype=dtype)
        w, b = torch.rand(cols, device="cuda").to(dtype), torch.randn(cols, device="cuda").to(dtype)
        functional, other = torch.nn.functional, torch.randn(rows, cols, device="cuda").to(dtype)
        operators: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
            "layer_norm": (
                lambda t: tc.layer_norm(t, w, b, out=out),
                lambda t: functional.layer_norm(t, (cols,), w, b),
            ),
            "rms_norm": (lambda t: tc.rms_norm(t, w, out=out), lambda t: functional.rms_norm(t, (cols,), w, 1e-6)),
            "softmax": (lambda t: tc.softmax(t, out=out), lambda t: functional.softmax(t, -1)),
            "l2_normalize": (lambda t: tc.l2_normalize(t, out=out), lambda t: functional.normalize(t, dim=-1)),
            "silu": (lambda t: tc.silu(t, out=out), functional.silu),
            "add": (lambda t: tc.add(t, other, out=out), lambda t: torch.add(t, other, out=out)),
        }
        for name, (ours, theirs) in operators.items():
            sample = x()
            error = relative_error(ours(sample), theirs(sample.double() if name == "l2_normalize" else sample))
            times = interleaved_gpu(
                {"copy": lambda: out.copy_(x()), "tensorcraft": lambda: ours(x()), "torch": lambda: theirs(x())}
            )
            shape = f"{rows}x{cols} {str(dtype)[6:]}"
            found += [row(name, shape, times, "copy", error), row(name, shape, times, "torch", error)]
    return found


def gemm_rows() -> list[dict[str, Any]]:
    """Products against torch.matmul, which is cuBLAS."""
    found = []
    major, minor = torch.cuda.get_device_capability()
    shapes = [(4096, 4096, 4096, torch.bfloat16), (4096, 4096, 4096, torch.float16), (2048, 2048, 2048, torch.bfloat16)]
    shapes += [(8192, 384, 1536, torch.bfloat16), (1024, 1024, 1024, torch.float32), (4095, 4097, 1001, torch.bfloat16)]
    for m, n, k, dtype in shapes:
        make = lambda: (torch.randn(m, k, device="cuda").to(dtype), torch.randn(n, k, device="cuda").to(dtype))
        operands = rotated(make, (m * k + n * k) * dtype.itemsize)
        out = torch.empty(m, n, device="cuda", dtype=dtype)

        def ours() -> Any:
            a, b = operands()
            return tc.gemm(a, b, transpose_b=True, out=out)

        def theirs() -> Any:
            a, b = operands()
            return torch.matmul(a, b.T, out=out)

        a, b = operands()
        error = relative_error(tc.gemm(a, b, transpose_b=True), a.double() @ b.double().T)
        times = interleaved_gpu({"tensorcraft": ours, "cublas": theirs}, warmup=30)
        found.append(row("gemm", f"{m}x{n}x{k} {str(dtype)[6:]} NT", times, "cublas", error))
        found[-1]["tflops"] = 2e-9 * m * n * k / found[-1]["ms"]
        found[-1]["target_tflops"] = target_tflops(10 * major + minor, str(dtype)[6:])
    return found


def ladder_rows() -> list[dict[str, Any]]:
    """Every rung of the product on one size: what each idea is worth."""
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        a, b = (torch.randn(2048, 2048, device="cuda").to(dtype) for _ in range(2))
        names = dict.fromkeys(v.name for v in tc.ops()["gemm"].variants if v.device == "cuda")
        accepted = [v.name for v in tc.explain("gemm", a, b).variants if v.accepted and v.name in names]
        candidates: dict[str, Callable[[], Any]] = {"cublas": lambda: a @ b}
        for name in accepted:
            candidates[name] = lambda name=name: tc.gemm(a, b, variant=name)
        times = interleaved_gpu(candidates, repeats=20, warmup=5)
        for name in accepted:
            ms = times[name]["median_ms"]
            found.append({"name": "gemm ladder", "variant": name, "shape": f"2048^3 {str(dtype)[6:]} NN", "ms": ms,
                          "tflops": 2e-9 * 2048**3 / ms, "cublas_ms": times["cublas"]["median_ms"]})  # fmt: skip
    return found


def attention_rows() -> list[dict[str, Any]]:
    """Attention against torch's scaled_dot_product_attention."""
    found = []
    for b, h, s, d, causal in [(32, 12, 128, 32, False), (4, 16, 2048, 64, False), (4, 16, 2048, 128, True)]:
        q, k, v = (torch.randn(b, h, s, d, device="cuda").bfloat16() for _ in range(3))
        theirs = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        ours = lambda: tc.attention(q, k, v, causal=causal)
        error = relative_error(ours(), theirs())
        times = interleaved_gpu({"tensorcraft": ours, "sdpa": theirs})
        found.append(
            row("attention", f"b{b} h{h} s{s} d{d}{' causal' if causal else ''} bfloat16", times, "sdpa", error)
        )
    return found


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(0)
    rows = bandwidth_rows() + gemm_rows() + ladder_rows() + attention_rows()
    timing = "CUDA events around one call, standard normal inputs rotated past L2, candidates interleaved, medians"
    write(f"{sys.argv[1]}/gpu_operators.json", "GPU operators beside their peers", rows, timing=timing)


if __name__ == "__main__":
    main()
