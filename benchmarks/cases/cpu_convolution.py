"""conv2d on the CPU beside torch's."""

from __future__ import annotations

import itertools
import os
from typing import Any

import torch
from figures import Row, Shape, shape_text
from peer_calls import torch_calls
from timing import Work, interleaved_cpu, machine

import tensorcraft as tc

TITLE, REPEATS = "convolutions on the CPU beside torch", 7
CALLS = 10  # of a turn; few, as the machine may have other work

# Image and filters, channels last and without a batch, with a stride and a layout.
CASES: list[tuple[Shape, Shape, int, str]] = [
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


def facts(repeats: int) -> Row:
    here = {k: v for k, v in machine().items() if k not in ("gpu", "driver")}
    here |= {"threads": str(torch.get_num_threads()), "load before": f"{os.getloadavg()[1]:.1f}"}
    timing = f"wall time in {repeats} turns of {CALLS} calls, a pause before each turn; a tenth of the calls are faster"
    return {"machine": here, "timing": timing}


def rows(repeats: int) -> list[Row]:
    made, theirs = torch.Generator().manual_seed(1), torch_calls()["conv2d"]
    found = []
    for (x_shape, w_shape, stride, layout), batch in itertools.product(CASES, (1, 8)):
        x = torch.randn(batch, *x_shape, generator=made)
        w = torch.randn(*w_shape, generator=made) / w_shape[1]
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
            times = interleaved_cpu(run | {"torch": peer}, rounds=repeats, calls=CALLS, pause=0.05)
        name = f"conv2d {shape_text(tuple(x.shape))} {shape_text(tuple(w.shape))} float32, stride {stride}, {layout}"
        for variant in variants:
            a, b = times[variant]["p10_ms"], times["torch"]["p10_ms"]
            row = {"name": name, "variant": variant, "ms": a, "peer": "torch", "peer_ms": b, "ratio": b / a}
            found.append(row | {"largest difference": difference})
    return found
