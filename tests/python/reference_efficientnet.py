# SPDX-License-Identifier: Apache-2.0
"""EfficientNet-Lite in double precision and NumPy alone, batch norms as they are, to hold the example against."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

EPS = 1e-3


def same(x, taps, stride):
    """Zeros around NCHW images, so that the result has ceil(size / stride) rows and columns; an odd one goes behind."""
    margins = [(0, 0), (0, 0)]
    for size in x.shape[2:]:
        total = max(0, (-(-size // stride) - 1) * stride + taps - size)
        margins.append((total // 2, total - total // 2))
    return np.pad(x, margins)


def convolve(x, w, stride, groups=1):
    taps = w.shape[-1]
    windows = sliding_window_view(same(x, taps, stride), (taps, taps), axis=(2, 3))[:, :, ::stride, ::stride]
    if groups > 1:
        return np.einsum("nchwrs,crs->nchw", windows, w[:, 0])
    return np.einsum("nchwrs,kcrs->nkhw", windows, w, optimize=True)


class Reference:
    def __init__(self, state, stages):
        self.state = {name: value.astype(np.float64) for name, value in state.items()}
        self.stages = stages

    def layer(self, x, conv, norm, stride=1, groups=1, clip=True):
        part = {name: self.state[f"{norm}.{name}"] for name in ("weight", "bias", "running_mean", "running_var")}
        part = {name: value[:, None, None] for name, value in part.items()}
        y = convolve(x, self.state[f"{conv}.weight"], stride, groups)
        y = (y - part["running_mean"]) / np.sqrt(part["running_var"] + EPS) * part["weight"] + part["bias"]
        return np.clip(y, 0, 6) if clip else y

    def __call__(self, images):
        x = self.layer(images.astype(np.float64).transpose(0, 3, 1, 2), "_conv_stem", "_bn0", 2)
        number = 0
        for stage in self.stages:
            for repeat in range(stage.repeat):
                name, stride = f"_blocks.{number}.", stage.stride if repeat == 0 else 1
                y = self.layer(x, name + "_expand_conv", name + "_bn0") if stage.expand > 1 else x
                y = self.layer(y, name + "_depthwise_conv", name + "_bn1", stride, groups=y.shape[1])
                y = self.layer(y, name + "_project_conv", name + "_bn2", clip=False)
                x = x + y if x.shape == y.shape and stride == 1 else y
                number += 1
        features = self.layer(x, "_conv_head", "_bn1").mean(axis=(2, 3))
        return features @ self.state["_fc.weight"].T + self.state["_fc.bias"]
