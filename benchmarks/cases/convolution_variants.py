"""The variants of conv2d that compute float32 windows of 3 x 3 and 5 x 5, beside im2col with a product."""

from __future__ import annotations

from typing import Any

import torch
from figures import Call, Row, Shape, in_turn, shape_text
from peer_calls import torch_calls

import tensorcraft as tc

TITLE, REPEATS = "float32 convolutions by variant, beside im2col with a product", 30
SETS = 4  # of images, so that none is in a cache
VARIANTS = ("naive", "tiled", "winograd")
BESIDE = "im2col + gemm"

# Images and filters, channels last.
CASES: list[tuple[Shape, Shape]] = [
    ((32, 56, 56, 64), (64, 3, 3, 64)),
    ((32, 28, 28, 128), (128, 3, 3, 128)),
    ((32, 14, 14, 256), (256, 3, 3, 256)),
    ((8, 64, 64, 320), (320, 3, 3, 320)),
    ((32, 28, 28, 128), (128, 5, 5, 128)),
]


def candidates(x_shape: Shape, w_shape: Shape) -> dict[str, Call]:
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

    def by(name: str) -> Call:
        return lambda i: tc.conv2d(images[i], w, padding=padding, layout="nhwc", variant=name, out=out)

    theirs = torch_calls()["conv2d"]
    return {name: by(name) for name in VARIANTS} | {
        BESIDE: by_product,
        "torch": lambda i: theirs(images[i], w, padding=padding, layout="nhwc"),
    }


def rows(repeats: int) -> list[Row]:
    found: list[Row] = []
    for x_shape, w_shape in CASES:
        of = in_turn(candidates(x_shape, w_shape), SETS, repeats)
        flops = 2 * x_shape[0] * x_shape[1] * x_shape[2] * w_shape[0] * w_shape[1] * w_shape[2] * w_shape[3]
        for name, figures in of.items():
            row = {"name": "conv2d float32", "x": shape_text(x_shape), "w": shape_text(w_shape), "by": name}
            row |= {"us": figures["median_us"], "TFLOPS": flops / figures["median_us"] / 1e6}
            found.append(row | {f"times as fast as {BESIDE}": of[BESIDE]["median_us"] / figures["median_us"]})
    return found
