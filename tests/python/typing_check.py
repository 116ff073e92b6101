# SPDX-License-Identifier: Apache-2.0
"""What a user's type checker must accept; run through mypy --strict by test_typing.py, never executed."""

from collections.abc import Mapping

import numpy as np

import tensorcraft as tc


def tensors(path: str) -> tc.Tensor:
    x = tc.asarray([[1.0, 2.0]], dtype=tc.float32, device="cpu")
    weights: Mapping[str, tc.Tensor] = tc.load_safetensors(path)
    shape: tuple[int, ...] = x.shape
    y: tc.Tensor = (x @ weights["w"].T + 1.0) * x[0] / 2 - x
    y += tc.zeros(shape, tc.float16)
    kind: tc.DType = y.dtype
    return y.reshape(-1, 2).to("cpu").astype(kind)


def operators(x: tc.Tensor) -> None:
    tc.softmax(x, axis=-1, out=x, variant="cpu")
    tc.gelu(np.ones(3, np.float32), approximate="tanh")
    tc.gemm(x, x, bias=None, activation="relu", device="cpu")
    tc.astype(x, tc.bfloat16)


def runtime() -> str:
    with tc.Stream("cuda:0") as stream, tc.trace() as calls:
        tc.l2_normalize([1.0], stream=stream)
    stream.synchronize()
    explanation: tc.Explanation = tc.explain("softmax", [1.0])
    try:
        tc.synchronize()
    except tc.DeviceLost as error:
        return str(error)
    return explanation.variant + str(calls) + ", ".join(row.name for row in explanation.variants)
