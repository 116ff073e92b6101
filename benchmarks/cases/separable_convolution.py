"""depthwise_separable_conv2d beside depthwise_conv2d with conv2d, torch's two calls, and a copy of the bytes."""

from __future__ import annotations

from typing import Any

import torch
from figures import Call, Row, Shape, in_turn, shape_text
from peer_calls import torch_calls

import tensorcraft as tc

TITLE, REPEATS = "depthwise and pointwise convolution in one call and in two", 30
TIMING = "CUDA events around a graph of 16 calls, images rotated past the cache, candidates in turn, medians"
SETS = 4  # of images, so that none is in a cache
BESIDE = "two calls"
ONE = "one call"

# Images, channels last, and filters: layers of a MobileNet, 3 x 3, with a relu6 between the convolutions.
LAYERS: list[tuple[Shape, int]] = [
    ((32, 112, 112, 32), 64),
    ((32, 56, 56, 128), 128),
    ((32, 28, 28, 256), 256),
    ((32, 14, 14, 512), 512),
]


def candidates(x_shape: Shape, filters: int) -> dict[str, Call]:
    made = torch.Generator("cuda").manual_seed(1)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", generator=made).to(torch.bfloat16)

    channels = x_shape[3]
    images = [random(*x_shape) for _ in range(SETS)]
    depthwise, pointwise = random(channels, 3, 3, 1) / 3, random(filters, 1, 1, channels) / channels**0.5
    outs = [random(*x_shape[:3], filters) for _ in range(SETS)]
    middle = [torch.empty_like(x) for x in images]
    given = {"padding": 1, "layout": "nhwc"}

    def one(i: int) -> Any:
        return tc.depthwise_separable_conv2d(
            images[i], depthwise, pointwise, depthwise_activation="relu6", out=outs[i], **given
        )

    def two(i: int) -> Any:
        tc.depthwise_conv2d(images[i], depthwise, activation="relu6", out=middle[i], **given)
        return tc.conv2d(middle[i], pointwise, layout="nhwc", out=outs[i])

    calls = torch_calls()

    def of_torch(x: Any) -> Any:
        y = calls["depthwise_conv2d"](x, depthwise, activation="relu6", **given)
        return calls["conv2d"](y, pointwise, layout="nhwc")

    compiled = torch.compile(of_torch)
    nbytes = 2 * (images[0].numel() + outs[0].numel())  # read and written
    from_, to = (torch.empty(SETS, nbytes // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    expected = of_torch(images[0]).float()
    for found in (one(0), two(0)):
        difference = (torch.from_dlpack(found).float() - expected).abs().max() / expected.abs().max()
        if not difference < 0.02:
            raise SystemExit(f"{shape_text(x_shape)}: off by {difference} of the largest value")
    return {
        ONE: one,
        BESIDE: two,
        "torch": lambda i: of_torch(images[i]),
        "torch.compile": lambda i: compiled(images[i]),
        "copy": lambda i: to[i].copy_(from_[i]),
    }


def facts(repeats: int) -> Row:
    return {"timing": TIMING}


def rows(repeats: int) -> list[Row]:
    found = []
    for x_shape, filters in LAYERS:
        with torch.inference_mode():
            of = in_turn(candidates(x_shape, filters), SETS, repeats, graph=True)
        for name, figures in of.items():
            us = figures["median_us"]
            row = {"name": "depthwise_separable_conv2d bfloat16", "x": shape_text(x_shape), "filters": filters, "by": name}
            found.append(row | {"us": us, f"times as fast as {BESIDE}": of[BESIDE]["median_us"] / us})
    return found
