"""Times the variants of conv2d that compute float32 windows of 3 x 3 and 5 x 5 beside im2col with a product, on a GPU,
and conv2d on the CPU beside torch's.

    python benchmarks/convolution_figures.py FOLDER [--cpu-only] [--gpu-only] [--rounds 7] [--calls 10]

Writes FOLDER/convolution_variants.json and FOLDER/cpu_convolution.json. Needs torch.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable
from typing import Any

import torch
from peer_calls import torch_calls
from timing import Work, failure, gpu_timer, interleaved_cpu, machine, micro_summary, write

import tensorcraft as tc

Shape = tuple[int, ...]
SETS = 4  # of images, so that none is in a cache
VARIANTS = ("naive", "tiled", "winograd")
BESIDE = "im2col + gemm"

# Images and filters, channels last.
ON_GPU: list[tuple[Shape, Shape]] = [
    ((32, 56, 56, 64), (64, 3, 3, 64)),
    ((32, 28, 28, 128), (128, 3, 3, 128)),
    ((32, 14, 14, 256), (256, 3, 3, 256)),
    ((8, 64, 64, 320), (320, 3, 3, 320)),
    ((32, 28, 28, 128), (128, 5, 5, 128)),
]
# The same without a batch, with a stride and a layout.
ON_CPU: list[tuple[Shape, Shape, int, str]] = [
    ((56, 56, 64), (64, 3, 3, 64), 1, "nhwc"),
    ((28, 28, 128), (128, 3, 3, 128), 1, "nhwc"),
    ((14, 14, 256), (256, 3, 3, 256), 1, "nhwc"),
    ((7, 7, 512), (512, 3, 3, 512), 1, "nhwc"),
    ((56, 56, 128), (128, 3, 3, 128), 2, "nhwc"),
    ((56, 56, 256), (64, 1, 1, 256), 1, "nhwc"),
    ((224, 224, 3), (64, 7, 7, 3), 2, "nhwc"),
    ((56, 56, 64), (64, 3, 3, 64), 1, "nchw"),
    ((14, 14, 256), (256, 3, 3, 256), 1, "nchw"),
]


def text_of(shape: Shape) -> str:
    return "x".join(map(str, shape))


def on_gpu(x_shape: Shape, w_shape: Shape) -> dict[str, Callable[[int], Any]]:
    made = torch.Generator("cuda").manual_seed(1)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", generator=made)

    taps, padding = w_shape[1], w_shape[1] // 2
    images, w = [random(*x_shape) for _ in range(SETS)], random(*w_shape) / taps**2
    out = random(*x_shape[:3], w_shape[0])
    windows = random(x_shape[0], x_shape[1] * x_shape[2], taps * taps * x_shape[3])
    a, b, d = windows.flatten(0, 1), w.flatten(1).T, out.flatten(0, 2)

    def by_product(i: int) -> Any:
        tc.im2col(images[i], taps, padding=padding, layout="nhwc", out=windows)
        tc.gemm(a, b, out=d)

    def by(name: str) -> Callable[[int], Any]:
        return lambda i: tc.conv2d(images[i], w, padding=padding, layout="nhwc", variant=name, out=out)

    theirs = torch_calls()["conv2d"]
    return {name: by(name) for name in VARIANTS} | {
        BESIDE: by_product,
        "torch": lambda i: theirs(images[i], w, padding=padding, layout="nhwc"),
    }


def gpu_rows(repeats: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for x_shape, w_shape in ON_GPU:
        timers, times = {}, {}
        for name, call in on_gpu(x_shape, w_shape).items():
            try:
                call(0)
            except NotImplementedError as error:  # the variant does not take this window
                print(f"{name}: {failure(error)}")
                continue
            timers[name], times[name] = gpu_timer(call, itertools.cycle(range(SETS)), SETS, False), []
        for _ in range(repeats):
            for name, once in timers.items():
                times[name].append(once())
        of = {name: micro_summary(values) for name, values in times.items()}
        flops = 2 * x_shape[0] * x_shape[1] * x_shape[2] * w_shape[0] * w_shape[1] * w_shape[2] * w_shape[3]
        for name, figures in of.items():
            row = {"name": "conv2d float32", "x": text_of(x_shape), "w": text_of(w_shape), "by": name}
            row |= {"us": figures["median_us"], "TFLOPS": flops / figures["median_us"] / 1e6}
            found.append(row | {f"times as fast as {BESIDE}": of[BESIDE]["median_us"] / figures["median_us"]})
    return found


def cpu_rows(rounds: int, calls: int, dtypes: tuple[str, ...] = ("float32",)) -> list[dict[str, Any]]:
    made, theirs = torch.Generator().manual_seed(1), torch_calls()["conv2d"]
    found = []
    for (x_shape, w_shape, stride, layout), batch, dtype in itertools.product(ON_CPU, (1, 8), dtypes):
        x = torch.randn(batch, *x_shape, generator=made).to(getattr(torch, dtype))
        w = torch.randn(*w_shape, generator=made).to(x.dtype) / w_shape[1]
        if layout == "nchw":
            x, w = (t.permute(0, 3, 1, 2).contiguous() for t in (x, w))
        given = {"stride": stride, "padding": w_shape[1] // 2, "layout": layout}
        out = torch.from_dlpack(tc.conv2d(x, w, device="cpu", **given))
        explained = tc.explain("conv2d", x, w, device="cpu", **given)
        variants = [v.name for v in explained.variants if v.accepted and v.name in ("onednn", "cpu")]

        def by(name: str, x: Any = x, w: Any = w, given: Any = given, out: Any = out) -> Work:
            return lambda: tc.conv2d(x, w, device="cpu", variant=name, out=out, **given)

        run = {name: by(name) for name in variants}
        with torch.inference_mode():
            difference = float((out - theirs(x, w, **given)).abs().max())
            peer: Work = lambda x=x, w=w, given=given: theirs(x, w, **given)
            times = interleaved_cpu(run | {"torch": peer}, rounds=rounds, calls=calls, pause=0.05)
        name = f"conv2d {text_of(tuple(x.shape))} {text_of(tuple(w.shape))} {dtype}, stride {stride}, {layout}"
        for variant in variants:
            a, b = times[variant]["p10_ms"], times["torch"]["p10_ms"]
            row = {"name": name, "variant": variant, "ms": a, "peer": "torch", "peer_ms": b, "ratio": b / a}
            found.append(row | {"largest difference": difference})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--cpu-only", action="store_true")
    parser.add_argument("--gpu-only", action="store_true")
    parser.add_argument("--repeats", type=int, default=30, help="on the GPU")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each candidate on the CPU")
    parser.add_argument("--calls", type=int, default=10, help="of a turn; few if the machine has other work")
    given = parser.parse_args()
    if not given.cpu_only:
        title = "float32 convolutions by variant, beside im2col with a product"
        write(f"{given.folder}/convolution_variants.json", title, gpu_rows(given.repeats))
    if not given.gpu_only:
        facts = {k: v for k, v in machine().items() if k not in ("gpu", "driver")}
        facts |= {"threads": str(torch.get_num_threads()), "load before": f"{os.getloadavg()[1]:.1f}"}
        timing = f"wall time in {given.rounds} turns of {given.calls} calls, a pause before each turn; a tenth of the calls are faster"
        rows, title = cpu_rows(given.rounds, given.calls), "convolutions on the CPU beside torch"
        write(f"{given.folder}/cpu_convolution.json", title, rows, machine=facts, timing=timing)


if __name__ == "__main__":
    main()
